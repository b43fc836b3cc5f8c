"""A campaign: actors work, faults happen, and at the end the ledger is read."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.databases import postgres_server
from tests.judge.actors.approvals import Approvals
from tests.judge.actors.background import Background
from tests.judge.actors.base import Actor
from tests.judge.actors.chains import Chains, Conversations, Sockets
from tests.judge.actors.chats import Buttons, Chats, Links, PlainChats
from tests.judge.actors.sessions import Announced, ChosenIds, Sessions
from tests.judge.court import Court
from tests.judge.faults import clocks, databases, platforms, processes
from tests.judge.ledger import Ledger, Verdict
from tests.judge.pulse import watched
from tests.judge.site import Site, site

Fault = Callable[[Court, Random], Awaitable[None]]

ACTORS: tuple[type[Actor], ...] = (
    *(Sessions, Announced, ChosenIds, Chains, Conversations, Sockets),
    *(Background, Approvals, Chats, PlainChats, Buttons, Links),
)
EVERYWHERE: tuple[Fault, ...] = (processes.kill, processes.stop, clocks.jump, platforms.trouble)
ON_SQLITE: tuple[Fault, ...] = (databases.lock, databases.lock)
ON_POSTGRES: tuple[Fault, ...] = (
    *(databases.cut_commit, databases.cut_commit, databases.cut_commit),
    *(databases.hold_commit, databases.stall, databases.cut_all, databases.restart),
)
LAYOUTS = ("sqlite", "postgres", "procrastinate", "move")
STORIES = 4
_RUN_ID = re.compile(r"\b[a-z]+_[0-9a-f]{32}\b")
_PAUSE = 0.05


@dataclass
class Plan:
    """What a campaign does, and for how long: until its operations are done, or its time is up."""

    layout: str = "sqlite"
    seed: int = 1
    operations: int = 1000
    seconds: float = 60.0
    gap: int = 40
    """How many operations there are between two faults, at least."""
    faults: Sequence[str] = ()
    """The names of the faults; all that the layout has, if there are none."""
    actors: Sequence[str] = ()


@dataclass
class Report:
    """What came of a campaign."""

    plan: Plan
    court: Court
    verdicts: list[Verdict] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    """What the hosts have logged about the runs of the verdicts."""

    def __str__(self) -> str:
        court, plan = self.court, self.plan
        lines = [
            f"{plan.layout}, seed {plan.seed}: {court.operations} operations, "
            f"{court.ledger.acknowledged} acknowledged, {sum(court.faults.values())} faults, "
            f"{len(self.verdicts)} verdicts",
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


async def campaign(plan: Plan) -> Report:
    """Run one campaign."""
    runner = "procrastinate" if plan.layout in ("procrastinate", "move") else "in_process"
    # A clock that jumps must not take away what the judge has yet to look at.
    settings = {"runner": runner, "chats": ("chat", "plain"), "expiry": {"continuations": None}}
    if plan.layout == "move":
        with postgres_server(on_disk=True) as server, server.database() as one, server.database() as other:
            async with site("sqlite", server=server, **settings) as place:
                return await _judged(plan, place, [("postgres", one), ("sqlite", ""), ("postgres", other)])
    if plan.layout == "sqlite":
        async with site("sqlite", **settings) as place:
            return await _judged(plan, place, [])
    async with site("postgres", hosts=2, workers=1, **settings) as place:
        return await _judged(plan, place, [])


async def _judged(plan: Plan, place: Site, moves: list[tuple[str, str]]) -> Report:
    ledger = Ledger()
    court = Court(place, ledger, plan.seed)
    chosen = [kind for kind in ACTORS if not plan.actors or kind.name in plan.actors]
    actors = [kind(court, Random(f"{plan.seed} {kind.name}")) for kind in chosen]
    for actor in actors:
        await actor.prepare()
    rng = Random(f"{plan.seed} faults")
    ends = time.monotonic() + plan.seconds
    for number in range(len(moves) + 1):
        part = (number + 1) / (len(moves) + 1)
        until = ends - (1 - part) * plan.seconds
        await _phase(court, actors, rng, plan, round(plan.operations * part), until)
        if number < len(moves):
            kind, where = moves[number]
            where = where or str(_fresh(place) / "state.db")
            # What still runs in the background is interrupted when its host stops.
            with court.disturbing():
                await place.move(kind, where, hosts=2 if kind == "postgres" else 1, workers=int(kind == "postgres"))
    await asyncio.gather(*(actor.settle() for actor in actors))
    ledger.effects = place.effects("did")
    left = await _shown(court)
    verdicts = ledger.verdicts()
    ids = {run_id for verdict in verdicts for run_id in _RUN_ID.findall(str(verdict))}
    logged = [line for line in place.logs() if ids & set(_RUN_ID.findall(line))]
    return Report(plan, court, verdicts, [*logged, *_deliveries_of(verdicts, left), *_chats_of(verdicts, ledger)])


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
        async with watched(court):
            await asyncio.gather(*clients)
    finally:
        await faults
        await _right(court)


async def _faults(court: Court, rng: Random, plan: Plan, going: Callable[[], bool]) -> None:
    own = ON_SQLITE if court.site.kind == "sqlite" else ON_POSTGRES
    known = [one for one in (*EVERYWHERE, *own) if not plan.faults or one.__name__ in plan.faults]
    last = court.operations
    while going() and known:
        if court.operations - last < plan.gap:
            await asyncio.sleep(_PAUSE)
            continue
        fault = rng.choice(known)
        court.faults[fault.__name__] += 1
        await fault(court, rng)
        last = court.operations


async def _right(court: Court) -> None:
    """Take all faults away; what was alive goes on, and what was not is started."""
    court.site.set_clock(0)
    for platform in court.site.platforms.values():
        await platform.recover()
    for process in court.site.processes:
        if process.proxy is not None:
            process.proxy.flow()
        if not process.alive:
            await process.start()


async def _shown(court: Court) -> list[dict[str, Any]]:
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
