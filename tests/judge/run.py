"""A campaign: actors work, faults happen, and at the end the ledger is read."""

import asyncio
import json
import re
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

from bench.checkouts import find_checkout
from tests.databases import BEFORE_TRANSACTION_TIMEOUT, NEWEST, postgres_server, require_postgres
from tests.judge.actors.approvals import Approvals
from tests.judge.actors.background import Background
from tests.judge.actors.base import Actor
from tests.judge.actors.chains import Chains, Conversations, Sockets
from tests.judge.actors.chats import Buttons, Chats, Links, LiveChats, PlainChats
from tests.judge.actors.pages import Pages
from tests.judge.actors.sessions import Announced, ChosenIds, Sessions
from tests.judge.court import Court
from tests.judge.faults import clocks, databases, platforms, processes, turns
from tests.judge.ledger import Ledger, Verdict
from tests.judge.pulse import watch
from tests.judge.site import Site, site

Fault = Callable[[Court, Random], Coroutine[Any, Any, None]]

ACTORS: tuple[type[Actor], ...] = (
    *(Sessions, Announced, ChosenIds, Chains, Conversations, Sockets),
    *(Background, Approvals, Chats, PlainChats, LiveChats, Pages, Buttons, Links),
)
EVERYWHERE: tuple[Fault, ...] = (
    *(processes.kill, processes.stop, clocks.jump, platforms.trouble),
    *(turns.crash, turns.kill_in_tool, turns.kill_in_edit),
)
ON_SQLITE: tuple[Fault, ...] = (databases.lock, databases.lock)
ON_POSTGRES: tuple[Fault, ...] = (
    *(databases.cut_commit, databases.cut_commit, databases.cut_commit),
    *(databases.hold_commit, databases.stall, databases.cut_all, databases.restart),
)
ALONE: tuple[Fault, ...] = (clocks.jump,)
"""The faults beside which there is no other one."""
LAYOUTS = ("sqlite", "postgres16", "postgres", "procrastinate", "move")
"""All but the first have two hosts and a worker; the last one moves between the first and them."""
ROLLING = "rolling"
"""Postgres with processes of two versions: every second start of a process runs an earlier commit."""
CHATS = ("chat", "plain", "live")
STORIES = 4
SHOWN = 12
"""How many deliveries and messages of chats are shown that verdicts are about."""
_RUN_ID = re.compile(r"\b[a-z]+_[0-9a-f]{32}\b")
_PAUSE = 0.05
MAX_FAULTS = 3
"""How many faults of different kinds there are at once."""


@dataclass
class Plan:
    """What a campaign does, and for how long: until its operations are done, or its time is up."""

    layout: str = "sqlite"
    seed: int = 1
    operations: int = 1000
    seconds: float = 60.0
    gap: int = 40
    """How many operations there are between the beginnings of two faults, at least."""
    faults: Sequence[str] = ()
    """The names of the faults; all that the layout has, if there are none."""
    actors: Sequence[str] = ()
    against: str = "HEAD~1"
    """The earlier commit of the layout `rolling`."""


@dataclass
class Report:
    """What came of a campaign."""

    plan: Plan
    court: Court
    verdicts: list[Verdict] = field(default_factory=list)
    seconds: float = 0.0
    """How long the operations took."""
    settling: float = 0.0
    """How long it took until all was quiet after them."""
    logged: list[str] = field(default_factory=list)
    """What the hosts have logged about the runs of the verdicts."""

    def __str__(self) -> str:
        court, plan = self.court, self.plan
        lines = [
            f"{plan.layout}, seed {plan.seed}: {court.operations} operations, "
            f"{court.ledger.acknowledged} acknowledged, {sum(court.faults.values())} faults, "
            f"{len(self.verdicts)} verdicts; {self.seconds:.0f} s and {self.settling:.0f} s to settle, "
            f"{court.operations / max(self.seconds, 1e-9):.0f} operations a second",
            f"    operations: {dict(court.done)}",
            f"    faults: {dict(court.faults)}",
        ]
        if court.starved:
            lines.append(f"    starved: {court.starved} times; what was interrupted then is not judged")
        if court.unexpected:
            lines.append(f"    other answers: {dict(court.unexpected)}")
        return "\n".join([*lines, *self._stories(), *self.logged])

    def _stories(self) -> list[str]:
        """The first stories of each promise; the others would tell the same."""
        by_promise: dict[str, list[Verdict]] = {}
        for one in self.verdicts:
            by_promise.setdefault(one.promise, []).append(one)
        shown = [str(one) for each in by_promise.values() for one in each[:STORIES]]
        return shown + [f"({len(each)} times: {promise})" for promise, each in by_promise.items()]


