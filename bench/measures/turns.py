"""Does a turn cost more when the conversation is long?"""

from __future__ import annotations

from bench.arena import Arena, Contestant
from bench.figures import Row
from bench.http_client import build_request, connect_caller
from bench.load import LoadFailed

SHOWN_TURNS = (1, 10, 50, 200)


async def measure_turns(arena: Arena) -> list[Row]:
    rows = {turn: Row(f"turn{turn}", f"turn {turn} of a conversation", "ms") for turn in SHOWN_TURNS}
    for contestant in arena.contestants:
        await converse(contestant, 20)
    for contestant in arena.rounds(arena.plan.conversations):
        seconds = await converse(contestant, max(SHOWN_TURNS))
        for turn, row in rows.items():
            row.add(contestant.label, seconds[turn - 1] * 1e3)
    return list(rows.values())


async def converse(contestant: Contestant, turns: int) -> list[float]:
    """One conversation on one connection; the seconds of each turn."""
    server = await contestant.server()
    caller = await connect_caller(server.port)
    session_id: str | None = None
    seconds: list[float] = []
    for turn in range(1, turns + 1):
        path, body = contestant.subject.turn_request(f"hello {turn}", session_id)
        reply = await caller.ask(build_request("POST", path, body))
        if reply.status != 200:
            raise LoadFailed(f"turn {turn}: status {reply.status}: {reply.body[:300]!r}")
        session_id = contestant.subject.session_id_in(reply.body)
        seconds.append(reply.seconds)
    caller.transport.close()
    return seconds
