"""Does a turn cost more when the conversation is long?"""

from __future__ import annotations

from contextlib import AsyncExitStack
from statistics import median

from bench.arena import Arena, Contestant
from bench.figures import Row
from bench.http_client import build_request, connect_caller
from bench.load import LoadFailed
from bench.plan import AGENT_TURNS, LONG_TURNS
from bench.process import Server, Usage
from bench.setting import Target

SHOWN_TURNS = (1, 10, 50, 200)
EARLY_TURN = 10
AROUND = 10
"""Turns whose middle stands for one, where there are too few conversations for a middle of that one."""
WARM_TURNS = 20
NAMES: dict[Target, str] = {"stub": "the stub agent", "agent": "a real Agent", "tools": "an Agent with a tool"}
Looks = dict[int, Usage | None]


async def measure_turns(arena: Arena) -> list[Row]:
    rows = {turn: Row(f"turn{turn}", f"turn {turn} of a conversation", "ms") for turn in SHOWN_TURNS}
    for contestant in arena.contestants:
        await converse(contestant, WARM_TURNS)
    for contestant in arena.rounds(arena.plan.conversations):
        seconds = await converse(contestant, max(SHOWN_TURNS))
        for turn, row in rows.items():
            row.add(contestant.label, seconds[turn - 1] * 1e3)
    return list(rows.values())


async def measure_long_turns(arena: Arena) -> list[Row]:
    """A conversation of a day, with the stub agent."""
    return await measure_ends(arena, "long", "stub", LONG_TURNS, arena.plan.long_conversations)


async def measure_real_turns(arena: Arena) -> list[Row]:
    """The framework's own agent, which is handed the whole history each time; in a bare app, too."""
    plain = await measure_ends(arena, "agent", "agent", AGENT_TURNS, arena.plan.agent_conversations)
    return plain + await measure_ends(arena, "tools", "tools", AGENT_TURNS, arena.plan.agent_conversations)


async def measure_ends(arena: Arena, key: str, target: Target, turns: int, conversations: int) -> list[Row]:
    """An early turn and the last one, each contestant in a server and a state of its own."""
    windows = {f"{key}-early": window(turns, EARLY_TURN), f"{key}-late": window(turns, turns)}
    rows: list[Row] = []
    for name, turn in zip(windows, (EARLY_TURN, turns), strict=True):
        rows.append(Row(name, f"turn {turn:,} with {NAMES[target]}", "ms"))
        rows.append(Row(f"{name}-cpu", "  server's processor time per turn", "us"))
    async with AsyncExitStack() as stack:
        servers: list[tuple[Contestant, Server]] = []
        for contestant in arena.ours if target == "stub" else arena.agents:
            server = await stack.enter_async_context(contestant.fresh_server(target=target))
            servers.append((contestant, server))
            await converse(contestant, WARM_TURNS, server)
        for _ in range(conversations):
            for contestant, server in servers:
                await add_talk(contestant, server, list(windows.values()), rows)
    return [row for row in rows if row.figures]


async def add_talk(contestant: Contestant, server: Server, windows: list[range], rows: list[Row]) -> None:
    looks: Looks = {mark: None for one in windows for mark in (one.start, one.stop)}
    seconds = await converse(contestant, windows[-1].stop, server, looks)
    for one, (times, costs) in zip(windows, (rows[:2], rows[2:]), strict=True):
        times.add(contestant.label, median(seconds[one.start : one.stop]) * 1e3)
        before, after = looks[one.start], looks[one.stop]
        if before and after:
            costs.add(contestant.label, after.since(before).ran / len(one) * 1e6)


def window(turns: int, turn: int) -> range:
    """Some turns about this one; at the end of a conversation, the last ones. Counted from 0."""
    end = min(turns, turn + AROUND // 2)
    return range(end - AROUND, end)


async def converse(
    contestant: Contestant, turns: int, server: Server | None = None, looks: Looks | None = None
) -> list[float]:
    """One conversation on one connection; the seconds of each turn.

    `looks` is told the server's processor time for every number of turns that it has as a key.
    """
    server = server or await contestant.server()
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
        if looks is not None and turn in looks:
            looks[turn] = server.usage()
    caller.transport.close()
    return seconds
