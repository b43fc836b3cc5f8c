"""The page with a screen reader: what is announced, once each, and where the focus is after a control is gone."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from agent_framework import (
    Agent,
    Content,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)

from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import GatedAgent
from tests.browser import Tab, chromium, need_chromium
from tests.channels.web.browsing import ANSWER, STOP, open_page, say, wait_for_text
from tests.channels.web.listening import get_focused, press_focused, record, wait_for_announcements
from tests.channels.web.test_branches import build_remembering_agent
from tests.channels.web.test_browser import Moody
from tests.channels.web.test_forms import Booking
from tests.channels.web.visiting import web_host

CHROMIUM = need_chromium("the announcements of the web chat")
FORM = "Assistant: What shall it be? Form: Your name. Room. Nights (optional). Breakfast"


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


async def open_listening(new_tab: Any, url: str) -> Tab:
    """A tab whose announcements are recorded."""
    return await open_page(await record(await new_tab()), url)


async def second(tab: Tab, url: str) -> Tab:
    """Another tab of the same visitor."""
    return await open_page(await record(Tab(await tab.page.context.new_page())), url)


async def answering(message: str) -> str:
    """Answer at once, without a stream."""
    return f"An answer to **{message}**"


async def test_an_answer_that_arrived_at_once_was_not_announced(new_tab: Any) -> None:
    async with web_host(answering) as url:
        tab = await open_listening(new_tab, url)
        for count, text in enumerate(("one", "two"), 1):
            await say(tab, text)
            await wait_for_text(tab, text, f"{ANSWER}.done")
            await wait_for_announcements(tab, count)
        assert await wait_for_announcements(tab, 2) == ["Assistant: An answer to one", "Assistant: An answer to two"]


async def test_a_streamed_answer_is_announced_once_and_the_history_is_not(new_tab: Any) -> None:
    agent = GatedAgent()
    async with web_host(agent) as url:
        tab = await open_listening(new_tab, url)
        await say(tab, "one two three")
        await wait_for_text(tab, "one", f"{ANSWER}.live")
        assert await wait_for_announcements(tab, 0) == []
        agent.release.set()
        await wait_for_text(tab, "one two three", f"{ANSWER}.done")
        assert await wait_for_announcements(tab, 1) == ["Assistant: one two three"]
        await tab.page.reload()
        await wait_for_text(tab, "one two three", f"{ANSWER}.done")
        await say(tab, "four")
        assert await wait_for_announcements(tab, 1) == ["Assistant: four"]
        # The conversation is opened again from another one.
        await tab.page.evaluate("location.hash = 'main/1'")
        await tab.page.wait_for_selector(".found")
        await say(tab, "five")
        assert await wait_for_announcements(tab, 2) == ["Assistant: four", "Assistant: five"]


async def test_a_failure_was_not_announced(new_tab: Any) -> None:
    async with web_host(Moody()) as url:
        tab = await open_listening(new_tab, url)
        await say(tab, "how are you")
        await wait_for_text(tab, "", ".message.notice")
        [failure] = await wait_for_announcements(tab, 1)
        assert failure == f"Notice: {await tab.page.inner_text('.message.notice .text')}"
        await press_focused(tab, ".message.notice .actions button")
        await wait_for_text(tab, "how are you", f"{ANSWER}.done")
        assert await wait_for_announcements(tab, 2) == [failure, "Assistant: how are you"]
        assert await get_focused(tab) == "li.message.notice.done"


def build_booking_agent() -> Agent:
    """An agent that asks before it books."""

    @tool(approval_mode="always_require")
    def book(nights: int) -> str:
        """Book a room."""
        return "done"

    call = Content.from_function_call("call-1", "book", arguments={"nights": 2})
    return Agent(ScriptedChatClient([[call], "It is booked."]), "Book.", tools=[book])


async def test_an_approval_was_announced_without_its_question_and_its_button_lost_the_focus(new_tab: Any) -> None:
    async with web_host(build_booking_agent()) as url:
        tab = await open_listening(new_tab, url)
        other = await second(tab, url)
        await say(tab, "two nights please")
        question = "Assistant: May I use book? nights: 2"
        for each in (tab, other):
            assert await wait_for_announcements(each, 1) == [question]
        may_decide = asyncio.Event()

        async def hold(route: Any) -> None:
            await may_decide.wait()
            await route.continue_()

        await tab.page.route("**/api/approvals/*", hold)
        await press_focused(tab, ".card button.primary")
        await tab.page.wait_for_selector(".card button[aria-disabled=true]")
        assert await get_focused(tab) == "button.primary"
        may_decide.set()
        await tab.page.wait_for_selector(".card.approved")
        assert await get_focused(tab) == "section.card.settled.approved"
        assert await tab.page.evaluate("document.activeElement.ariaLabel") == "book: Approved"
        # In the tab that has decided, the card is read out because it has the focus.
        assert await wait_for_announcements(tab, 2) == [question, "Assistant: It is booked."]
        asked, decided, answered = await wait_for_announcements(other, 3)
        assert (asked, answered) == (question, "Assistant: It is booked.")
        who_and_when = r"vis_.{4}….{4} on web, [^.]+"
        assert re.fullmatch(rf"Assistant: book Approved\. {who_and_when}\. nights: 2", decided), decided
        await tab.page.unroute("**/api/approvals/*")
        await tab.page.reload()
        await wait_for_text(tab, "It is booked.", f"{ANSWER}.done")
        assert await wait_for_announcements(tab, 0) == []


async def test_a_decision_that_came_too_late_is_announced_with_what_was_decided(new_tab: Any) -> None:
    async with web_host(build_booking_agent()) as url:
        tab = await open_listening(new_tab, url)
        # This tab hears of nothing after the question.
        silent = asyncio.Event()

        def pass_on(socket: Any) -> None:
            server = socket.connect_to_server()
            server.on_message(lambda text: None if silent.is_set() else socket.send(text))

        other = await record(Tab(await tab.page.context.new_page()))
        await other.page.route_web_socket("**/api/feed*", pass_on)
        await open_page(other, url)
        await say(tab, "two nights please")
        await wait_for_announcements(other, 1)
        silent.set()
        await press_focused(tab, ".card button.primary")
        await wait_for_text(tab, "It is booked.", f"{ANSWER}.done")
        await press_focused(other, ".card .actions button:last-child")
        assert (await wait_for_announcements(other, 2))[1:] == ["Assistant: It was decided before."]
        # The card is read out because it has the focus.
        assert await get_focused(other) == "section.card.settled.approved"


async def test_a_form_is_announced_with_its_fields_and_its_answer_once(new_tab: Any) -> None:
    async with web_host(Booking()) as url:
        tab = await open_listening(new_tab, url)
        other = await second(tab, url)
        await say(tab, "a room please")
        assert await wait_for_announcements(tab, 1) == await wait_for_announcements(other, 1) == [FORM]
        await tab.page.get_by_label("Your name").fill("Ada")
        await tab.page.get_by_label("Room").select_option("garden")
        await press_focused(tab, "form.card button[type=submit]")
        done = "Assistant: Ada has the garden for 1"
        await wait_for_text(tab, "Ada has the garden for 1", f"{ANSWER}.done")
        assert await wait_for_announcements(tab, 2) == [FORM, done]
        assert await get_focused(tab) == "li.message.assistant.done"
        assert await wait_for_announcements(other, 3) == [FORM, "Assistant: Answered.", done]


class Chooser(Executor):
    """Asks which way to go."""

    def __init__(self) -> None:
        super().__init__("chooser")

    @handler
    async def ask(self, text: str, context: WorkflowContext[str, str]) -> None:
        choices: Any = Literal["left", "right"]
        await context.request_info({"question": "Which way?"}, choices)

    @response_handler
    async def go(self, asked: dict[str, Any], way: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"You go {way}")


def _build_chooser() -> Workflow:
    chooser = Chooser()
    return WorkflowBuilder(name="chooser", start_executor=chooser, output_from=[chooser]).build()


async def test_a_choice_is_announced_with_its_buttons(new_tab: Any) -> None:
    async with web_host(_build_chooser) as url:
        tab = await open_listening(new_tab, url)
        await say(tab, "hello")
        assert await wait_for_announcements(tab, 1) == ["Assistant: Which way? left. right"]
        await press_focused(tab, ".choices button:last-child")
        assert (await wait_for_announcements(tab, 2))[1:] == ["Assistant: You go right"]
        assert await get_focused(tab) != "body"


async def test_an_answer_that_is_stopped_is_announced_once(new_tab: Any) -> None:
    agent = GatedAgent()
    async with web_host(agent) as url:
        tab = await open_listening(new_tab, url)
        await say(tab, "four five")
        await wait_for_text(tab, "four", f"{ANSWER}.live")
        await press_focused(tab, STOP)
        await tab.page.wait_for_selector(f"{ANSWER}.stopped")
        await tab.page.wait_for_selector(STOP, state="detached")
        assert await get_focused(tab) == "textarea"
        agent.release.set()
        await say(tab, "six")
        assert await wait_for_announcements(tab, 2) == ["Assistant: four. Stopped.", "Assistant: six"]


async def test_an_answer_that_is_stopped_before_its_first_word_is_announced(new_tab: Any) -> None:
    asked = asyncio.Event()

    async def never(message: str) -> str:
        asked.set()
        await asyncio.Event().wait()
        return message

    async with web_host(never) as url:
        tab = await open_listening(new_tab, url)
        await say(tab, "hello")
        await asked.wait()
        await press_focused(tab, STOP)
        await tab.page.wait_for_selector(STOP, state="detached")
        assert await wait_for_announcements(tab, 1) == ["Assistant: Stopped."]


async def test_an_answer_to_an_edited_message_is_announced_once(new_tab: Any) -> None:
    agent, _ = build_remembering_agent()
    async with web_host(agent) as url:
        tab = await open_listening(new_tab, url)
        await say(tab, "one")
        await wait_for_announcements(tab, 1)

        async def late(route: Any) -> None:
            # The page reads the branch when the answer is there already.
            while "answer 1" not in await (answer := await route.fetch()).text():
                pass
            await route.fulfill(response=answer)

        await tab.page.route("**/api/conversations/cnv_*/messages*", late)
        await press_focused(tab, ".message.user .small")
        await tab.page.fill("#edit", "two")
        await tab.page.press("#edit", "Enter")
        await wait_for_text(tab, "answer 1", f"{ANSWER}.done")
        await tab.page.unroute("**/api/conversations/cnv_*/messages*")
        await say(tab, "three")
        assert await wait_for_announcements(tab, 3) == [
            "Assistant: answer 0",
            "Assistant: answer 1",
            "Assistant: answer 2",
        ]


async def test_an_answer_that_the_feed_has_missed_is_announced_without_the_history(new_tab: Any) -> None:
    async with web_host(answering) as url:
        tab = await record(await new_tab())
        away = asyncio.Event()
        missed: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        sockets: list[Any] = []

        def pass_on(socket: Any) -> None:
            sockets.append(socket)

            def receive(text: str) -> None:
                if not away.is_set():
                    socket.send(text)
                elif "An answer" in text:
                    missed.put_nowait(json.loads(text))

            socket.connect_to_server().on_message(receive)

        await tab.page.route_web_socket("**/api/feed*", pass_on)
        await open_page(tab, url)
        await say(tab, "one")
        await wait_for_announcements(tab, 1)
        away.set()
        await say(tab, "two")
        frame = await missed.get()
        away.clear()
        sockets[-1].send(json.dumps({**frame, "events": [{"type": "reset"}]}))
        assert await wait_for_announcements(tab, 2) == ["Assistant: An answer to one", "Assistant: An answer to two"]
