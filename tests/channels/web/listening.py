"""Records what a screen reader announces on the page, and which element has the focus; for tests."""

from typing import Any

from tests.browser import Tab

_RECORD = """
window.heard = [];
const note = (text) => text.trim() && window.heard.push(text.trim());
new MutationObserver((changes) => {
  for (const { type, target, addedNodes } of changes) {
    const element = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement;
    if (!element?.closest("[role=log]")) continue;
    if (type === "characterData") note(target.data);
    for (const node of addedNodes) note(node.textContent);
  }
}).observe(document, { childList: true, subtree: true, characterData: true });
"""


async def record(tab: Tab) -> Tab:
    """Record the announcements of each page that the tab opens from now on."""
    await tab.page.add_init_script(_RECORD)
    return tab


async def wait_for_announcements(tab: Tab, count: int) -> list[str]:
    """Return the announcements since the page was opened, once there are so many."""
    await tab.page.wait_for_function("count => window.heard.length >= count", arg=count)
    return await tab.page.evaluate("window.heard")


async def get_focused(tab: Tab) -> str:
    """Return the tag and the classes of the element that has the focus."""
    return await tab.page.evaluate("[document.activeElement.localName, ...document.activeElement.classList].join('.')")


async def press_focused(tab: Tab, selector: str) -> None:
    """Press a button by the keyboard."""
    button: Any = tab.page.locator(f"{selector}:enabled")
    await button.focus()
    await tab.page.keyboard.press("Enter")
