"""The page over a bad network and a long time: `make soak`, or `make soak ARGS="--minutes 5"`.

It measures on a throttled phone how soon the page can be used, opens a conversation of ten thousand messages, talks
over slow 3G, and streams answers for an hour while the memory of the page is watched. The exit code is 1 if something
is over its limit.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from agent_framework import AgentResponseUpdate

from frontdesk import AgentFrameworkHost, ChannelContext, ChannelContribution
from frontdesk.channels.web import WebChatChannel
from frontdesk.channels.web.mailbox import Mailbox, MessageRef
from frontdesk.channels.web.wire import MAIN, StoredMessage
from frontdesk_testing import EchoAgent, serving
from tests.browser import Tab, chromium, need_chromium

BOX, ANSWER = "textarea", ".message.assistant"
MESSAGES = 10_000
MEGABYTE = 1024 * 1024
DAY = 86_400.0
READY = """
const look = () => {
  if (document.querySelector("textarea")) window.readyAt = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
OPEN = """async () => {
  const begun = performance.now();
  location.hash = "main";
  while (document.querySelectorAll(".message").length < 50) await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""


@dataclass(frozen=True)
class Profile:
    """A network and a processor, as CDP takes them."""

    name: str
    latency: float
    """Milliseconds of a round trip."""
    kilobits: float
    slower: int = 1
    """The number of times by which the processor is slower."""


PHONE = Profile("a phone", latency=60, kilobits=9_000, slower=4)
SLOW_3G = Profile("slow 3G", latency=400, kilobits=400)


@dataclass(frozen=True)
class Bounds:
    """The limits that the page has to keep."""

    interactive: float = 1.0
    """Seconds until the page can be used."""
    opening: float = 0.3
    """Seconds until a conversation of ten thousand messages is open."""
    growth: float = 3.0
    """Megabytes by which the memory of the page may grow from the second fifth of the time to the last."""


class Chatty(EchoAgent):
    """Says what it heard word by word, with a pause behind each."""

    def __init__(self, pause: float) -> None:
        super().__init__("chatty")
        self.pause = pause

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        async for update in super().speak(words):
            yield update
            await asyncio.sleep(self.pause)


class OpenPage(WebChatChannel):
    """The page, with a mailbox that can be filled."""

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.storage = context.storage.values("mailbox", holds_tokens=False)
        self.now = context.now
        return super().contribute(context)

    async def fill(self, visitor: str, count: int) -> None:
        """Puts so many messages into the main conversation of a visitor."""
        for number in range(1, count + 1):
            role: Any = "user" if number % 2 else "assistant"
            stored = StoredMessage(number=number, at=1.0, key=f"k{number}", text=f"message **{number}**", role=role)
            await self.storage.set(MessageRef(visitor, MAIN, number).path, msgspec.to_builtins(stored))

        def counted(head: Any) -> Any:
            return head.with_chat(msgspec.structs.replace(head.chat(MAIN), last=count))

        await Mailbox(self.storage, self.now, DAY).change(visitor, counted)


async def throttle(tab: Tab, profile: Profile) -> Any:
    """Gives a tab the network and the processor of a profile; returns its CDP session."""
    cdp = await tab.page.context.new_cdp_session(tab.page)
    await cdp.send("Network.enable")
    speed = profile.kilobits * 1000 / 8
    conditions = {"offline": False, "latency": profile.latency, "downloadThroughput": speed, "uploadThroughput": speed}
    await cdp.send("Network.emulateNetworkConditions", conditions)
    await cdp.send("Emulation.setCPUThrottlingRate", {"rate": profile.slower})
    return cdp


async def interactive(tab: Tab, url: str, profile: Profile) -> float:
    """The seconds until the page can be used, with nothing of it in the cache."""
    await throttle(tab, profile)
    await tab.page.add_init_script(READY)
    await tab.page.goto(f"{url}/chat")
    await tab.page.wait_for_selector(BOX)
    seconds = await tab.page.evaluate("window.readyAt ?? performance.now()") / 1000
    # A tab whose processor is slowed down keeps a real one busy.
    await tab.page.context.close()
    return seconds


async def measure_opening(tab: Tab, url: str, page: OpenPage, count: int = MESSAGES) -> float:
    """The seconds until a long conversation is open, from another one."""
    await tab.page.goto(f"{url}/chat")
    await tab.page.wait_for_selector(BOX)
    [cookie] = await tab.page.context.cookies()
    await page.fill(cookie.get("value", "").partition(".")[0], count)
    await tab.page.reload()
    await tab.page.wait_for_selector(".message")
    await tab.page.click("button.menu")
    await tab.page.click("button.new")
    await tab.page.wait_for_selector(".message", state="detached")
    return await tab.page.evaluate(OPEN) / 1000


async def talk(tab: Tab, url: str, profile: Profile, texts: Sequence[str]) -> list[str]:
    """What is answered over a network, in the order of the questions."""
    await throttle(tab, profile)
    await tab.page.goto(f"{url}/chat")
    await tab.page.wait_for_selector(BOX, timeout=120_000)
    for number, text in enumerate(texts):
        await tab.page.fill(BOX, text)
        await tab.page.press(BOX, "Enter")
        await tab.page.locator(f"{ANSWER}.done").nth(number).wait_for(timeout=120_000)
    return [text.strip() for text in await tab.page.locator(f"{ANSWER}.done .text").all_inner_texts()]


async def stream(tab: Tab, url: str, seconds: float) -> list[float]:
    """The megabytes of the page's memory, measured behind each answer while answers are streamed."""
    cdp = await tab.page.context.new_cdp_session(tab.page)
    await tab.page.goto(f"{url}/chat")
    await tab.page.wait_for_selector(BOX)
    sizes: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(sizes) < 2:
        words = f"answer {len(sizes)}: " + "some **words** and `code` " * 20
        await tab.page.fill(BOX, words)
        await tab.page.press(BOX, "Enter")
        await tab.page.locator(f"{ANSWER}.done", has_text=f"answer {len(sizes)}:").wait_for()
        await cdp.send("HeapProfiler.collectGarbage")
        sizes.append((await cdp.send("Runtime.getHeapUsage"))["usedSize"] / MEGABYTE)
    return sizes


def growth(sizes: Sequence[float]) -> float:
    """The megabytes by which the memory grew, from the second fifth of the time to the last."""
    part = max(1, len(sizes) // 5)
    early = sizes[part : 2 * part] or sizes[:1]
    return statistics.median(sizes[-part:]) - statistics.median(early)


async def soak(minutes: float, bounds: Bounds) -> list[str]:
    """Runs all parts, prints what they measured, and returns what was over its limit."""
    program, page, agent = need_chromium("the soak"), OpenPage(), Chatty(0.02)
    wrong: list[str] = []

    def tell(what: str, value: float, limit: float, unit: str) -> None:
        line = f"{what}: {value:.2f} {unit} (at most {limit:g})"
        print(line, flush=True)
        if value > limit:
            wrong.append(line)

    async with serving(AgentFrameworkHost(agent, channels=[page])) as client, chromium(program) as new_tab:
        url = client.base_url
        times = [await interactive(await new_tab(), url, PHONE) for _ in range(5)]
        tell(f"can be used on {PHONE.name}", statistics.median(times), bounds.interactive, "s")
        tell(f"opens {MESSAGES} messages", await measure_opening(await new_tab(), url, page), bounds.opening, "s")
        texts = [f"question {number} over a slow network" for number in range(5)]
        if await talk(await new_tab(), url, SLOW_3G, texts) != texts:
            wrong.append(f"answers over {SLOW_3G.name} are not those that were given")
        sizes = await stream(await new_tab(), url, 60 * minutes)
        print(f"{len(sizes)} answers; {sizes[0]:.1f} MB behind the first, {sizes[-1]:.1f} MB behind the last")
        tell("grew by", growth(sizes), bounds.growth, "MB")
    return wrong


def main() -> int:
    """Soaks the page."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=...", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long answers are streamed")
    wrong = asyncio.run(soak(parser.parse_args().minutes, Bounds()))
    print("\n".join(["over its limit:", *wrong] if wrong else ["all within limits"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
