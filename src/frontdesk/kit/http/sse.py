"""Server-sent events, written straight on ASGI."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from starlette.types import Send

from frontdesk.data.result import HostedStreamResult
from frontdesk.data.run import RunRecord
from frontdesk.errors import RequestError
from frontdesk.kit.aio.pump import pump
from frontdesk.kit.aio.tasks import call_later_within, spawn_within
from frontdesk.kit.http.asgi import RawHeaders
from frontdesk.kit.http.endpoint import HttpCall
from frontdesk.kit.http.server_limits import SEND_SECONDS

STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_KEEP_ALIVE: Final = b": keep-alive\n\n"
_LOOKS: Final = 4
"""The number of checks of a reader within the time for which it may read nothing."""


@dataclass(frozen=True)
class StreamTimes:
    """The times after which an idle stream gets a comment, and an idle reader counts as gone."""

    keep_alive: float = 15.0
    """The idle seconds after which a comment is sent."""
    send_seconds: float = SEND_SECONDS
    """The seconds for which a reader may read nothing before it counts as gone."""

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        values = {"keep_alive": self.keep_alive, "send_seconds": self.send_seconds}
        return [f"{name} must be positive" for name, value in values.items() if value <= 0]


DEFAULT_TIMES: Final = StreamTimes()


def encode_event(name: bytes, data: bytes, number: int) -> bytes:
    """Encode one event. The data is one line: JSON has no raw line ends."""
    # Formatted, it would cost twice as much.
    return b"".join((b"event: ", name, b"\nid: ", str(number).encode(), b"\ndata: ", data, b"\n\n"))


def data_of(event: bytes) -> bytes:
    """Return the data of an event, for a wire that needs no more of it."""
    return event.partition(b"data: ")[2].removesuffix(b"\n\n")


async def send_events(send: Send, events: bytes, headers: RawHeaders = ()) -> None:
    """Send a whole stream at once."""
    await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": events})


class Reader(Protocol):
    """The client of a stream, as far as its server tells."""

    def taken(self) -> int:
        """Return a number that changes whenever the client has read something; constant if the server does not tell."""
        ...

    def leave(self) -> None:
        """Count the client as gone."""
        ...


class EventStream:
    """A response of events. While it is idle it sends comments, so that no proxy closes it.

    A reader who takes nothing of what is sent for `send_seconds` counts as gone.
    """

    __slots__ = (
        "_blocked",
        "_handle",
        "_idle_since",
        "_interval",
        "_looked",
        "_loop",
        "_nudge",
        "_pause",
        "_reader",
        "_send",
        "_send_seconds",
        "_stuck_since",
    )

    def __init__(
        self,
        send: Send,
        *,
        keep_alive: float = StreamTimes.keep_alive,
        send_seconds: float = StreamTimes.send_seconds,
        reader: Reader | None = None,
    ) -> None:
        self._send = send
        self._reader = reader
        self._interval = keep_alive
        self._send_seconds = send_seconds
        self._pause = send_seconds / _LOOKS
        self._blocked = False
        self._looked: tuple[float, int] | None = None
        self._loop = asyncio.get_running_loop()
        self._idle_since = self._stuck_since = self._loop.time()
        self._nudge: asyncio.Task[None] | None = None
        self._handle = call_later_within(min(keep_alive, self._pause), self._wake, loop=self._loop)

    async def start(self, headers: RawHeaders = ()) -> None:
        """Send the head."""
        self._blocked = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})
        self._blocked = False

    async def send(self, event: bytes) -> None:
        """Send one event; wait while the reader is slow."""
        self._idle_since = self._loop.time()
        self._blocked = True
        send = self._send
        await send({"type": "http.response.body", "body": event, "more_body": True})
        self._blocked = False

    async def end(self) -> None:
        """Send the end."""
        self._idle_since = self._loop.time()
        self._blocked = True
        if self._nudge is not None:
            self._nudge.cancel()
        await self._send({"type": "http.response.body", "body": b""})
        self.stop()

    def stop(self) -> None:
        """Send nothing more."""
        self._handle.cancel()
        if self._nudge is not None:
            self._nudge.cancel()

    def _wake(self) -> None:
        now = self._loop.time()
        quiet = now - self._idle_since
        if self._blocked and self._is_stuck(now):
            if self._reader is not None:
                self._reader.leave()
            return
        if not self._blocked and quiet >= self._interval and (self._nudge is None or self._nudge.done()):
            self._nudge = spawn_within(self._comment())
            quiet = 0.0
        delay = self._pause if self._blocked else min(self._interval - quiet, self._pause)
        self._handle = call_later_within(max(delay, 0.01), self._wake, loop=self._loop)

    def _is_stuck(self, now: float) -> bool:
        """Tell whether the reader has taken nothing for too long, while the same event waits to be sent."""
        looked = (self._idle_since, 0 if self._reader is None else self._reader.taken())
        if looked != self._looked:
            self._looked, self._stuck_since = looked, now
        return now - self._stuck_since >= self._send_seconds

    async def _comment(self) -> None:
        self._idle_since = self._loop.time()
        await self._send({"type": "http.response.body", "body": _KEEP_ALIVE, "more_body": True})


class Script(Protocol):
    """Renders a run as the events of a protocol. Each of the bytes is sent in one piece."""

    def begin(self) -> Sequence[bytes]:
        """Return the events before the first update."""
        ...

    def update(self, update: Any) -> Sequence[bytes]:
        """Return the events of an update; it may have none."""
        ...

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        """Return the events after the last update, which say how the run has ended."""
        ...

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        """Return the same for a stream that an error has ended."""
        ...


async def stream_events(
    call: HttpCall, stream: HostedStreamResult[Any], script: Script, times: StreamTimes, headers: RawHeaders
) -> None:
    """Answer a request with the events of a run; the last one always comes."""
    events = EventStream(call.send, keep_alive=times.keep_alive, send_seconds=times.send_seconds, reader=call)
    try:
        opening = [partial(events.start, headers), *(partial(events.send, event) for event in script.begin())]
        call.begun = True
        try:
            hosted = await pump(stream, script.update, events.send, opening)
            last = script.end(hosted.run, hosted.result)
        except RequestError as error:
            last = script.fail(stream.run, error)
        for event in last:
            await events.send(event)
        await events.end()
    finally:
        events.stop()
