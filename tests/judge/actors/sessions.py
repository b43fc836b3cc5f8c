"""Turns of sessions that callers name, plain and streamed, from several clients at once."""

import asyncio
from collections import Counter

from tests.judge.actors.base import AWAY, Actor
from tests.judge.steps import enter, parse_heard
from tests.judge.wire import Answer, CutError

LINES = 5
LONGEST = 30


class Sessions(Actor):
    """Say words in sessions, over all hosts."""

    name = "sessions"
    clients = 4

    async def prepare(self) -> None:
        self._lines = [self.court.word("line") for _ in range(LINES)]
        self._said: Counter[str] = Counter()
        self._old: list[str] = []

    async def act(self) -> None:
        number = self.rng.randrange(LINES)
        line = self._lines[number]
        self._said[line] += 1
        if self._said[line] >= LONGEST:
            self._old.append(line)
            self._lines[number] = self.court.word("line")
        if self.rng.random() < 0.3:
            await self._stream(line)
            return
        word = self.court.word("w")
        asked = self.ledger.say(line, word)
        answer = await self.ask("/invocations", {"message": word, "session_id": line}, leaves=self.leaves())
        if answer is not None:
            enter(self.ledger, line, word, asked, answer)

    async def _stream(self, line: str) -> None:
        word = self.court.word("w")
        asked = self.ledger.say(line, word)
        most = self.rng.choice((1, 2, 4, 100, 100))
        body = {"message": f"{word} say:3", "session_id": line, "stream": True}
        try:
            async with await self.host().begin("/invocations", body) as exchange:
                number = 0
                async for event in exchange.events():
                    if event.name == "completed":
                        self.ledger.hear(line, word, parse_heard(event.data["text"]), asked)
                    number += 1
                    if number >= most:
                        return
        except CutError:
            await asyncio.sleep(AWAY)

    async def settle(self) -> None:
        for line in [*self._old[-20:], *self._lines]:
            word = self.court.word("w")
            asked = self.ledger.say(line, word)
            body = {"message": word, "session_id": line}
            enter(self.ledger, line, word, asked, await self.court.insist(self.host(), "/invocations", body))


class Announced(Actor):
    """Use a new session by the id that was announced, on any host, while its first turn runs."""

    name = "announced"
    clients = 1

    async def act(self) -> None:
        word, gate = self.court.word("w"), self.court.word("gate")
        try:
            if self.rng.random() < 0.5:
                await self._stream(word, gate)
            else:
                await self._queue(word, gate)
        except CutError:
            await asyncio.sleep(AWAY)
        finally:
            self.court.site.open(gate)

    async def _stream(self, word: str, gate: str) -> None:
        body = {"message": f"{word} hold:{gate}", "stream": True}
        async with await self.host().begin("/invocations", body, by=2) as exchange:
            events = exchange.events()
            first = await anext(events)
            if first.name != "started":
                return
            line = first.data["session_id"]
            asked = self.ledger.say(line, word)
            second = await self._join(line, gate)
            async for event in events:
                if event.name == "completed":
                    enter(self.ledger, line, word, asked, Answer(200, event.data))
            await second
        await self._turn(line)

    async def _queue(self, word: str, gate: str) -> None:
        asked = self.ledger.tick()
        told = await self.ask("/invocations", {"message": f"{word} hold:{gate}", "background": True}, by=2)
        if told is None or not told.ok or not told.body["session_id"]:
            return
        line, run_id = told.body["session_id"], told.body["id"]
        self.ledger.say(line, word)
        second = await self._join(line, gate)
        answer = told
        while answer.ok and answer.body["status"] in ("queued", "running"):
            answer = await self.court.insist(self.host(), f"/invocations/{run_id}", None, by=2)
        enter(self.ledger, line, word, asked, answer)
        await second
        await self._turn(line)

    async def _join(self, line: str, gate: str) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._turn(line))
        await asyncio.wait([task], timeout=0.4)
        self.court.site.open(gate)
        return task

    async def _turn(self, line: str) -> None:
        word = self.court.word("w")
        asked = self.ledger.say(line, word)
        answer = await self.ask("/invocations", {"message": word, "session_id": line}, by=2)
        if answer is not None:
            enter(self.ledger, line, word, asked, answer)


class ChosenIds(Actor):
    """Send two turns with the same id of the caller's choice, at the same time."""

    name = "ids"
    clients = 1

    async def act(self) -> None:
        line, chosen = self.court.word("line"), self.court.word("id")
        await asyncio.gather(*(self._turn(line, chosen) for _ in range(2)))
        word = self.court.word("w")
        asked = self.ledger.say(line, word)
        answer = await self.ask("/invocations", {"message": word, "session_id": line}, by=3)
        if answer is not None:
            enter(self.ledger, line, word, asked, answer)

    async def _turn(self, line: str, chosen: str) -> None:
        word = self.court.word("w")
        asked = self.ledger.say(line, word)
        body = {"message": f"{word} say:2", "session_id": line, "background": self.rng.random() < 0.2}
        answer = await self.ask("/invocations", body, by=3, headers={"x-agent-invocation-id": chosen})
        # One that could not be written down has failed, and is no turn.
        if answer is not None and answer.ok and answer.body["status"] != "failed":
            self.ledger.ids[chosen].append(word)
            enter(self.ledger, line, word, asked, answer)
