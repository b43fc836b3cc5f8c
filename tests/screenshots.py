"""Makes the pictures of the documents: `make screenshots`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRule, ChannelIdentity, OneTimeCodeIdentityLinker
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.demo import build_host
from frontdesk.demo.host import ScriptedClient
from frontdesk.interfaces.chat import PushTerms
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.telegram import FakeTelegram
from frontdesk_testing.telegram.page.routes import PeoplePage
from frontdesk_testing.telegram.records import User
from frontdesk_testing.telegram.server import serve_on
from tests.agui_page import open_agui_page
from tests.browser import Tab, chromium, need_chromium
from tests.docs.pages import ROOT
from tests.docs.running import example, example_module

PICTURES = Path(__file__).parents[1] / "docs" / "images"
DESKTOP: Any = {"width": 1100, "height": 720}
TALL: Any = {"width": 360, "height": 980}
QUESTIONS = ("When is breakfast?", "Show me the view")


async def ask(tab: Tab, text: str, answers: int) -> None:
    """Says something, and waits for so many answers that are complete."""
    await tab.page.fill("textarea", text)
    await tab.page.press("textarea", "Enter")
    await tab.page.locator(".message.assistant.done").nth(answers - 1).wait_for()


async def take() -> None:
    """Plays a conversation with the demo, and takes its pictures."""
    PICTURES.mkdir(exist_ok=True)
    async with serving(build_host(ScriptedClient(pause=0))) as client, chromium(need_chromium("pictures")) as new_tab:
        tab = await new_tab()
        await tab.page.goto(f"{client.base_url}/chat")
        for number, question in enumerate(QUESTIONS, 1):
            await ask(tab, question, number)
        await ask(tab, "Book a sea view room for two nights", len(QUESTIONS) + 1)
        await tab.page.wait_for_selector(".card dl")
        await tab.page.wait_for_selector(".working", state="detached")
        await tab.page.screenshot(path=PICTURES / "web-chat-phone.png")
        await tab.page.click(".card button.primary")
        await tab.page.wait_for_selector(".card.approved")
        await tab.page.locator(".message", has_text="Booked").wait_for()
        await tab.page.wait_for_selector(".working", state="detached")
        await tab.page.set_viewport_size(DESKTOP)
        await tab.page.emulate_media(color_scheme="dark")
        await tab.page.screenshot(path=PICTURES / "web-chat.png")
        await tab.page.emulate_media(color_scheme="light")
        await tab.page.goto(f"{client.base_url}/restaurant/chat")
        await tab.page.click(".prompts button")
        await tab.page.wait_for_selector("form.card")
        await tab.page.wait_for_selector(".working", state="detached")
        await tab.page.screenshot(path=PICTURES / "web-chat-form.png")
        await tab.page.close()


async def take_agui() -> None:
    """Plan a trip in the page with an AG-UI client, and take a picture before the booking is approved."""
    async with (
        serving(example(ROOT / "docs/examples/agui_page.py")) as client,
        chromium(need_chromium("pictures")) as new_tab,
    ):
        tab = await new_tab()
        await tab.page.set_viewport_size({"width": 900, "height": 420})
        await open_agui_page(tab.page, client.base_url)
        for text, shown in (("Plan a weekend in Vienna", "#plan li"), ("Yes, book it", ".question")):
            await tab.page.fill("input", text)
            await tab.page.press("input", "Enter")
            await tab.page.wait_for_selector(shown)
        await tab.page.screenshot(path=PICTURES / "agui-page.png")
        await tab.page.close()


async def take_approvers() -> None:
    """Lets a visitor be asked for an approval by the example, and takes a picture of the card before and after."""
    async with (
        serving(example(ROOT / "docs/examples/approvers.py")) as client,
        chromium(need_chromium("pictures")) as new_tab,
    ):
        tab = await new_tab()
        await tab.page.goto(f"{client.base_url}/chat")
        await tab.page.fill("textarea", "/duty")
        await tab.page.press("textarea", "Enter")
        await tab.page.locator(".message", has_text="on duty").wait_for()
        await client.invoke("refund, please", session_id="visit")
        await tab.page.wait_for_selector(".card dl")
        await tab.page.screenshot(path=PICTURES / "approver-card.png")
        await tab.page.click(".card button.primary")
        await tab.page.wait_for_selector(".card.approved")
        await tab.page.screenshot(path=PICTURES / "approver-decided.png")
        await tab.page.close()
        await take_account(await new_tab())


async def take_account(tab: Tab) -> None:
    """Takes a picture of the panel that links accounts."""
    linker = OneTimeCodeIdentityLinker()
    page = WebChatChannel(title="The Marmalade", greeting="Good day! What can we do for you?")
    async with serving(AgentFrameworkHost(EchoAgent(), channels=[page], linker=linker)) as client:
        await tab.page.goto(f"{client.base_url}/chat")
        await tab.page.click("header button[aria-haspopup=dialog]")
        await tab.page.locator("dialog.account").get_by_role("button", name="Show a code").click()
        await tab.page.wait_for_selector("dialog.account output")
        await tab.page.screenshot(path=PICTURES / "web-chat-account.png")
        await tab.page.close()


@asynccontextmanager
async def serve_asking_bob() -> AsyncIterator[tuple[FakeTelegram, User, str]]:
    """Serve the agent of the tutorial, whose refunds Bob approves on a fake Telegram; yield it, Bob and the host."""
    telegram = FakeTelegram()
    ann, bob = telegram.user("Ann"), telegram.user("Bob")
    async with serve_on(telegram.app(PeoplePage(telegram).routes()), 0) as url:
        agent = example_module(ROOT / "docs/examples/team/agent.py").agent
        rule = ApproverRule(approvers=[ChannelIdentity(channel="telegram", native_id=str(bob.id))])
        chat = TelegramChannel(bot_token=telegram.token, api_url=url, transport="polling", push_terms=PushTerms())
        telegram.url = url
        host = AgentFrameworkHost(
            agent,
            channels=[WebChatChannel(title="Support"), chat],
            approvals=ApprovalOptions(tools={"refund": rule}),
        )
        async with serving(host) as client:
            for person in (ann, bob):
                telegram.say(person, "Hello")
                await telegram.until(partial(_answers, telegram, person))
            yield telegram, bob, client.base_url
        await telegram.close()


def _answers(telegram: FakeTelegram, person: User) -> bool:
    return bool(telegram.shown(telegram.private(person)).answers)


async def take_colleague() -> None:
    """Take pictures of a requester on the page and in Telegram, and of the colleague whom they wait for."""
    async with serve_asking_bob() as (telegram, bob, url), chromium(need_chromium("pictures")) as new_tab:
        visitor, phone = await new_tab(), await new_tab()
        await visitor.page.goto(f"{url}/chat")
        await visitor.page.fill("textarea", "Please refund order 7")
        await visitor.page.press("textarea", "Enter")
        await visitor.page.wait_for_selector(".card dl")
        await visitor.page.wait_for_selector(".working", state="detached")
        await visitor.page.screenshot(path=PICTURES / "requester-card.png")
        await phone.page.set_viewport_size(TALL)
        await phone.page.goto(telegram.url)
        chat = phone.page.locator("#messages")
        await phone.page.select_option("#user", label="Bob")
        await phone.page.get_by_role("button", name="Approve").wait_for()
        await chat.screenshot(path=PICTURES / "telegram-approver.png")
        await phone.page.get_by_role("button", name="Approve").click()
        await visitor.page.locator(".message", has_text="Refunded").wait_for()
        await visitor.page.screenshot(path=PICTURES / "requester-decided.png")
        await phone.page.get_by_role("button", name="Approve").wait_for(state="detached")
        await chat.screenshot(path=PICTURES / "telegram-decided.png")
        await phone.page.select_option("#user", label="Ann")
        await phone.page.fill("#text", "Please refund order 7")
        await phone.page.press("#text", "Enter")
        await telegram.until(lambda: any(message.buttons for message in telegram.shown(telegram.private(bob)).messages))
        await phone.page.locator(".message", has_text="refund").nth(1).wait_for()
        await chat.screenshot(path=PICTURES / "telegram-requester.png")


if __name__ == "__main__":
    asyncio.run(take())
    asyncio.run(take_approvers())
    asyncio.run(take_agui())
    asyncio.run(take_colleague())
