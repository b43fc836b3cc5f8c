"""Background runs: how far they are, and their streams, read by many readers from any event."""

import asyncio
from contextlib import suppress

from tests.judge.actors.base import AWAY, Actor
from tests.judge.ledger import FINAL, Run
from tests.judge.wire import Answer, CutError

_PAUSE = 0.03


class Background(Actor):
    """Begin runs, follow them on every host, and read their streams to the end, in pieces."""

    name = "background"
    clients = 3

    async def act(self) -> None:
        word, stream = self.court.word("b"), self.rng.random() < 0.7
        body = {"message": f"{word} say:{self.rng.choice((1, 5, 20))}", "background": True, "stream": stream}
        run = await (self._stream(body) if stream else self._queue(body))
        if run is None:
            await asyncio.sleep(AWAY)
            return
        for _ in range(60):
            if run.statuses and run.statuses[-1][1] in FINAL:
                break
            await self._look(run)
            await asyncio.sleep(_PAUSE)
        if stream and run.statuses and run.statuses[-1][1] in FINAL:
            await self._read(run, pieces=self.rng.random() < 0.5)
            await self._read(run, pieces=False)

    async def _queue(self, body: dict[str, object]) -> Run | None:
        told = await self.ask("/invocations", body, by=7)
        return self.court.enter_run(told.body["id"]) if told is not None and told.status == 202 else None

    async def _stream(self, body: dict[str, object]) -> Run | None:
        run: Run | None = None
        with suppress(CutError):
            async with await self.host().begin("/invocations", body, by=7) as exchange:
                async for event in exchange.events():
                    if event.name == "started":
                        run = self.court.enter_run(event.data["id"])
                    if self.rng.random() < 0.2:
                        break
        return run

    async def _look(self, run: Run, answer: Answer | None = None) -> None:
        asked = self.ledger.tick()
        with suppress(CutError):
            answer = answer or await self.host().get(f"/invocations/{run.run_id}", by=7)
            if answer.ok and (not run.statuses or asked > run.statuses[-1][0]):
                # One that was asked before another was answered may rightly be behind it.
                code = (answer.body["error"] or {}).get("code", "")
                run.statuses.append((self.ledger.tick(), answer.body["status"], code))

    async def _read(self, run: Run, *, pieces: bool) -> None:
        """Read the whole stream of a run that has ended, in one piece or in several."""
        events: list[str] = []
        for _ in range(40):
            path = f"/invocations/{run.run_id}?stream=true" + (f"&starting_after={len(events) - 1}" if events else "")
            with suppress(CutError):
                async with await self.host().begin(path, None, method="GET", by=7) as exchange:
                    async for event in exchange.events():
                        if event.name == "error":
                            break
                        events.append(f"{event.name} {event.number} {event.data.get('text')}")
                        if event.name in FINAL:
                            run.reads.append((self.ledger.tick(), tuple(events), True))
                            return
                        if pieces and self.rng.random() < 0.3:
                            break
            await asyncio.sleep(_PAUSE)

    async def settle(self) -> None:
        for run in list(self.ledger.runs.values()):
            while not run.statuses or run.statuses[-1][1] not in FINAL:
                await self._look(run, await self.court.insist(self.host(), f"/invocations/{run.run_id}", None, by=7))
                await asyncio.sleep(_PAUSE)
            answers = [
                await self.court.insist(host, f"/invocations/{run.run_id}", None, by=7)
                for host in self.court.site.hosts
            ]
            for answer in answers:
                await self._look(run, answer)
            if run.reads:
                await self._read(run, pieces=False)
