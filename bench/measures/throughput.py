"""Requests and events a second, and the server's processor time for each."""

from __future__ import annotations

from collections import Counter

from bench.arena import Arena, Contestant
from bench.figures import Row
from bench.load import Load, pound
from bench.process import Server, Usage
from bench.subjects.base import Case

GENERATOR_LIMIT = 0.9
ROBBED_LIMIT = 0.1
FULL_CORE = 0.9


async def measure_json(arena: Arena) -> list[Row]:
    one = await measure_case(arena, "json", connections=1, key="json1", what="JSON")
    many = await measure_case(arena, "json", connections=64, key="json64", what="JSON")
    return one + many


async def measure_stream(arena: Arena) -> list[Row]:
    return await measure_case(arena, "stream", connections=32, key="stream32", what="SSE")


async def measure_fresh(arena: Arena) -> list[Row]:
    return await measure_case(arena, "fresh", connections=32, key="fresh32", what="SSE, as an agent makes them")


async def measure_paced(arena: Arena) -> list[Row]:
    return await measure_case(arena, "paced", connections=32, key="paced32", what="SSE, a loop turn between")


async def measure_case(arena: Arena, case: Case, *, connections: int, key: str, what: str) -> list[Row]:
    thing = "request" if case == "json" else "event"
    place = "1 connection" if connections == 1 else f"{connections} connections"
    rate = Row(key, f"{what}, {place}", f"{thing}s/s")
    cost = Row(f"{key}-cpu", f"  server's processor time per {thing}", "us")
    apart = Row(f"{key}-db", f"  database's processor time per {thing}", "us")
    doubts: list[str] = []
    for contestant in arena.contestants:
        await load_once(contestant, case, connections, arena.plan.warm_seconds)
    for contestant in arena.rounds(arena.plan.rounds):
        before = contestant.database_usage()
        load, usage = await load_once(contestant, case, connections, arena.plan.round_seconds)
        database = since(contestant.database_usage(), before)
        count = load.requests if case == "json" else load.events
        rate.add(contestant.label, count / load.seconds)
        doubts += [why] if (why := doubt(load, usage, database)) else []
        if usage:
            cost.add(contestant.label, usage.ran / count * 1e6)
        if database:
            apart.add(contestant.label, database.ran / count * 1e6)
    rate.note = ", ".join(f"{why} in {count} rounds" for why, count in Counter(doubts).items())
    return [row for row in (rate, cost, apart) if row.figures]


async def load_once(contestant: Contestant, case: Case, connections: int, seconds: float) -> tuple[Load, Usage | None]:
    return await load_server(await contestant.server(), contestant, case, connections, seconds)


async def load_server(
    server: Server, contestant: Contestant, case: Case, connections: int, seconds: float, **headers: str
) -> tuple[Load, Usage | None]:
    before = server.usage()
    load = await pound(
        server.port,
        contestant.request(case, **headers),
        connections=connections,
        seconds=seconds,
        event_mark=contestant.subject.event_mark,
    )
    return load, since(server.usage(), before)


def since(after: Usage | None, before: Usage | None) -> Usage | None:
    return after.since(before) if before and after else None


def doubt(load: Load, usage: Usage | None, database: Usage | None = None) -> str:
    """Why a round says less about the server than it seems to."""
    if load.generator_busy > GENERATOR_LIMIT:
        return "generator at its limit"
    if database and database.waited / load.seconds > ROBBED_LIMIT and usage and usage.ran / load.seconds < FULL_CORE:
        return "server waits for a database without a core of its own"
    if usage and usage.waited / load.seconds > ROBBED_LIMIT:
        return "core shared with others"
    return ""
