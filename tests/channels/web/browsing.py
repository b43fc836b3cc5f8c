"""What a person does on the page in a real browser, and what axe finds wrong with what they see; for tests."""

from typing import Any

import pytest

from tests.browser import PHONE, Tab
from tests.node_program import INSTALLED

AXE = INSTALLED / "axe-core" / "axe.min.js"
BOX, SEND, STOP = "textarea", "button[type=submit].send", "button.stop"
ANSWER = ".message.assistant"
DESKTOP: Any = {"width": 1100, "height": 720}


def axe_source() -> str:
    """The program of axe; without it, one line says what was not tested."""
    if not AXE.exists():
        pytest.skip("NOT TESTED: the web chat with axe-core: npm has not installed it (make test does)")
    return AXE.read_text()


async def open_page(tab: Tab, url: str) -> Tab:
    """Opens the page."""
    await tab.page.goto(f"{url}/chat")
    await tab.page.wait_for_selector(BOX)
    return tab


async def say(tab: Tab, text: str) -> None:
    """Writes something, and sends it."""
    await tab.page.fill(BOX, text)
    await tab.page.press(BOX, "Enter")


async def wait_for_text(tab: Tab, text: str, selector: str = ANSWER) -> None:
    """Waits until a message has a text."""
    await tab.page.locator(selector, has_text=text).last.wait_for()


async def violations(tab: Tab, axe: str) -> list[str]:
    """What axe finds wrong; as a script of the page it would be stopped by the policy."""
    await tab.page.evaluate(axe)
    found = await tab.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10
    return [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found["violations"]]


async def violations_on_both(tab: Tab, axe: str) -> list[str]:
    """What axe finds wrong on a phone, and on a desktop; and whether something is cut off at the side."""
    found: list[str] = []
    # What is on its way out of the picture is not a state of its own.
    await tab.page.emulate_media(reduced_motion="reduce")
    for size in (DESKTOP, PHONE):
        await tab.page.set_viewport_size(size)
        found += await violations(tab, axe)
        if not await tab.fits():
            found.append(f"cut off at {size}")
    return found
