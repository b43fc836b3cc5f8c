"""Conversations with the page, over HTTP and its feed."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost, Caller, ChannelContext, ChannelContribution, ChannelIdentity
from frontdesk.channels.web import WebChatChannel
from frontdesk.channels.web.config import FeedLimits
from frontdesk.channels.web.parse import to_item
from frontdesk.channels.web.wire import MAIN, SendBody
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent, FailingAgent, GatedAgent, serving
from tests.channels.web.visiting import Visitor, open_visitor, web_host


async def test_a_message_is_answered_and_both_stay() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada:
        await ada.say("hello there")
        messages = await ada.wait_for_messages(2)
        assert [(message.get("role", "assistant"), message["text"]) for message in messages] == [
            ("user", "hello there"),
            ("assistant", "hello there"),
        ]
        assert messages[0]["client_id"] == "c1"


async def test_an_answer_is_seen_while_it_is_written_and_each_character_comes_once() -> None:
    agent = GatedAgent()
    async with web_host(agent) as url, open_visitor(url) as ada, ada.feed() as page:
        await ada.say("one two three")
        await page.until(lambda page: page.texts() == ["one two three", "one "])
        assert page.messages["main", 2]["state"] == "live"
        assert page.chats["main"]["busy"] > 0
        agent.release.set()
        await page.until(lambda page: page.messages["main", 2].get("state", "done") == "done")
        await page.until(lambda page: page.chats["main"]["busy"] == 0)
        assert page.texts() == ["one two three", "one two three"]


async def test_a_page_that_is_loaded_in_mid_answer_sees_all_of_it() -> None:
    agent = GatedAgent()
    async with web_host(agent) as url, open_visitor(url) as ada, ada.feed() as first:
        await ada.say("one two three")
        await first.until(lambda page: page.texts() == ["one two three", "one "])
        assert await ada.texts() == ["one two three", "one "]
        async with ada.feed(after=first.cursor) as second:
            # The answer that is being written comes whole, whatever the cursor is.
            await second.until(lambda page: page.texts() == ["one "])
            agent.release.set()
            await second.until(lambda page: page.texts() == ["one two three"])


async def test_a_second_send_under_the_same_id_is_the_same_message() -> None:
    agent = EchoAgent()
    async with web_host(agent) as url, open_visitor(url) as ada:
        numbers = [await ada.say("hi", client_id="same") for _ in range(3)]
        await ada.wait_for_messages(2)
        await ada.say("and now")
        assert numbers == [1, 1, 1]
        assert [message["text"] for message in await ada.wait_for_messages(4)] == ["hi", "hi", "and now", "and now"]
        assert len(agent.seen) == 2


async def test_stop_ends_an_answer_and_leaves_what_was_written() -> None:
    agent = GatedAgent()
    async with web_host(agent) as url, open_visitor(url) as ada, ada.feed() as page:
        await ada.say("one two three")
        await page.until(lambda page: page.texts() == ["one two three", "one "])
        assert (await ada.post("conversations/main/stop", client_id="s1")).status_code == 200
        await page.until(lambda page: page.messages["main", 2].get("state") == "stopped")
        await page.until(lambda page: page.chats["main"]["busy"] == 0)
        assert agent.cancelled.is_set()
        assert page.texts() == ["one two three", "one "]


async def test_another_conversation_has_a_memory_of_its_own() -> None:
    client = ScriptedChatClient(lambda messages: f"{len(messages)} so far")
    async with web_host(Agent(client, "Count.")) as url, open_visitor(url) as ada:
        await ada.say("first")
        await ada.wait_for_messages(2)
        made = [(await ada.post("conversations", client_id="n1")).json()["conversation"]["id"] for _ in range(2)]
        assert made[0] == made[1]
        await ada.say("a question about\nrooms", chat=made[0])
        alone = await ada.wait_for_messages(2, chat=made[0])
        await ada.say("second")
        both = await ada.wait_for_messages(4)
        assert (alone[1]["text"], both[3]["text"]) == (client_says(1), client_says(3))
        chats = (await ada.get("me"))["conversations"]
        assert [(chat["id"], chat["title"]) for chat in chats] == [("main", ""), (made[0], "a question about rooms")]


def client_says(number: int) -> str:
    return f"{number} so far"


async def test_a_conversation_is_renamed_and_deleted() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada:
        chat = (await ada.post("conversations", client_id="n1")).json()["conversation"]["id"]
        await ada.say("x", chat=chat)
        await ada.wait_for_messages(2, chat=chat)
        assert (await ada.post(f"conversations/{chat}", title=" My  trip ")).status_code == 200
        assert (await ada.get("me"))["conversations"][1]["title"] == "My trip"
        assert (await ada.http.delete(f"/chat/api/conversations/{chat}")).status_code == 200
        assert [one["id"] for one in (await ada.get("me"))["conversations"]] == ["main"]
        assert (await ada.http.get(f"/chat/api/conversations/{chat}/messages")).status_code == 404
        assert (await ada.http.delete("/chat/api/conversations/main")).status_code == 409


async def test_a_failure_says_so_and_hides_the_reason() -> None:
    async with web_host(FailingAgent()) as url, open_visitor(url) as ada, ada.feed() as page:
        await ada.say("hello")
        notice = (await ada.wait_for_messages(2))[1]
        await page.until(lambda page: page.chats.get("main", {}).get("busy") == 0)
        assert notice["role"] == "notice"
        assert "secret" not in notice["text"]


async def test_notices_are_in_the_language_of_the_visitor() -> None:
    async with web_host(FailingAgent()) as url, open_visitor(url) as ada:
        await ada.say("hello")
        await ada.say("hallo", locale="de")
        english, german = [one["text"] for one in await ada.wait_for_messages(4) if one.get("role") == "notice"]
        assert english != german


async def test_a_failure_in_mid_answer_settles_what_was_shown() -> None:
    async with web_host(FailingAgent(after=2)) as url, open_visitor(url) as ada:
        await ada.say("one two three")
        messages = await ada.until(lambda: _find_end(ada))
        said = {message.get("role", "assistant"): message.get("state", "done") for message in messages}
        assert said in (
            {"user": "done", "notice": "done"},
            {"user": "done", "notice": "done", "assistant": "stopped"},
        )


async def _find_end(visitor: Visitor) -> list[dict[str, Any]] | None:
    messages = await visitor.messages()
    return messages if any(message.get("role") == "notice" for message in messages) else None


async def test_commands_are_answered_with_a_notice() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada:
        await ada.say("/help")
        said = (await ada.wait_for_messages(2))[1]
        assert said["role"] == "notice"
        assert "/cancel" in said["text"]
        await ada.say("/nonsense")
        assert "nonsense" in (await ada.wait_for_messages(4))[3]["text"]


async def test_an_approval_is_a_card_and_is_settled_in_all_tabs() -> None:
    booked: list[int] = []

    @tool(approval_mode="always_require")
    def book(nights: int) -> str:
        """Book a room."""
        booked.append(nights)
        return "done"

    call = Content.from_function_call("call-1", "book", arguments={"nights": 2})
    client = ScriptedChatClient([[call], "It is booked."])
    async with web_host(Agent(client, "Book.", tools=[book])) as url, open_visitor(url) as ada, ada.feed() as page:
        await ada.say("two nights please")
        card = await page.until(
            lambda page: next((m for m in page.messages.values() if m.get("question")), None),
        )
        question = await ada.get(f"approvals/{card['question']['approval_id']}")
        assert (question["tool"], question["arguments"], question["status"]) == ("book", '{"nights":2}', "pending")
        path = f"approvals/{question['approval_id']}"
        wrong = await ada.post(path, approved=True, digest="another")
        assert (wrong.json()["outcome"], booked) == ("changed", [])
        right = await ada.post(path, approved=True, digest=question["digest"])
        assert right.json()["outcome"] == "recorded"
        await page.until(lambda page: page.messages["main", card["number"]]["question"].get("outcome") == "approved")
        await page.until(lambda page: "It is booked." in page.texts())
        assert booked == [2]
        assert (await ada.post(path, approved=False, digest=question["digest"])).json()["outcome"] == "late"


async def test_a_long_answer_comes_whole() -> None:
    text = "".join(f"{number:05d} " for number in range(5_000))
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada, ada.feed() as page:
        await ada.say(text[:31_000])
        shown = await page.until(lambda page: len(page.texts()) == 2 and page.texts()[1] == text[:31_000])
        assert shown
        assert (await ada.wait_for_messages(2))[1]["text"] == text[:31_000]


async def test_server_sent_events_and_polls_tell_the_same() -> None:
    async with web_host(EchoAgent()) as url, open_visitor(url) as ada:
        await ada.say("hello")
        await ada.wait_for_messages(2)
        polled = await ada.get("poll?after=0")
        async with asyncio.timeout(60), ada.http.stream("GET", "/chat/api/events?after=0") as response:
            (frame,) = [data async for data in _first_event(response)]
        assert json.loads(frame) == polled
        assert [event["type"] for event in polled["events"]] == ["chat", "message", "message"]


async def test_polls_returned_the_same_live_text_at_once_again_and_again() -> None:
    agent = GatedAgent()
    async with web_host(agent, feed=FeedLimits(poll_seconds=0.5, look_seconds=0.1)) as url, open_visitor(url) as ada:
        await ada.say("one two three")
        polls = [await ada.get("poll?after=0")]
        async with asyncio.timeout(60):
            while not polls[-1].get("shows") or polls[-1]["events"]:
                last = polls[-1]
                polls.append(await ada.get(f"poll?after={last['cursor']}&shows={last.get('shows', '')}"))
        live = [event for poll in polls for event in poll["events"] if event.get("message", {}).get("state") == "live"]
        assert len(live) == 1
        agent.release.set()
        await ada.wait_for_messages(2)


async def test_a_feed_that_is_open_ends_at_once_when_the_server_stops() -> None:
    async with AsyncExitStack() as stack:
        async with web_host(EchoAgent()) as url:
            ada = await stack.enter_async_context(open_visitor(url))
            await ada.say("hello")
            await ada.wait_for_messages(2)
            stream = await stack.enter_async_context(ada.http.stream("GET", "/chat/api/events?after=0"))
            lines = stream.aiter_lines()
            await anext(lines)
        # A server that waits would cut it off after its grace period: it would not end well.
        async with asyncio.timeout(60):
            assert [line async for line in lines if line.startswith("data: ")]


async def test_a_websocket_that_was_open_when_the_server_stopped_kept_the_loop_busy_for_ever() -> None:
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        async with web_host(EchoAgent()) as url:
            ada = await stack.enter_async_context(open_visitor(url))
            page = await stack.enter_async_context(ada.feed())
            await ada.say("hello")
            await page.until(lambda page: len(page.texts()) == 2)
        await page.socket.wait_closed()
        assert page.socket.close_code == 1012


async def _first_event(response: httpx.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")
            return


class OpenChannel(WebChatChannel):
    """A page whose context can be called as a process does that dies in the middle of a request."""

    context: ChannelContext

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.context = context
        return super().contribute(context)


async def test_a_message_that_was_accepted_and_not_shown_is_shown_before_its_answer() -> None:
    channel = OpenChannel()
    host = AgentFrameworkHost(EchoAgent(), channels=[channel])
    async with serving(host) as client, open_visitor(client.base_url) as ada:
        visitor = next(iter(ada.http.cookies.values())).rpartition(".")[0]
        caller = Caller(identity=ChannelIdentity(channel="web", native_id=visitor))
        body = SendBody(client_id="c1", text="hello")
        await channel.context.events.accept(to_item(body, "hello", channel="web", caller=caller, chat=MAIN, now=1.0))
        messages = await ada.wait_for_messages(2)
        # The page has got no answer, and sends it again.
        assert await ada.say("hello", client_id="c1") == 1
        assert [(one.get("role", "assistant"), one["text"]) for one in messages] == [
            ("user", "hello"),
            ("assistant", "hello"),
        ]
        assert await ada.texts() == ["hello", "hello"]
