"""Calls that a model's service has made: accepted as history, shown again as they came, and never run."""

from typing import Any

import pytest
from agent_framework import Agent, Message, tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import InvalidRequestError
from frontdesk.openai.forms import as_items
from frontdesk.openai.items import read_items, to_messages
from frontdesk.openai.tools import TOOL_KINDS
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import serving

PIXEL = "data:image/png;base64,aGk="
ITEMS: list[dict[str, Any]] = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rooms"}},
    {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": [{"text": "found"}]},
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "1+1",
        "container_id": "c",
        "outputs": [{"type": "logs", "logs": "2"}, {"type": "image", "url": "https://a.example/b.png"}],
    },
    {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed", "action": {"commands": ["ls"]}},
    {
        "type": "shell_call_output",
        "id": "sho_1",
        "call_id": "call_1",
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    {
        "type": "local_shell_call",
        "id": "l_1",
        "call_id": "call_2",
        "status": "completed",
        "action": {"command": ["ls"]},
    },
    {"type": "local_shell_call_output", "id": "lo_1", "call_id": "call_2", "output": "a"},
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_3",
        "status": "completed",
        "action": {"type": "click", "x": 1, "y": 2},
        "pending_safety_checks": [],
    },
    {
        "type": "computer_call_output",
        "id": "cuo_1",
        "call_id": "call_3",
        "output": {"type": "computer_screenshot", "image_url": PIXEL},
    },
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "books", "tools": []},
    {"type": "apply_patch_call", "id": "ap_1", "call_id": "call_4", "status": "completed", "operation": {}},
    {"type": "apply_patch_call_output", "id": "apo_1", "call_id": "call_4", "status": "completed", "output": "ok"},
]
SAID = [*ITEMS, {"type": "message", "role": "user", "content": "and now?"}]
SILENT = ("mcp_list_tools", "apply_patch_call", "apply_patch_call_output")


def test_there_is_an_item_of_every_kind() -> None:
    assert {item["type"] for item in ITEMS} == TOOL_KINDS


def _types(messages: list[Message]) -> list[tuple[str, list[str]]]:
    return [(message.role, [content.type for content in message.contents]) for message in messages]


def test_they_are_read_as_what_they_are() -> None:
    messages = read_items(SAID, host_tools=(), replayed=True).messages
    assert _types(messages) == [
        (
            "assistant",
            [
                *("search_tool_call", "search_tool_call", "search_tool_result"),
                *("code_interpreter_tool_call", "code_interpreter_tool_result", "shell_tool_call"),
            ],
        ),
        ("tool", ["shell_tool_result"]),
        ("assistant", ["shell_tool_call"]),
        ("tool", ["shell_tool_result"]),
        ("assistant", ["computer_tool_call"]),
        ("tool", ["computer_tool_result"]),
        ("user", ["text"]),
    ]
    assert _types(to_messages(SAID)[0]) == _types(messages)


def test_they_become_the_same_items_again() -> None:
    back = as_items(read_items(SAID, host_tools=(), replayed=True).messages)
    assert back[:-1] == [item for item in ITEMS if item["type"] not in SILENT]


@pytest.mark.parametrize("kind", sorted(TOOL_KINDS))
@pytest.mark.parametrize(
    "junk", [None, 1, "x", ["x"], [["x"]], {"x": None}, {"commands": {"a": 1}}, "https://[", "data:image/png;base64,%"]
)
def test_fields_of_any_shape_are_no_failure(kind: str, junk: Any) -> None:
    names = ("action", "actions", "queries", "results", "code", "outputs", "output", "status", "tools")
    item = {"type": kind, "id": "x_1", "call_id": "call_1", **dict.fromkeys(names, junk)}
    nested = {"outputs": [{"url": junk}, {"logs": junk}], "output": {"image_url": junk, "outcome": junk}}
    for body in (item, {**item, **nested}, {**item, "output": [{"stdout": junk, "outcome": junk}]}):
        read_items([body, {"role": "user", "content": "hi"}], host_tools=(), replayed=True)


@pytest.mark.parametrize("call_id", [None, "", 1, "x" * 65])
def test_an_outcome_names_its_call(call_id: Any) -> None:
    with pytest.raises(InvalidRequestError):
        read_items([{"type": "shell_call_output", "call_id": call_id, "output": ""}], host_tools=(), replayed=True)


async def test_a_host_takes_them_shows_them_again_and_runs_nothing() -> None:
    ran: list[str] = []

    @tool(approval_mode="never_require")
    def shell(commands: list[str]) -> str:
        """Runs."""
        ran.append("shell")
        return ""

    agent = Agent(ScriptedChatClient(lambda messages: str(len(messages))), name="A", tools=[shell])
    async with serving(AgentFrameworkHost(agent, channels=[ResponsesChannel()])) as client:
        made = await client.http.post("/v1/responses", json={"input": SAID})
        assert made.status_code == 200, made.text
        shown = await client.http.get(f"/v1/responses/{made.json()['id']}/input_items?order=asc")
        kept = [{name: value for name, value in item.items() if name != "id"} for item in shown.json()["data"]]
        sent = [{name: value for name, value in item.items() if name != "id"} for item in ITEMS]
        assert kept[:-1] == sent
        more = {"input": "more", "previous_response_id": made.json()["id"]}
        again = await client.http.post("/v1/responses", json=more)
        # What was said, the answer to it, and what is said now.
        assert again.json()["output"][0]["content"][0]["text"] == str(7 + 1 + 1)
    assert ran == []
