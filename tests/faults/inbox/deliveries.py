"""Deliveries over a platform that fails, from processes that are killed; the platform's log is the judge."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from random import Random

import httpx

from frontdesk_testing.messages import MessagePlatform, Person
from frontdesk_testing.messages.platform.faults import FaultKind
from frontdesk_testing.messages.platform.journal import Entry
from tests.faults.inbox.live_answers import Asker, judge_answers
from tests.faults.inbox.processes import DeskProcess, Desks
from tests.scenarios.desk import until

POINTS = ("before_commit", "after_commit", "before_push", "after_push")
LIVE_POINTS = (*POINTS, "before_live", "after_live")
FAULTS: tuple[tuple[FaultKind, float], ...] = (
    ("error", 0.05),
    ("unavailable", 0.03),
    ("flood", 0.04),
    ("cut_before", 0.04),
    ("cut_after", 0.04),
)
"""Together a fifth of all calls."""
BATCH = 5
PATIENCE = 120.0


@dataclass(frozen=True)
class Plan:
    """What is sent, and how often a process is killed meanwhile."""

    deliveries: int
    destinations: int
    kills: int
    hosts: int = 1
    workers: int = 0
    dedupes: bool = True
    live: bool = False
    """Whether people ask, and the answers are shown while they are written; otherwise they are told things."""

    @property
    def count(self) -> int:
        """How many deliveries each destination gets."""
        return self.deliveries // self.destinations


@dataclass
class Tally:
    """What was counted; the last ones must be nothing."""

    deliveries: int = 0
    kills: int = 0
    accepted: int = 0
    unknown: int = 0
    """Where nobody can say whether they arrived, and the host says so."""
    repeated: int = 0
    """Accepted again, where the host had said that it did not know."""
    shown: int = 0
    """Answers that were shown before they were whole."""
    lost: int = 0
    doubled: int = 0
    disordered: int = 0
    stray: int = 0
    open: int = 0
    dead: int = 0

    WRONG = ("lost", "doubled", "disordered", "stray", "open", "dead")

    @property
    def wrong(self) -> int:
        return sum(getattr(self, name) for name in self.WRONG)

    def add(self, other: "Tally") -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


class Crew:
    """The processes, each of which may be gone at any moment and is replaced."""

    def __init__(self, desks: Desks, plan: Plan, dice: Random) -> None:
        self._desks = desks
        self._plan = plan
        self._dice = dice
        self.hosts: list[DeskProcess] = []
        self.workers: list[DeskProcess] = []
        self.kills = 0

    async def start(self) -> None:
        for _ in range(self._plan.hosts):
            self.hosts.append(await self._desks.host())
        for _ in range(self._plan.workers):
            self.workers.append(await self._desks.worker())

    def host(self, number: int) -> DeskProcess:
        """The host that somebody calls; another one after each kill."""
        return self.hosts[number % len(self.hosts)]

    async def kill_one(self) -> None:
        """Ends a process: at a named point or at any moment."""
        if self.workers and self._dice.random() < 0.5:
            place = self._dice.randrange(len(self.workers))
            await self.workers[place].kill()
            self.workers[place] = await self._desks.worker()
        else:
            place = self._dice.randrange(len(self.hosts))
            host = self.hosts[place]
            if self._dice.random() < 0.7:
                with suppress(httpx.HTTPError):
                    points = LIVE_POINTS if self._plan.live else POINTS
                    await host.arm(self._dice.choice(points), self._dice.randint(1, 30))
                # One that has nothing to do never comes to its point.
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._dice.random()):
                        await host.wait_for_end()
            await host.kill()
            self.hosts[place] = await self._desks.host()
        self.kills += 1


class Feeder:
    """Has things said to people, in an order that each of them must hear them in."""

    def __init__(self, crew: Crew, plan: Plan) -> None:
        self._crew = crew
        self._plan = plan
        self.fed = 0

    async def feed(self, person: Person, number: int) -> None:
        """All that one person is told, a few at a time; what may not have arrived is asked for again."""
        count = self._plan.count
        said = [{"to": person.user_id, "text": f"{n}", "key": f"{n}"} for n in range(count)]
        for start in range(0, count, BATCH):
            await self._insist(said[start : start + BATCH], number)
            self.fed += len(said[start : start + BATCH])

    async def _insist(self, some: Sequence[dict[str, str]], number: int) -> None:
        async with asyncio.timeout(PATIENCE):
            for attempt in range(10_000):
                try:
                    return await self._crew.host(number + attempt).deliver(*some)
                except (httpx.HTTPError, RuntimeError):
                    # It is gone, or about to be; the next one is not there yet.
                    await asyncio.sleep(0.05)


async def run(platform: MessagePlatform, desks: Desks, plan: Plan, dice: Random) -> Tally:
    """Sends everything, kills as often as planned, waits until all have an end, and judges."""
    await platform.set(dedupe=plan.dedupes)
    await _have_it_fail(platform, ("send", "edit", "delete") if plan.live else ("send",))
    people = [await platform.user(f"Person {n}", user_id=f"u{n}") for n in range(plan.destinations)]
    crew = Crew(desks, plan, dice)
    await crew.start()
    async with AsyncExitStack() as stack:
        feeder = await stack.enter_async_context(Asker(platform, plan.count)) if plan.live else Feeder(crew, plan)
        feeding = [asyncio.ensure_future(feeder.feed(person, number)) for number, person in enumerate(people)]
        try:
            for kill in range(plan.kills):
                due = kill * plan.count * plan.destinations // plan.kills
                await until(lambda: feeder.fed >= due or _failed(feeding), within=600)  # noqa: B023
                await crew.kill_one()
            await asyncio.gather(*feeding)
        finally:
            for one in feeding:
                one.cancel()
    states = await _wait_for_deliveries(crew)
    judged = judge_live if plan.live else judge
    tally = judged(await platform.log(), {one.chat_id: one for one in people}, states, plan)
    tally.kills = crew.kills
    return tally


async def _have_it_fail(platform: MessagePlatform, methods: Sequence[str]) -> None:
    for method in methods:
        for seed, (kind, probability) in enumerate(FAULTS):
            more = {"retry_after": 0.05} if kind == "flood" else {}
            await platform.fail(kind, method=method, probability=probability, seed=seed, **more)


def _failed(tasks: Sequence[asyncio.Future[None]]) -> bool:
    return any(one.done() and one.exception() is not None for one in tasks)


async def _wait_for_deliveries(crew: Crew) -> dict[str, tuple[str, int]]:
    """How far every delivery is, once none is open."""
    states: dict[str, tuple[str, int]] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = await crew.hosts[0].http.get("/deliveries")
                states = {key: (status, doubts) for key, (status, doubts) in answer.json().items()}
                if not any(status == "open" for status, _ in states.values()):
                    break
                await asyncio.sleep(0.2)
    return states


def judge(log: Sequence[Entry], people: dict[str, Person], states: dict[str, tuple[str, int]], plan: Plan) -> Tally:
    """Compares what the platform has accepted with what the host says."""
    tally = Tally(deliveries=plan.deliveries)
    sent: dict[str, list[Entry]] = defaultdict(list)
    for entry in log:
        if entry.method == "send":
            sent[entry.chat_id].append(entry)
    accepted: dict[str, int] = defaultdict(int)
    for chat_id in people:
        numbers = [int(one.text) for one in sent[chat_id]]
        first = list(dict.fromkeys(numbers))
        tally.disordered += sum(one > other for one, other in pairwise(first))
        tally.accepted += len(first)
        for entry in sent[chat_id]:
            accepted[entry.idempotency_key] += 1
        missing = plan.count - len(first)
        tally.lost += missing
    for key, times in accepted.items():
        doubts = states.get(key, ("", 0))[1]
        extra = times - 1
        honest = min(extra, doubts) if not plan.dedupes else 0
        tally.repeated += honest
        tally.doubled += extra - honest
    tally.open = sum(status == "open" for status, _ in states.values())
    tally.dead = sum(status == "dead" for status, _ in states.values())
    unknown = [key for key, (status, _) in states.items() if status == "unknown"]
    tally.unknown = len(unknown)
    # What the host admits not to know is not lost without a word.
    tally.lost -= sum(key not in accepted for key in unknown)
    return tally


def judge_live(
    log: Sequence[Entry], people: dict[str, Person], states: dict[str, tuple[str, int]], plan: Plan
) -> Tally:
    """Compares what the chats show in the end with what was asked in them."""
    counts = asdict(judge_answers(log, people, plan.count))
    tally = Tally(deliveries=plan.deliveries, accepted=counts.pop("whole"), **counts)
    for status, _ in states.values():
        tally.open += status == "open"
        tally.dead += status == "dead"
        tally.unknown += status == "unknown"
    return tally