class Result(NamedTuple):
    """What came of a campaign, as far as other processes need to know."""

    report: str
    operations: int
    faults: int
    broken: int


def run_plan(plan: Plan) -> Result:
    """Run one campaign in a process of its own. A new process can import this function, and none of `__main__`."""
    report = asyncio.run(campaign(plan))
    return Result(str(report), report.court.operations, sum(report.court.faults.values()), len(report.verdicts))


async def campaign(plan: Plan) -> Report:
    """Run one campaign."""
    runner = "procrastinate" if plan.layout in ("procrastinate", "move") else "in_process"
    # A clock that jumps must not take away what the judge has yet to look at.
    settings = {"runner": runner, "chats": CHATS, "web": True, "expiry": {"continuations": None}}
    if plan.layout == "move":
        with postgres_server(on_disk=True) as server, server.database() as one, server.database() as other:
            async with site("sqlite", server=server, **settings) as place:
                return await _judge(plan, place, [("postgres", one), ("sqlite", ""), ("postgres", other)])
    if plan.layout == "sqlite":
        async with site("sqlite", **settings) as place:
            return await _judge(plan, place, [])
    version = require_postgres(BEFORE_TRANSACTION_TIMEOUT if plan.layout == "postgres16" else NEWEST)
    earlier = find_checkout(plan.against).root if plan.layout == ROLLING else None
    async with site("postgres", hosts=2, workers=1, version=version, earlier=earlier, **settings) as place:
        return await _judge(plan, place, [])


async def _judge(plan: Plan, place: Site, moves: list[tuple[str, str]]) -> Report:
    ledger = Ledger()
    court = Court(place, ledger, plan.seed)
    chosen = [kind for kind in ACTORS if not plan.actors or kind.name in plan.actors]
    actors = [kind(court, Random(f"{plan.seed} {kind.name}")) for kind in chosen]
    for actor in actors:
        await actor.prepare()
    rng = Random(f"{plan.seed} faults")
    began = time.monotonic()
    ends = began + plan.seconds
    for number in range(len(moves) + 1):
        part = (number + 1) / (len(moves) + 1)
        until = ends - (1 - part) * plan.seconds
        await _phase(court, actors, rng, plan, round(plan.operations * part), until)
        if number < len(moves):
            kind, where = moves[number]
            where = where or str(_fresh(place) / "state.db")
            # What still runs in the background is interrupted when its host stops.
            with court.disturb():
                await place.move(kind, where, hosts=2 if kind == "postgres" else 1, workers=int(kind == "postgres"))
    worked = time.monotonic() - began
    async with place.supervise():
        await turns.until_crashes_end(court)
        await asyncio.gather(*(actor.settle() for actor in actors))
        await turns.settle(court)
    ledger.effects = place.effects("did")
    ledger.heard_at = place.times("heard")
    left = await _list_shown(court)
    verdicts = ledger.verdicts()
    ids = {run_id for verdict in verdicts for run_id in _RUN_ID.findall(str(verdict))}
    logged = [line for line in place.logs() if ids & set(_RUN_ID.findall(line))][: 4 * SHOWN]
    logged += [*_deliveries_of(verdicts, left)[:SHOWN], *_chats_of(verdicts, ledger)[:SHOWN]]
    logged += _pages_of(verdicts, court)
    return Report(plan, court, verdicts, worked, time.monotonic() - began - worked, logged)


def _fresh(place: Site) -> Path:
    directory = place.directory / "moved"
    directory.mkdir()
    return directory


async def _phase(court: Court, actors: Sequence[Actor], rng: Random, plan: Plan, operations: int, until: float) -> None:
    """Let actors and faults work until so many operations are done; then set everything right."""

    def going() -> bool:
        return court.operations < operations and time.monotonic() < until

    async def client(actor: Actor) -> None:
        while going():
            await actor.act()
            court.operations += 1
            court.done[actor.name] += 1
            # One that has nothing to wait for must not take the others' time.
            await asyncio.sleep(0)

    faults = asyncio.create_task(_faults(court, rng, plan, going))
    clients = [client(actor) for actor in actors for _ in range(actor.clients)]
    try:
        async with court.site.supervise():
            try:
                async with watch(court):
                    await asyncio.gather(*clients)
            finally:
                # Hosts are started again until the last fault is over.
                await faults
    finally:
        await _right(court)


