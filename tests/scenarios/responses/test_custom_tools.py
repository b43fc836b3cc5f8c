"""Tools of the client's that take a text, that have a namespace, or that come as items; and those that nobody runs."""

import json
from typing import Any

import pytest
from agent_framework import Content
from openai import BadRequestError

from frontdesk.channels.conversations import ConversationsChannel
from tests.scenarios.responses.cast import Till, agent, build_answering, call, piece
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client
from tests.scenarios.responses.sockets import dial, extract_text

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
PATCH: Any = {"type": "custom", "name": "patch", "description": "Patches.", "format": GRAMMAR}
LOOK: Any = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
SPACE: Any = {"type": "namespace", "name": "crm", "description": "About customers.", "tools": [PATCH, LOOK]}
ADDED: Any = {"type": "additional_tools", "role": "developer", "tools": [SPACE]}
HI: Any = {"role": "user", "content": "hello"}


def output(call_id: str, said: Any = "done") -> Any:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": said}


def list_told(target: Any, kind: str) -> list[Content]:
    """What the model heard of a kind, in its last call."""
    return [one for message in target.client.seen[-1] for one in message.contents if one.type == kind]


async def test_a_text_goes_out_and_its_result_comes_back(customer_of: Any) -> None:
    target = agent([call("patch", input="x")], ["patched"])
    async with open_client(target) as desk:
        customer = customer_of(desk)
        asked = await customer.create("patch it", tools=[PATCH], tool_choice={"type": "custom", "name": "patch"})
        (item,) = asked.output
        assert (item.type, item.name, item.input) == ("custom_tool_call", "patch", "x")
        assert [(tool.type, tool.name) for tool in asked.tools] == [("custom", "patch")]
        (offered,) = target.client.options[-1]["tools"]
        assert 'start: "x"' in offered.description
        result = output(item.call_id, [{"type": "input_text", "text": "done"}])
        answer = await customer.create([result], tools=[PATCH], previous_response_id=asked.id)
        assert answer.output_text == "patched"
        assert [one.call_id for one in list_told(target, "function_result")] == [item.call_id]


async def test_a_stream_tells_the_text_when_it_is_whole(customer_of: Any) -> None:
    target = agent(["now", piece("c", '{"inp', "patch"), piece("c", 'ut": "a\\nb"}')])
    async with open_client(target) as desk:
        events, asked = await customer_of(desk).stream("patch it", tools=[PATCH])
        assert [item.type for item in asked.output] == ["message", "custom_tool_call"]
        (delta,) = [event for event in events if event.type == "response.custom_tool_call_input.delta"]
        (done,) = [event for event in events if event.type == "response.custom_tool_call_input.done"]
        assert delta.delta == done.input == asked.output[1].input == "a\nb"
        assert not [event for event in events if "function_call" in event.type]


async def test_a_namespace_is_told_apart_from_its_tools() -> None:
    target = agent([call("crm__patch", "a", input="x"), call("crm__look", "b"), call("look", "c")], ["ok"], ["ok"])
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("go", tools=[SPACE, LOOK])
        assert [(item.type, item.namespace, item.name) for item in asked.output] == [
            ("custom_tool_call", "crm", "patch"),
            ("function_call", "crm", "look"),
            ("function_call", None, "look"),
        ]
        assert all("About customers." in tool.description for tool in target.client.options[-1]["tools"][:2])
        outputs = [output("a"), *({"type": "function_call_output", "call_id": one, "output": "o"} for one in "bc")]
        await customer.create(outputs, tools=[SPACE, LOOK], previous_response_id=asked.id)
        # A client that keeps the history itself says all of it again.
        history = [item.to_dict(mode="json") for item in asked.output]
        await customer.create([HI, *history, *outputs], tools=[SPACE, LOOK], store=False)
        assert [one.name for one in list_told(target, "function_call")] == ["crm__patch", "crm__look", "look"]
        assert json.loads(str(list_told(target, "function_call")[0].arguments)) == {"input": "x"}


async def test_tools_that_come_as_items_are_offered() -> None:
    target = agent([call("crm__look", "a")], ["ok"])
    async with open_client(target, beside=[ConversationsChannel()]) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create([ADDED, HI], tool_choice="required")
        assert [(item.namespace, item.name) for item in asked.output] == [("crm", "look")]
        assert [item.type for item in await customer.input_items(asked.id, order="asc")] == [
            "additional_tools",
            "message",
        ]
        made = await customer.api.conversations.create(items=[ADDED, HI])
        assert (await customer.create("and", conversation=made.id)).output_text == "ok"


