"""Tools and sources beside an answer: as much as is configured, while it is written and afterwards."""

import asyncio
from typing import Any

import msgspec
import pytest
from agent_framework import Agent, AgentResponse, Content, Message, tool

from frontdesk import ChannelIdentity, Citation, PushPart, ToolUse
from frontdesk.channel_storage.values import MAX_VALUE_LENGTH
from frontdesk.channels.web import WebChatChannel
from frontdesk.channels.web.channel import build_live_edit, build_replacement
from frontdesk.channels.web.mailbox import MAX_PIECE_LENGTH
from frontdesk.channels.web.render import build_stored, extract_contents, extract_sources, list_tools
from frontdesk.channels.web.wire import Content as Shown
from frontdesk.channels.web.wire import Tool
from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import Wording
from frontdesk.framework.notes import MAX_CITATIONS, MAX_DETAIL_LENGTH, MAX_TOOLS
from frontdesk.interfaces.chat import LiveView
from frontdesk.scripted import ScriptedChatClient
from tests.channels.web.visiting import open_visitor, web_host

SECRET = "hunter2"
SOURCE = {"type": "citation", "title": "The guide", "url": "https://guide.example/"}


class Looking:
    """An agent with a tool that waits until it is let go, and an answer with a source."""

    def __init__(self) -> None:
        self.release = asyncio.Event()

        @tool(approval_mode="never_require")
        async def look(word: str) -> str:
            """Look something up."""
            await self.release.wait()
            return f"found {word}"

        call = Content.from_function_call("call_1", "look", arguments=f'{{"word": "{SECRET}"}}')
        answer = Content.from_text("here it is", annotations=[SOURCE])  # pyright: ignore[reportArgumentType]
        self.agent = Agent(ScriptedChatClient([[call], [answer]]), tools=[look])


@pytest.mark.parametrize("detail", ["hidden", "names", "full"])
async def test_tools_are_shown_as_configured_live_and_afterwards(detail: Any) -> None:
    looking = Looking()
    async with web_host(looking.agent, tools=detail) as url, open_visitor(url) as ada, ada.feed() as page:
        await ada.say("look")
        if detail != "hidden":
            await page.until(lambda page: page.messages.get(("main", 2)))
            [tool_] = page.messages["main", 2]["tools"]
            assert (tool_["name"], tool_["state"]) == ("look", "running")
        looking.release.set()
        await page.until(lambda page: page.messages.get(("main", 2), {}).get("citations"))
        await ada.wait_for_messages(2)
        message = (await ada.messages())[1]
        tools = message.get("tools", [])
        assert message["citations"] == [{"title": "The guide", "url": "https://guide.example/"}]
        if detail == "hidden":
            assert tools == []
        else:
            assert tools[0]["name"] == "look"
            assert tools[0]["seconds"] >= 0
        assert (SECRET in str(page.frames) + str(message)) == (detail == "full")


def test_an_unknown_detail_is_found_at_the_start() -> None:
    wrong: Any = "some"
    assert WebChatChannel(tools=wrong).findings() == ["tools must be one of hidden, names, full, not 'some'"]


def test_the_largest_notes_fit_into_a_stored_value_beside_the_text() -> None:
    use = ToolUse(call_id="1", name="😀" * 80, state="done", arguments="😀" * MAX_DETAIL_LENGTH)
    tools = list_tools([use.replace(call_id=str(number)) for number in range(MAX_TOOLS)])
    sources = extract_sources([Citation(title="\x01" * 120, url="https://" + "a" * 900)] * MAX_CITATIONS)
    assert tools[-1].arguments
    assert not tools[0].arguments
    message = build_stored(Shown(text="\x01" * MAX_PIECE_LENGTH, tools=tools, citations=sources), "key" * 8, 1.0)
    assert len(msgspec.json.encode(message)) < MAX_VALUE_LENGTH


def test_a_whole_answer_keeps_the_times_that_were_seen() -> None:
    before = build_stored(Shown(text="x", tools=(Tool(id="1", name="look", state="done", seconds=1.5),)), "k", 1.0)
    after, _ = build_replacement(_part(), Shown(text="xy", tools=(Tool(id="1", name="look"),)))(before)
    assert after.tools == (Tool(id="1", name="look", seconds=1.5),)


def test_a_tool_of_an_answer_that_was_stopped_does_not_run_any_more() -> None:
    live = build_stored(Shown(text=""), "k", 1.0)
    live = msgspec.structs.replace(live, state="live")
    running, _ = build_live_edit(LiveView(text="", tools=(ToolUse(call_id="1", name="look"),)))(live)
    assert [tool.state for tool in running.tools] == ["running"]
    stopped, _ = build_replacement(_part(action="settle"), None)(running)
    assert [tool.state for tool in stopped.tools] == ["stopped"]


def test_the_page_shows_an_answer_of_tools_alone() -> None:
    call = Content.from_function_call("1", "look", arguments="{}")
    [part] = extract_contents(AgentResponse(messages=[Message("assistant", [call])]), Wording(Texts()), "names")
    assert (part.text, [tool.name for tool in part.tools]) == ("", ["look"])


def _part(**fields: Any) -> PushPart:
    identity = ChannelIdentity(channel="web", native_id="vis_1")
    return PushPart(identity=identity, conversation_id=None, content=None, idempotency_key="k", **fields)
