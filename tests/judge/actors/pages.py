"""Visitors of the page: words, answers that are shown while they are written, and polls."""

import asyncio
import time
from contextlib import suppress

from tests.judge.actors.base import AWAY, Actor
from tests.judge.ledger import Message
from tests.judge.page import Page, answers_in
from tests.judge.site import Process
from tests.judge.steps import parse_heard
from tests.judge.wire import CutError

VISITORS = 4
LONGEST = 15
TRIES = 60
_PATIENCE = 6.0
"""For how many seconds a visitor looks at an answer that is being written."""
QUIET = 30.0


class Visitor:
    """A visitor, and what they have said."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.page = Page()
        self.words: list[str] = []
        self.asked: dict[str, int] = {}


class Pages(Actor):
    """Say words on the page, poll for the answers, and stop some of them."""

    name = "pages"
    clients = 2

    async def prepare(self) -> None:
        self._visitors: list[Visitor] = []
        self._old: list[Visitor] = []
        for _ in range(VISITORS):
            self._visitors.append(await self._new())

    async def _new(self) -> Visitor:
        visitor = Visitor(self.court.word("visitor"))
        for _ in range(TRIES):
            with suppress(CutError):
                await visitor.page.load(self.host())
                return visitor
            await asyncio.sleep(AWAY)
        raise RuntimeError("nobody serves the page")

    async def act(self) -> None:
        # Each visitor is with one client at a time.
        visitor = self._visitors.pop(self.rng.randrange(len(self._visitors)))
        try:
            await self._say(visitor)
        finally:
            if len(visitor.words) >= LONGEST:
                self._old.append(visitor)
                visitor = await self._new()
            self._visitors.append(visitor)

    async def _say(self, visitor: Visitor) -> None:
        word = self.court.word("v")
        visitor.words.append(word)
        visitor.asked[word] = self.ledger.say(visitor.name, word)
        message = self.ledger.messages[word] = Message(f"web:{visitor.name}", word, live=True)
        text = word + self.rng.choice(("", " say:5", " say:60"))
        for _ in range(TRIES):
            with suppress(CutError):
                if (await visitor.page.say(self.host(), text, word)).ok:
                    message.acknowledged = True
                    break
            await asyncio.sleep(AWAY)
        if self.rng.random() < 0.15:
            await asyncio.sleep(self.rng.random() * 0.5)
            for _ in range(TRIES):
                # Until it is acknowledged it may still come, and stop what is said next.
                with suppress(CutError):
                    if (await visitor.page.stop(self.host(), f"stop-{word}")).ok:
                        break
                await asyncio.sleep(AWAY)
            # What was said before and waits is stopped with it.
            for one in visitor.words:
                if not visitor.page.has_answered(one):
                    self.ledger.messages[one].excuse = "stopped"
        await self._watch(visitor, word, self.host())

    async def _watch(self, visitor: Visitor, word: str, host: Process) -> None:
        page, began = visitor.page, time.monotonic()
        page.idle = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while not page.has_answered(word):
                    try:
                        await page.poll(host)
                    except CutError:
                        await asyncio.sleep(AWAY)
                        host = self.host()
        self.ledger.polls.append((f"web:{visitor.name}", page.idle, time.monotonic() - began))

    async def settle(self) -> None:
        """Look until all is answered, or nothing has changed for a while."""
        visitors = [*self._old, *self._visitors]

        async def missing() -> int:
            return sum([await self._count_missing(visitor) for visitor in visitors])

        await self.court.until_quiet(missing, QUIET)
        for visitor in visitors:
            await self._enter(visitor)

    async def _count_missing(self, visitor: Visitor) -> int:
        answers = answers_in(await self._look(visitor))
        texts = [one.get("text", "") for one in answers]
        open_words = [word for word in visitor.words if not self.ledger.messages[word].excuse]
        unanswered = sum(not any(f'"{word}"]' in text for text in texts) for word in open_words)
        return unanswered + sum(one.get("state") == "live" for one in answers)

    async def _look(self, visitor: Visitor) -> list[dict[str, object]]:
        for _ in range(TRIES):
            with suppress(CutError):
                if messages := await visitor.page.look(self.host()):
                    return messages
            await asyncio.sleep(AWAY)
        return []

    async def _enter(self, visitor: Visitor) -> None:
        excuses: list[str] = []
        shown = await self._look(visitor)
        self.court.seen[f"web:{visitor.name}"] = [
            f"{one.get('number')} {one.get('role')} {one.get('state')}: {str(one.get('text', ''))[:80]!r}"
            for one in shown
        ]
        for one in answers_in(shown):
            text = str(one.get("text", ""))
            if one.get("state") == "live":
                self.ledger.unfinished.append(f"web:{visitor.name} shows {text!r} as being written")
            elif '{"heard"' in text:
                heard = parse_heard(text)
                if heard[-1] in visitor.asked:
                    self.ledger.messages[heard[-1]].answers.append(tuple(heard))
                    self.ledger.hear(visitor.name, heard[-1], heard, visitor.asked[heard[-1]])
            elif one.get("role") == "notice":
                excuses.append(text)
        self.ledger.excuse(f"web:{visitor.name}", excuses)
