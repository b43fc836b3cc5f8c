"""What does it cost to ask who is there? The same host with an open door, and with API keys and an allowlist."""

from __future__ import annotations

from contextlib import AsyncExitStack

from bench.arena import Arena, Contestant
from bench.figures import Row, growth
from bench.measures.throughput import load_server
from bench.process import Server
from bench.setting import Door
from bench.subjects.frontdesk import API_KEY

CONNECTIONS = 64
DOORS: dict[Door, str] = {"open": "open door", "guarded": "API keys and an allowlist"}


async def measure_guarded(arena: Arena) -> list[Row]:
    rows: dict[Door, tuple[Row, Row]] = {
        door: (
            Row(f"{door}-json64", f"JSON, {CONNECTIONS} connections, {what}", "requests/s"),
            Row(f"{door}-cpu", "  server's processor time per request", "us"),
        )
        for door, what in DOORS.items()
    }
    for contestant in arena.ours:
        async with AsyncExitStack() as stack:
            servers: dict[Door, Server] = {}
            for door in DOORS:
                servers[door] = await stack.enter_async_context(contestant.fresh_server(door=door))
                await load(servers[door], contestant, arena.plan.warm_seconds, rows[door], warm=True)
            for number in range(2 * arena.plan.rounds):
                for door in servers if number % 2 else reversed(servers):
                    await load(servers[door], contestant, arena.plan.round_seconds / 2, rows[door])
    before, after = rows["open"][1], rows["guarded"][1]
    after.note = ", ".join(f"{label} {growth(before, after, label) - 1:+.1%}" for label in after.figures)
    return [row for pair in rows.values() for row in pair if row.figures]


async def load(
    server: Server, contestant: Contestant, seconds: float, rows: tuple[Row, Row], *, warm: bool = False
) -> None:
    """The key goes to both, so that what differs is what is done about it."""
    done, usage = await load_server(server, contestant, "json", CONNECTIONS, seconds, x_api_key=API_KEY)
    if warm:
        return
    rows[0].add(contestant.label, done.requests / done.seconds)
    if usage:
        rows[1].add(contestant.label, usage.ran / done.requests * 1e6)