async def test_a_connection_remembers_the_tools_that_came_as_items() -> None:
    target = agent([call("crm__patch", "a", input="x")], [call("more", "b")], ["ok"])
    more = {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "more"}]}
    async with open_client(target) as desk, dial(desk) as line:
        first = await line.response([ADDED, HI], store=False)
        second = await line.response([output("a"), more], store=False, previous_response_id=first["id"])
        assert [item["name"] for item in second["output"]] == ["more"]
        offered = [tool.name for tool in target.client.options[-1]["tools"]]
        assert offered == ["crm__patch", "crm__look", "more"]
        last = {"type": "function_call_output", "call_id": "b", "output": "o"}
        assert extract_text(await line.response([last], store=False, previous_response_id=second["id"])) == "ok"


async def test_a_connection_remembers_no_more_tools_than_a_request_may_bring() -> None:
    def tools(start: int) -> Any:
        some = [{"type": "function", "name": f"f{start + number}"} for number in range(100)]
        return {"type": "additional_tools", "role": "developer", "tools": some}

    async with open_client(build_answering(lambda _: ["ok"])) as desk, dial(desk) as line:
        first = await line.response([tools(0), HI], store=False)
        # The same once more are no more than they were.
        again = await line.response([tools(0), HI], store=False, previous_response_id=first["id"])
        error = await line.error([tools(100), HI], store=False, previous_response_id=again["id"])
        assert (error["status"], "128 tools" in error["message"]) == (400, True)


async def test_what_clients_send_unasked_is_left_out_and_not_shown() -> None:
    target = build_answering(lambda _: ["ok"])
    unasked: Any = [{"type": "web_search"}, {"type": "image_generation"}, {"type": "tool_search"}, LOOK]
    async with open_client(target) as desk:
        answer = await AsyncCustomer(desk).create("go", tools=unasked)
        assert [tool.name for tool in answer.tools] == ["look"]
        assert [tool.name for tool in target.client.options[-1]["tools"]] == ["look"]
        with pytest.raises(BadRequestError):
            await AsyncCustomer(desk).create("go", tools=unasked, tool_choice={"type": "web_search"})


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{"type": "namespace", "name": "a b", "tools": [LOOK]}]}, "tools[0].name"),
        ({"tools": [{"type": "namespace", "name": "crm", "tools": []}]}, "tools[0].tools"),
        ({"tools": [{"type": "namespace", "name": "crm", "tools": ["x"]}]}, "tools[0].tools[0]"),
        ({"tools": [{"type": "namespace", "name": "crm", "tools": [SPACE]}]}, "tools[0].tools[0].type"),
        ({"tools": [{"type": {}, "name": "x"}]}, "tools[0].type"),
        ({"tools": [{"type": "custom", "name": "a b"}]}, "tools[0].name"),
        ({"tools": [{**PATCH, "format": {"type": "grammar"}}]}, "tools[0].format"),
        ({"tools": [PATCH, {**LOOK, "name": "patch"}]}, "tools[1].name"),
        ({"tools": [SPACE], "tool_choice": {"type": "function", "name": "look"}}, "tool_choice"),
        ({"input": [{**ADDED, "role": "user"}, HI]}, "input[0].role"),
        ({"input": [{**ADDED, "tools": "x"}, HI]}, "input[0].tools"),
        ({"input": [{**ADDED, "tools": ["x"]}, HI]}, "input[0].tools[0]"),
        ({"input": [{**ADDED, "tools": [LOOK] * 129}, HI]}, "input[0].tools"),
        ({"input": [ADDED]}, "input"),
        ({"input": [HI, {"type": "custom_tool_call", "call_id": "a", "name": "patch"}]}, "input[1].input"),
        ({"input": [HI, {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "x"}]}, "input"),
        (
            {"input": [HI, {"type": "custom_tool_call", "call_id": "a", "name": "x", "namespace": "a b", "input": ""}]},
            "input[1].namespace",
        ),
        (
            {"input": [HI, {"type": "custom_tool_call", "call_id": "a", "name": "Add", "input": "x"}, output("a")]},
            "input[1].name",
        ),
        ({"tools": [{"type": "custom", "name": "add"}]}, "tools"),
    ],
)
async def test_what_is_wrong_with_a_tool_is_named(body: Any, param: str) -> None:
    till = Till()
    async with open_client(till.agent(["ok"])) as desk:
        answer = await desk.post({"input": "hello", **body})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
        assert (till.ran, desk.untouched()) == ([], True)
