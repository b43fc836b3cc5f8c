"""An answer of 80 KB of `![` stopped everybody for a second, and one that was streamed for a third of the time."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate, Content

import frontdesk.markdown.rules  # noqa: F401  # Imported with the first answer otherwise.
from frontdesk import AgentFrameworkHost
from frontdesk.interfaces.chat import LiveTerms
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import get_store
from tests.channels.web.visiting import open_visitor, web_host
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import open_chat
from tests.scenarios.telegram.bot import open_bot

MAX_LINES = 10_000
"""The lines that may run between two turns of the loop. To render a piece takes more than ten times as many."""
SIZE, PIECE, SEEN = 12_000, 2_400, 3
QUICK = LiveTerms(interval=0.01)
UNITS = ["![", "- a\n"]


class Hold:
    """The most lines of ours, or of the parser, that ran between two turns of the loop."""

    def __init__(self) -> None:
        self.longest = 0
        self._lines = 0

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        path = frame.f_code.co_filename
        ours = "/frontdesk/" in path and "/frontdesk_testing/" not in path
        return self._step if ours or "/markdown_it/" in path else None

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._lines += event == "line"
        return self._step

    @contextmanager
    def measure(self, monkeypatch: pytest.MonkeyPatch) -> Iterator["Hold"]:
        """Count the lines of this thread, which has the loop."""
        run: Callable[[Any], None] = asyncio.Handle._run  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]

        def counted(handle: Any) -> None:
            self._lines = 0
            run(handle)
            self.longest = max(self.longest, self._lines)

        monkeypatch.setattr(asyncio.Handle, "_run", counted)
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield self
        finally:
            sys.settrace(before)


class Large(EchoAgent):
    """Says a large text: at once, or in pieces, the first of which when they are asked for."""

    def __init__(self, unit: str, *, streams: bool) -> None:
        super().__init__()
        self.text = unit * (SIZE // len(unit))
        size = PIECE if streams else SIZE
        self.pieces = [self.text[start : start + size] for start in range(0, SIZE, size)]
        self.steps: asyncio.Queue[None] = asyncio.Queue()

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        for piece in self.pieces:
            await self.steps.get()
            yield AgentResponseUpdate(contents=[Content.from_text(piece)], role="assistant", message_id="m")

    async def say(self, seen: Callable[[], Awaitable[int]]) -> None:
        """Say it all; the first pieces one by one, as they are seen."""
        for number in range(len(self.pieces)):
            before = await seen()
            self.steps.put_nowait(None)
            if 0 < number < SEEN:
                await until(lambda before=before: _grew(seen, before))


async def _grew(seen: Callable[[], Awaitable[int]], before: int) -> bool:
    return await seen() > before


@pytest.fixture(params=[False, True], ids=["at once", "streamed"])
def large(request: pytest.FixtureRequest, unit: str) -> Large:
    return Large(unit, streams=request.param)


@pytest.fixture(params=UNITS, ids=repr)
def unit(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_an_answer_on_the_message_channel_stopped_everybody(large: Large, monkeypatch: Any) -> None:
    async with open_chat(large, live="auto", live_terms=QUICK) as chat:
        ada = await chat.platform.user("Ada")

        async def seen() -> int:
            return sum(entry.method in ("send", "edit") for entry in chat.platform.log_on_disk())

        with Hold().measure(monkeypatch) as hold:
            await chat.platform.say(ada, "go")
            await large.say(seen)
            await wait_for_end(chat.host)
    assert hold.longest < MAX_LINES


@pytest.mark.parametrize("drafts", [False, True])
async def test_an_answer_on_telegram_stopped_everybody(large: Large, drafts: bool, monkeypatch: Any) -> None:
    async with open_bot(large, live="auto", drafts=drafts) as bot:
        ada = bot.fake.user("Ada")

        async def seen() -> int:
            return len(bot.fake.calls)

        with Hold().measure(monkeypatch) as hold:
            bot.fake.say(ada, "go")
            await large.say(seen)
            await wait_for_end(bot.host)
    assert hold.longest < MAX_LINES


async def test_an_answer_on_the_page_stopped_everybody(large: Large, monkeypatch: Any) -> None:
    async with web_host(large, live_terms=QUICK) as base_url, open_visitor(base_url) as ada:

        async def seen() -> int:
            return sum(map(len, await ada.texts()))

        with Hold().measure(monkeypatch) as hold:
            await ada.say("go")
            await large.say(seen)
            assert len((await ada.wait_for_messages(2))[1]["text"]) == len(large.text)
    assert hold.longest < MAX_LINES


async def wait_for_end(host: AgentFrameworkHost) -> None:
    """Wait until an answer was sent, and nothing is on its way."""
    store = get_store(host)

    async def done() -> bool:
        counts = await store.outbox.counts()
        return not sum(counts.get(status, 0) for status in ("pending", "sending")) and bool(await store.outbox.find())

    await until(done, within=60)
