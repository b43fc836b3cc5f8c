"""Load on one server: connections that repeat one request, for a time or up to a number of requests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from sys import maxsize
from time import perf_counter, process_time

from bench.http_client import LOCALHOST, HttpReader

SETTLE_SECONDS = 20


class LoadFailed(Exception):
    """The server did not answer as it must; figures about that would be worth nothing."""


@dataclass(slots=True)
class Tally:
    """What all connections of one load have seen so far."""

    quota: int
    requests: int = 0
    events: int = 0
    events_a_stream: int | None = None
    first_event_seconds: list[float] = field(default_factory=list[float])
    failure: str = ""

    def end_stream(self, events: int) -> None:
        """All streams of one load are alike; one that is shorter broke off."""
        if self.events_a_stream is None:
            self.events_a_stream = events
        if events != self.events_a_stream:
            self.fail(f"a stream of {events} events after one of {self.events_a_stream}")

    def fail(self, why: str) -> None:
        self.failure = self.failure or why
        self.quota = 0


@dataclass(frozen=True, slots=True)
class Load:
    """The result of one load."""

    requests: int
    events: int
    seconds: float
    generator_busy: float
    first_event_seconds: list[float]


class Pounder(HttpReader):
    """Sends the same request again as soon as the answer is complete."""

    def __init__(self, request: bytes, tally: Tally, event_mark: bytes) -> None:
        super().__init__()
        self.done = asyncio.get_running_loop().create_future()
        self._request = request
        self._tally = tally
        self._mark = event_mark
        self._overlap = b""
        self._events = 0
        self._sent_at = 0.0

    def send(self) -> None:
        if self._tally.quota <= 0:
            self.finish()
            return
        self._tally.quota -= 1
        self._events = 0
        self._overlap = b""
        self._sent_at = perf_counter()
        self.transport.write(self._request)

    def on_body(self, data: bytes) -> None:
        if not self.chunked:
            return
        reach = len(self._mark) - 1
        # A mark that was cut in two by the network counts as well.
        events = data.count(self._mark) + (self._overlap + data[:reach]).count(self._mark)
        self._overlap = data[-reach:] if reach else b""
        if events and not self._events:
            self._tally.first_event_seconds.append(perf_counter() - self._sent_at)
        self._events += events
        self._tally.events += events

    def on_end(self) -> None:
        if self.status != b"200":
            self._tally.fail(f"status {self.status.decode()}")
        if self.chunked:
            self._tally.end_stream(self._events)
        self._tally.requests += 1
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._tally.fail(f"connection lost: {exc or 'closed by the server'}")
            self.finish()

    def finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def pound(
    port: int,
    request: bytes,
    *,
    connections: int,
    seconds: float | None = None,
    requests: int = maxsize,
    event_mark: bytes = b"\n\n",
) -> Load:
    """Counts until `seconds` have passed, or until `requests` are answered; then lets the rest end in peace."""
    tally = Tally(quota=requests)
    loop = asyncio.get_running_loop()
    pounders: list[Pounder] = []
    for _ in range(connections):
        _, pounder = await loop.create_connection(lambda: Pounder(request, tally, event_mark), LOCALHOST, port)
        pounders.append(pounder)
    started, busy = perf_counter(), process_time()
    for pounder in pounders:
        pounder.send()
    await asyncio.wait([pounder.done for pounder in pounders], timeout=seconds)
    elapsed = perf_counter() - started
    load = Load(
        requests=tally.requests,
        events=tally.events,
        seconds=elapsed,
        generator_busy=(process_time() - busy) / elapsed,
        first_event_seconds=list(tally.first_event_seconds),
    )
    await settle(pounders, tally)
    return load


async def settle(pounders: list[Pounder], tally: Tally) -> None:
    """No new requests; those under way get their answers."""
    tally.quota = 0
    _, unfinished = await asyncio.wait([pounder.done for pounder in pounders], timeout=SETTLE_SECONDS)
    for pounder in pounders:
        pounder.finish()
        pounder.transport.close()
    if tally.failure or unfinished:
        raise LoadFailed(tally.failure or f"{len(unfinished)} connections got no end of their answer")
