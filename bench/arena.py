"""The contestants of one table: the first is what the others are compared with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.http_client import ask_once, build_request
from bench.machine import Cores
from bench.plan import STREAM_DELTAS, Plan
from bench.process import Server, Usage, start_server
from bench.sample import Sample, split_events
from bench.setting import Door, Setting, Target
from bench.states import State, States
from bench.subjects.base import Case, Subject


@dataclass
class Contestant:
    subject: Subject
    label: str
    core: int | None
    states: States
    sample: Path | None = None
    _server: Server | None = None

    async def server(self) -> Server:
        """The one that serves for the whole run."""
        if self._server is None:
            self._server = await self._start(self.states.new(self.subject.store))
        return self._server

    @asynccontextmanager
    async def fresh_server(self, *, target: Target = "stub", door: Door = "open") -> AsyncIterator[Server]:
        """Another one, on a state of its own."""
        with self.states.fresh(self.subject.store) as state:
            async with self.server_on(state, target=target, door=door) as server:
                yield server

    @asynccontextmanager
    async def server_on(self, state: State, *, target: Target = "stub", door: Door = "open") -> AsyncIterator[Server]:
        server = await self._start(state, target=target, door=door)
        try:
            yield server
        finally:
            server.stop()

    async def _start(self, state: State, *, target: Target = "stub", door: Door = "open") -> Server:
        return await start_server(self.subject, self.core, Setting(self.sample, state.address, target, door))

    def database_usage(self) -> Usage | None:
        """Of a database that is a process of its own."""
        return self.states.usage(self.subject.store)

    def request(self, case: Case, **headers: str) -> bytes:
        return build_request("POST", *self.subject.request(case), **headers)

    def stop(self) -> None:
        if self._server:
            self._server.stop()


@dataclass
class Arena:
    plan: Plan
    cores: Cores
    states: States
    contestants: list[Contestant] = field(default_factory=list[Contestant])

    def join(self, subject: Subject, *, label: str = "", sample: Path | None = None) -> Contestant:
        contestant = Contestant(subject, label or subject.name, self.cores.server, self.states, sample)
        self.contestants.append(contestant)
        return contestant

    def leave(self, contestant: Contestant) -> None:
        self.contestants.remove(contestant)
        contestant.stop()

    @property
    def ours(self) -> list[Contestant]:
        """Our own hosts."""
        return [contestant for contestant in self.contestants if contestant.subject.store]

    @property
    def agents(self) -> list[Contestant]:
        """Those that can run the framework's own agent: our own, and the bare app beside them."""
        return [one for one in self.contestants if one.subject.store or one.subject.runs_agents]

    def rounds(self, count: int) -> Iterator[Contestant]:
        """Everyone once in each round, beginning with another one each time, so that drift hits all alike."""
        for number in range(count):
            shift = number % len(self.contestants)
            yield from self.contestants[shift:] + self.contestants[:shift]

    def stop(self) -> None:
        for contestant in self.contestants:
            contestant.stop()


async def learn_sample(contestant: Contestant) -> Sample:
    """Asks a host for the bytes that the bare app beside it will send."""
    port = (await contestant.server()).port
    answer = await ask_once(port, contestant.request("json"))
    stream = await ask_once(port, contestant.request("stream"))
    for reply in (answer, stream):
        if reply.status != 200:
            raise RuntimeError(f"{contestant.label} answered {reply.status}: {reply.body[:500]!r}")
    events = split_events(stream.body, contestant.subject.event_mark)
    if len(events) < STREAM_DELTAS:
        raise RuntimeError(f"{contestant.label} sent only {len(events)} events, the last one {events[-1]!r}")
    return Sample(answer=answer.body.decode(), events=events, idle_count=contestant.subject.idle_events)
