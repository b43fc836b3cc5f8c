"""Server-sent events, written straight on ASGI."""

import asyncio
from typing import Final

from starlette.types import Send

from frontdesk.kit.http import RawHeaders
from frontdesk.kit.tasks import call_later_within, spawn_within

STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_KEEP_ALIVE: Final = b": keep-alive\n\n"


def encode_event(name: bytes, data: bytes, number: int) -> bytes:
    """One event. The data is one line: JSON has no raw line ends."""
    return b"event: %b\nid: %d\ndata: %b\n\n" % (name, number, data)


def data_of(events: bytes) -> list[bytes]:
    """The data of some events, for a wire that needs no more of them."""
    return [event.partition(b"data: ")[2] for event in events.split(b"\n\n")[:-1]]


async def send_events(send: Send, events: bytes, headers: RawHeaders = ()) -> None:
    """A whole stream at once."""
    await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": events})


class EventStream:
    """A response of events. While it is idle it sends comments, so that nobody on the way closes it."""

    __slots__ = ("_handle", "_idle_since", "_interval", "_loop", "_nudge", "_send")

    def __init__(self, send: Send, *, keep_alive: float = 15.0) -> None:
        self._send = send
        self._interval = keep_alive
        self._loop = asyncio.get_running_loop()
        self._idle_since = self._loop.time()
        self._nudge: asyncio.Task[None] | None = None
        self._handle = call_later_within(keep_alive, self._wake, loop=self._loop)

    async def start(self, headers: RawHeaders = ()) -> None:
        """Sends the head."""
        await self._send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})

    async def send(self, event: bytes) -> None:
        """Sends one event; waits while the reader is slow."""
        self._idle_since = self._loop.time()
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def end(self) -> None:
        """Sends the end."""
        self.stop()
        await self._send({"type": "http.response.body", "body": b""})

    def stop(self) -> None:
        """Sends nothing more."""
        self._handle.cancel()
        if self._nudge is not None:
            self._nudge.cancel()

    def _wake(self) -> None:
        quiet = self._loop.time() - self._idle_since
        if quiet >= self._interval and (self._nudge is None or self._nudge.done()):
            self._nudge = spawn_within(self.send(_KEEP_ALIVE))
            quiet = 0.0
        self._handle = call_later_within(max(self._interval - quiet, 0.01), self._wake, loop=self._loop)
