"""From the request to the first event of a stream, alone and beside 31 others.

Paced streams: without a turn of the loop between events, a loop that gathers writes sends the first one with the last.
"""

from __future__ import annotations

from bench.arena import Arena
from bench.figures import Row, percentile
from bench.load import pound


async def measure_first_event(arena: Arena) -> list[Row]:
    return await measure_beside(arena, 1, "alone") + await measure_beside(arena, 32, "32 connections")


async def measure_beside(arena: Arena, connections: int, place: str) -> list[Row]:
    middle = Row(f"first{connections}-p50", f"first event, {place}, p50", "ms")
    late = Row(f"first{connections}-p99", f"first event, {place}, p99", "ms")
    for contestant in arena.rounds(3):
        server = await contestant.server()
        load = await pound(
            server.port,
            contestant.request("paced"),
            connections=connections,
            seconds=30,
            requests=arena.plan.first_event_streams,
            event_mark=contestant.subject.event_mark,
        )
        middle.add(contestant.label, percentile(load.first_event_seconds, 0.5) * 1e3)
        late.add(contestant.label, percentile(load.first_event_seconds, 0.99) * 1e3)
    return [middle, late]
