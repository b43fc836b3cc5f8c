"""Does it cost more when the store is full? The same host on an empty store and on one that was filled before."""

from __future__ import annotations

import sys
from statistics import median
from time import perf_counter

from bench.arena import Arena, Contestant
from bench.figures import Row, growth
from bench.measures.throughput import load_server
from bench.measures.turns import EARLY_TURN, WARM_TURNS, converse, window
from bench.plan import FILLED_TURNS, Plan
from bench.process import Server
from bench.states import State

CONNECTIONS = 64
TALKS = 10


async def measure_filled(arena: Arena) -> list[Row]:
    messages = arena.plan.filled_sessions * FILLED_TURNS * 2
    full = f"store of {messages:,} messages"
    rows = [
        Row("empty-json64", f"JSON, {CONNECTIONS} connections, empty store", "requests/s"),
        Row("filled-json64", f"JSON, {CONNECTIONS} connections, {full}", "requests/s"),
        Row("empty-turn10", f"turn {EARLY_TURN}, empty store", "ms"),
        Row("filled-turn10", f"turn {EARLY_TURN}, {full}", "ms"),
    ]
    for contestant in arena.ours:
        if contestant.subject.store != "memory":
            await compare(contestant, arena.plan, rows)
    for before, after in (rows[:2], rows[2:]):
        changes = [f"{label} {growth(before, after, label) - 1:+.0%}" for label in after.figures]
        after.note = ", ".join(changes)
    return [row for row in rows if row.figures]


async def compare(contestant: Contestant, plan: Plan, rows: list[Row]) -> None:
    with contestant.states.fresh(contestant.subject.store) as filled:
        await fill_up(filled, plan.filled_sessions)
        for number in range(plan.filled_rounds):
            # A store that was measured is not empty any more, so each round has a new one.
            with contestant.states.fresh(contestant.subject.store) as empty:
                pairs = [(empty, rows[::2]), (filled, rows[1::2])]
                for state, (rate, turn) in pairs if number % 2 else reversed(pairs):
                    async with contestant.server_on(state) as server:
                        turn.add(contestant.label, await time_turn(contestant, server))
                        rate.add(contestant.label, await count_requests(contestant, server, plan))


async def fill_up(state: State, sessions: int) -> None:
    # Only a run that fills a store needs the host's own modules here.
    from bench.fill import fill

    started = perf_counter()
    await fill(state, sessions, FILLED_TURNS)
    taken = f"{perf_counter() - started:.0f} s"
    print(f"    filled with {sessions:,} sessions of {FILLED_TURNS} turns in {taken}", file=sys.stderr)


async def time_turn(contestant: Contestant, server: Server) -> float:
    """In milliseconds."""
    await converse(contestant, WARM_TURNS, server)
    turns = window(2 * EARLY_TURN, EARLY_TURN)
    talks = [(await converse(contestant, turns.stop, server))[turns.start :] for _ in range(TALKS)]
    return median(second for seconds in talks for second in seconds) * 1e3


async def count_requests(contestant: Contestant, server: Server, plan: Plan) -> float:
    """In a second."""
    await load_server(server, contestant, "json", CONNECTIONS, plan.warm_seconds)
    load, _ = await load_server(server, contestant, "json", CONNECTIONS, plan.round_seconds)
    return load.requests / load.seconds