async def _faults(court: Court, rng: Random, plan: Plan, going: Callable[[], bool]) -> None:
    own = ON_SQLITE if court.site.kind == "sqlite" else ON_POSTGRES
    known = [one for one in (*EVERYWHERE, *own) if not plan.faults or one.__name__ in plan.faults]
    last, under_way, fault = court.operations, dict[str, asyncio.Task[None]](), cast("Fault | None", None)
    async with asyncio.TaskGroup() as group:
        while going() and known:
            await asyncio.sleep(_PAUSE)
            under_way = {name: task for name, task in under_way.items() if not task.done()}
            # Nothing else begins before it: one that may only happen alone waits for the others to end.
            fault = fault or rng.choice(known)
            if court.operations - last < plan.gap or not may_begin(fault, under_way):
                continue
            court.faults[fault.__name__] += 1
            under_way[fault.__name__] = group.create_task(fault(court, rng))
            fault, last = None, court.operations


def may_begin(fault: Fault, under_way: Collection[str]) -> bool:
    """Return True if a fault may begin beside others."""
    if fault in ALONE:
        return not under_way
    is_kept_out = any(one.__name__ in under_way for one in ALONE)
    return not is_kept_out and fault.__name__ not in under_way and len(under_way) < MAX_FAULTS


async def _right(court: Court) -> None:
    """Take all faults away; what was alive goes on, and what was not is started."""
    court.site.set_clock(0)
    for platform in court.site.platforms.values():
        await platform.recover()
    for process in court.site.processes:
        if process.proxy is not None:
            process.proxy.flow()
        async with process.changing:
            if not process.alive:
                await process.start()


async def _list_shown(court: Court) -> list[dict[str, Any]]:
    """Ask what an operator sees, and return the deliveries that were not accepted.

    An answer that may have arrived, on a platform without keys, is shown as unknown.
    """
    place = court.site
    for process in place.processes:
        await process.stop()
    left: list[dict[str, Any]] = []
    for status in ("unknown", "dead", "pending", "sending"):
        shown = await place.command(
            *("deliveries", "list", "--status", status, "--limit", "10000", "--json", "--state", place.address)
        )
        left += json.loads(shown)["deliveries"]
    for delivery in left:
        if delivery["status"] == "unknown" and delivery["channel"] == "plain":
            court.ledger.excuse(_line(delivery), [delivery["delivery_id"]])
    return left


def _line(delivery: Mapping[str, Any]) -> str:
    """Return the chat of a delivery as the ledger names it."""
    return f"{delivery['channel']}:{delivery['to']}"


def _deliveries_of(verdicts: Sequence[Verdict], left: Sequence[dict[str, Any]]) -> list[str]:
    """Return what is left of answers to the chats that verdicts are about."""
    return [f"    left: {one}" for one in left if any(_line(one) in str(verdict) for verdict in verdicts)]


def _chats_of(verdicts: Sequence[Verdict], ledger: Ledger) -> list[str]:
    """Return the messages without an answer in the chats that verdicts are about."""
    unanswered = [one for one in ledger.messages.values() if not one.answers]
    return [f"    unanswered: {one}" for one in unanswered if any(one.chat in str(verdict) for verdict in verdicts)]


def _pages_of(verdicts: Sequence[Verdict], court: Court) -> list[str]:
    """Return what the page shows of the conversations that verdicts are about, and the events of their visitors."""
    lines: list[str] = []
    for chat, shown in court.seen.items():
        if not any(f"{chat}:" in str(verdict) for verdict in verdicts):
            continue
        lines += [f"    {chat} shows {one}" for one in shown]
        words = {one.word for one in court.ledger.messages.values() if one.chat == chat}
        events = court.site.query(
            "SELECT number, event_id, kind, done_at, error, cancelled, attempts, lost, alone FROM inbox ORDER BY number"
        )
        lines += [f"    {chat} sent {event}" for event in events if _client_id(event[1]) in words]
    return lines


def _client_id(event_id: str) -> str:
    """Return the name that the page gave to what an event of it says or stops."""
    return event_id.rsplit(":", 1)[-1].removeprefix("stop-")
