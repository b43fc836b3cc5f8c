"""A real browser, as a person would use it."""

import asyncio
import atexit
import contextlib
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright

OPTIONS = (
    *("--no-sandbox", "--headless", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
    # With each window the browser would load pages of its own, whose scripts compete with ours for the processor. The
    # list stands in the place of Playwright's: the rest of it is what that turns off too.
    "--disable-features=LocalNetworkAccessChecks,WebUIOmniboxPopup,WebUIOmniboxAimPopup,HttpsUpgrades,MediaRouter,OptimizationHints,"
    "PaintHolding,ThirdPartyStoragePartitioning,Translate",
)
PHONE: Any = {"width": 360, "height": 740}


def need_chromium(what: str) -> str:
    """The program; without it, one line says what was not tested."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip(
            f"NOT TESTED: {what} in a browser: there is no chromium (make test installs Debian's, when run as root)",
            allow_module_level=True,
        )
    return found


class Tab:
    """A page on a phone, and what the browser had to complain about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def text(self) -> str:
        """What a person reads."""
        return await self.page.inner_text("body")

    async def fits(self) -> bool:
        """Whether nothing is cut off at the side."""
        return await self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@cache
def _start(program: str) -> str:
    """Start the browser of this process, which its tests share; return where it takes commands."""
    profile = tempfile.mkdtemp(prefix="browser-")
    # A proxy of the machine's has no business on its own loopback address.
    options = [*OPTIONS, "--no-proxy-server", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        [program, *options, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    atexit.register(_end, process, profile)
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"DevTools listening on (ws://\S+)", line):
            # It goes on to write there, and would wait for a reader.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found[1]
    raise RuntimeError(f"{program} ended at its start, with the code {process.wait()}")


def _end(process: "subprocess.Popen[str]", profile: str) -> None:
    process.kill()
    process.wait()
    shutil.rmtree(profile, ignore_errors=True)


@contextlib.asynccontextmanager
async def chromium(program: str) -> AsyncIterator[Any]:
    """Opens tabs, each in a browser profile of its own; the profiles end with the block."""
    address = await asyncio.to_thread(_start, program)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(address)

        async def tab() -> Tab:
            context = await browser.new_context(viewport=PHONE)
            return Tab(await context.new_page())

        try:
            yield tab
        finally:
            await browser.close()
