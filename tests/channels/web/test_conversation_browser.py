"""A conversation in a real browser: tools, sources, forms, branches and the list, with axe on each state."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from playwright.async_api import Error

from frontdesk import AgentFrameworkHost, ChannelIdentity, ChannelRequest, ChannelSession, ResponseTarget
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk_testing import EchoAgent, serving
from tests.browser import chromium, need_chromium
from tests.channels.web.browsing import ANSWER, DESKTOP, axe_source, open_page, say, violations_on_both, wait_for_text
from tests.channels.web.test_branches import build_remembering_agent
from tests.channels.web.test_forms import Booking
from tests.channels.web.test_notes import SECRET, Looking
from tests.channels.web.visiting import web_host
from tests.scenarios.delivery.house import person

CHROMIUM = need_chromium("the web chat")


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_source()


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


async def test_a_tool_is_a_line_that_opens_and_sources_are_numbered_links(new_tab: Any, axe: str) -> None:
    looking = Looking()
    async with web_host(looking.agent, tools="full") as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "look")
        await tab.page.wait_for_selector(".tool.running")
        running = await violations_on_both(tab, axe)
        looking.release.set()
        await wait_for_text(tab, "here it is", f"{ANSWER}.done")
        await tab.page.reload()
        line = tab.page.locator(".tool.done summary")
        await line.wait_for()
        assert re.fullmatch(r"look done · [1-9\d.]+ s", await line.inner_text())
        await line.click()
        assert SECRET in await tab.page.locator(".tool dd").inner_text()
        assert await tab.page.locator(".tool pre").inner_text() == f"found {SECRET}"
        link = tab.page.locator(".sources li a")
        assert (await link.inner_text(), await link.get_attribute("href")) == ("The guide", "https://guide.example/")
        assert {"running": running, "open": await violations_on_both(tab, axe)} == {"running": [], "open": []}
        assert tab.complaints == []


async def test_a_form_says_what_is_missing_and_is_answered(new_tab: Any, axe: str) -> None:
    desk = Booking()
    async with web_host(desk) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "a room please")
        await tab.page.wait_for_selector("form.card")
        found = {"form": await violations_on_both(tab, axe)}
        await tab.page.click("form.card button[type=submit]")
        await wait_for_text(tab, "Fill this in.", "form.card .problem")
        assert await tab.page.locator("form.card .problem").count() == 2
        assert await tab.page.evaluate("document.activeElement.name") == "form-2.name"
        found["problems"] = await violations_on_both(tab, axe)
        await tab.page.get_by_label("Your name").fill("Ada")
        await tab.page.get_by_label("Room").select_option("garden")
        await tab.page.get_by_label("Nights").fill("31")
        await tab.page.press("form.card [name='form-2.nights']", "Enter")
        await wait_for_text(tab, "Enter 30 or less.", "form.card .problem")
        assert await tab.page.locator("form.card .problem").count() == 1
        await tab.page.get_by_label("Nights").fill("3")
        await tab.page.get_by_label("Breakfast").check()
        await tab.page.click("form.card button[type=submit]")
        await wait_for_text(tab, "Ada has the garden for 3", f"{ANSWER}.done")
        await tab.page.wait_for_selector("form.card", state="detached")
        assert found == {state: [] for state in found}
        assert [stay.breakfast for stay in desk.booked] == [True]
        assert tab.complaints == []


async def test_a_message_is_edited_and_its_versions_are_turned_over(new_tab: Any, axe: str) -> None:
    agent, _ = build_remembering_agent()
    async with web_host(agent) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "one")
        await wait_for_text(tab, "answer 0", f"{ANSWER}.done")
        await say(tab, "two")
        await wait_for_text(tab, "answer 1", f"{ANSWER}.done")
        await tab.page.press("textarea", "ArrowUp")
        found = {"editing": await violations_on_both(tab, axe)}
        await tab.page.fill("#edit", "two and a half")
        await tab.page.press("#edit", "Enter")
        await wait_for_text(tab, "answer 2", f"{ANSWER}.done")
        await wait_for_text(tab, "Version 2 of 2", ".versions")
        found["versions"] = await violations_on_both(tab, axe)
        assert "answer 1" not in await tab.text()
        await tab.page.get_by_role("button", name="Version before").click()
        await wait_for_text(tab, "answer 1", f"{ANSWER}.done")
        await wait_for_text(tab, "Version 1 of 2", ".versions")
        assert "two and a half" not in await tab.text()
        await tab.page.get_by_role("button", name="Answer again").click()
        await wait_for_text(tab, "Version 3 of 3", ".versions")
        await wait_for_text(tab, "answer 3", f"{ANSWER}.done")
        await tab.page.reload()
        await wait_for_text(tab, "Version 3 of 3", ".versions")
        await tab.page.get_by_label("More about this conversation").click()
        found["menu"] = await violations_on_both(tab, axe)
        await tab.page.get_by_role("button", name="Delete this version").click()
        await tab.page.locator("dialog button.primary").click()
        await wait_for_text(tab, "Version 1 of 2", ".versions")
        assert found == {state: [] for state in found}
        assert tab.complaints == []


async def test_an_edited_message_keeps_drops_and_gets_files(new_tab: Any, axe: str) -> None:
    agent, client = build_remembering_agent()

    def file(name: str) -> Any:
        return {"name": name, "mimeType": "text/plain", "buffer": name.encode()}

    async with web_host(agent) as url:
        tab = await open_page(await new_tab(), url)
        await tab.page.locator("footer input[type=file]").set_input_files([file("kept.txt"), file("dropped.txt")])
        await tab.page.locator(".attached li").nth(1).wait_for()
        await tab.page.press("textarea", "Enter")
        await wait_for_text(tab, "answer 0", f"{ANSWER}.done")
        await tab.page.get_by_role("button", name="Edit").click()
        await tab.page.get_by_role("button", name="Remove dropped.txt").click()
        await tab.page.locator(".editor input[type=file]").set_input_files([file("new.txt")])
        await tab.page.locator(".editor li", has_text="new.txt").wait_for()
        assert await violations_on_both(tab, axe) == []
        await tab.page.press("#edit", "Enter")
        await wait_for_text(tab, "answer 1", f"{ANSWER}.done")
        assert await tab.page.locator(".message.user .file bdi").all_inner_texts() == ["kept.txt", "new.txt"]
        await tab.page.get_by_role("button", name="Answer again").click()
        await wait_for_text(tab, "answer 2", f"{ANSWER}.done")
        assert [len(messages[-1].contents) for messages in client.seen] == [2, 2, 2]
        assert tab.complaints == []


async def test_an_answer_that_had_ended_was_shown_as_being_written_after_an_edit(new_tab: Any) -> None:
    may_answer = asyncio.Event()
    may_answer.set()

    async def answering(message: str) -> str:
        await may_answer.wait()
        return f"answer to {message}"

    async with web_host(answering) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "one")
        await wait_for_text(tab, "answer to one", f"{ANSWER}.done")
        may_answer.clear()

        async def hold(route: Any) -> None:
            # The page gets the list of the time before the answer after the feed has sent that the answer has ended.
            before = await route.fetch()
            assert (await before.json())["conversations"][-1]["busy"]
            may_answer.set()
            # The page may give the request up meanwhile.
            with suppress(Error):
                while (await (await route.fetch()).json())["conversations"][-1]["busy"]:
                    pass
                await route.fulfill(response=before)

        await tab.page.route("**/api/me", hold)
        await tab.page.get_by_role("button", name="Edit").click()
        await tab.page.fill("#edit", "two")
        await tab.page.press("#edit", "Enter")
        await wait_for_text(tab, "answer to two", f"{ANSWER}.done")
        # The host says for 15 s that it writes an answer.
        await tab.page.get_by_role("button", name="Answer again").click(timeout=10_000)
        await tab.page.unroute("**/api/me")


async def test_conversations_are_searched_archived_and_continued_everywhere(new_tab: Any, axe: str) -> None:
    async with web_host(EchoAgent()) as url:
        tab = await open_page(await new_tab(), url)
        for number in range(14):
            await say(tab, f"word {number}")
            await wait_for_text(tab, f"word {number}", f"{ANSWER}.done")
        await tab.page.set_viewport_size(DESKTOP)
        await tab.page.click("button.new")
        await tab.page.wait_for_url(re.compile("#cnv_"))
        await say(tab, "the treasure map")
        await wait_for_text(tab, "the treasure map", f"{ANSWER}.done")
        await tab.page.fill("#search", "word 3")
        await tab.page.locator(".hit").nth(1).wait_for()
        found = {"results": await violations_on_both(tab, axe)}
        await tab.page.set_viewport_size(DESKTOP)
        await tab.page.locator(".hit").nth(1).click()
        await tab.page.wait_for_selector(".found")
        assert await tab.page.locator(".found").inner_text() == "You\nword 3"
        await tab.page.get_by_role("button", name="Jump to the latest message").click()
        await wait_for_text(tab, "word 13", f"{ANSWER}.done")
        await tab.page.fill("#search", "treasure")
        await tab.page.locator(".side a", has_text="the treasure map").first.click()
        await tab.page.fill("#search", "")
        await tab.page.get_by_label("More about this conversation").click()
        await tab.page.get_by_role("button", name="Continue everywhere").click()
        found["dialog"] = await violations_on_both(tab, axe)
        await tab.page.set_viewport_size(DESKTOP)
        await tab.page.locator("dialog button.primary").click()
        await wait_for_text(tab, "Your other chats go on with this conversation now.", "footer p")
        await tab.page.get_by_label("More about this conversation").click()
        await tab.page.get_by_role("button", name="Archive conversation").click()
        await tab.page.locator("summary", has_text="Archived (1)").click()
        await tab.page.locator(".archive a", has_text="the treasure map").wait_for()
        found["archive"] = await violations_on_both(tab, axe)
        assert found == {state: [] for state in found}
        assert tab.complaints == []


async def test_an_answer_from_another_channel_appears_with_its_origin(new_tab: Any, axe: str) -> None:
    visitors: list[str] = []

    def to_the_visitor(request: ChannelRequest, **_: Any) -> ChannelRequest:
        who = ChannelIdentity(channel="web", native_id=visitors[0])
        session = ChannelSession(isolation_key=person(who))
        return request.replace(identity=who, session=session, response_target=ResponseTarget.identity(who))

    channels = [WebChatChannel(), InvocationsChannel(run_hook=to_the_visitor)]
    host = AgentFrameworkHost(EchoAgent(), channels=channels, identity_resolver=person)
    async with serving(host) as client:
        tab = await open_page(await new_tab(), client.base_url)
        await say(tab, "hello")
        await wait_for_text(tab, "hello", f"{ANSWER}.done")
        [cookie] = await tab.page.context.cookies()
        visitors.append(cookie.get("value", "").partition(".")[0])
        sent = await client.http.post("/invocations", json={"message": "your table is free"})
        assert sent.status_code == 202, sent.text
        await wait_for_text(tab, "your table is free", f"{ANSWER}.done")
        assert await tab.page.locator(".origin").inner_text() == "Asked on invocations"
        assert await violations_on_both(tab, axe) == []
        assert tab.complaints == []
