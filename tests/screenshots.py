"""Makes the pictures of the documents: `make screenshots`."""

import asyncio
from pathlib import Path
from typing import Any

from frontdesk import AgentFrameworkHost, OneTimeCodeIdentityLinker
from frontdesk.channels.web import WebChatChannel
from frontdesk.demo import build_host
from frontdesk.demo.host import ScriptedClient
from frontdesk_testing import EchoAgent, serving
from tests.browser import Tab, chromium, need_chromium
from tests.docs.pages import ROOT
from tests.docs.running import example

PICTURES = Path(__file__).parents[1] / "docs" / "images"
DESKTOP: Any = {"width": 1100, "height": 720}
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


if __name__ == "__main__":
    asyncio.run(take())
    asyncio.run(take_approvers())
