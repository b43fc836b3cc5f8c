"""Resident memory: after many requests, and for each stream that is open and quiet."""

from __future__ import annotations

import asyncio
from typing import Protocol

from bench.arena import Arena
from bench.figures import Row
from bench.http_client import Caller, connect_caller
from bench.load import LoadFailed, pound
from bench.process import Server
from bench.subjects.base import Case, Subject

MIB = 1024 * 1024
WARM_STREAMS = 50
OPENED_AT_ONCE = 50
QUIET_SECONDS = 0.7
LONGEST_SECONDS = 180


class OpensStreams(Protocol):
    """A contestant whose server answers `idle` with a stream."""

    @property
    def label(self) -> str: ...

    @property
    def subject(self) -> Subject: ...

    def request(self, case: Case) -> bytes: ...


async def measure_memory(arena: Arena) -> list[Row]:
    each = arena.plan.memory_requests
    rows = [
        Row("memory-0", "memory at the start", "MiB"),
        Row("memory-1", f"memory after {each:,} requests", "MiB"),
        Row("memory-2", f"memory after {each * 2:,} requests", "MiB"),
    ]
    for contestant in arena.contestants:
        async with contestant.fresh_server() as server:
            rows[0].add(contestant.label, server.memory() / MIB)
            for row in rows[1:]:
                answered = await send_requests(server, contestant.request("json"), each)
                if answered < each:
                    row.note = f"{contestant.label} answered only {answered:,} in {LONGEST_SECONDS} s"
                    break
                row.add(contestant.label, server.memory() / MIB)
    return rows


async def send_requests(server: Server, request: bytes, count: int) -> int:
    load = await pound(server.port, request, connections=64, seconds=LONGEST_SECONDS, requests=count)
    await asyncio.sleep(QUIET_SECONDS)
    return load.requests


async def measure_idle_streams(arena: Arena) -> list[Row]:
    row = Row("idle", f"an idle stream ({arena.plan.idle_streams:,} open)", "KiB")
    for contestant in arena.contestants:
        async with contestant.fresh_server() as server:
            close_all(await open_streams(contestant, server.port, WARM_STREAMS))
            await asyncio.sleep(QUIET_SECONDS)
            before = server.memory()
            streams = await open_streams(contestant, server.port, arena.plan.idle_streams)
            await asyncio.sleep(QUIET_SECONDS)
            if any(stream.ended for stream in streams):
                raise LoadFailed(f"{contestant.label} ended an idle stream")
            row.add(contestant.label, (server.memory() - before) / 1024 / len(streams))
            close_all(streams)
    return [row]


async def open_streams(contestant: OpensStreams, port: int, count: int) -> list[Caller]:
    """Streams that have sent their first event."""
    request, mark = contestant.request("idle"), contestant.subject.event_mark
    callers: list[Caller] = []
    while len(callers) < count:
        batch = [await connect_caller(port) for _ in range(min(OPENED_AT_ONCE, count - len(callers)))]
        callers += batch
        replies = await asyncio.gather(*(caller.ask(request, until=mark) for caller in batch))
        refused = [reply.status for reply in replies if reply.status != 200]
        if refused:
            raise LoadFailed(f"{contestant.label} refused an idle stream with {refused[0]}")
    return callers


def close_all(callers: list[Caller]) -> None:
    for caller in callers:
        caller.transport.abort()
