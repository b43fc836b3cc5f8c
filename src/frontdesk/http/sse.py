"""Server-sent events, written directly to ASGI."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import msgspec
from starlette.types import Send

from frontdesk.asgi.messages import RawHeaders
from frontdesk.concurrency.tasks import call_later_within, current_task, spawn_within
from frontdesk.errors import RequestError
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.server_limits import SEND_SECONDS
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunRecord

M = TypeVar("M")


async def pump(
    stream: HostedStreamResult[Any],
    render: Callable[[Any], Iterable[M]],
    send: Callable[[M], Awaitable[None]],
    opening: Iterable[Callable[[], Awaitable[None]]] = (),
) -> HostedRunResult[Any]:
    """Run the opening steps, send the messages of every update, and return the outcome of the run.

    A run works in the task that reads its stream. Cancelling the run while `send` waits for a slow client therefore
    interrupts `send`. The message is then sent again: servers wait before they write, and have not written it.
    """
    for step in opening:
        try:
            await step()
        except asyncio.CancelledError:
            # There are no updates after that: the stream is closed.
            await _end_cancelled(stream)
            await step()
    # A quiet stream would keep the last step, with its bytes.
    step = None
    async for update in stream:
        for message in render(update):
            try:
                await send(message)
            except asyncio.CancelledError:
                # The iteration ends with this update: its stream is closed.
                await _end_cancelled(stream)
                await send(message)
        message = None
    return stream.final()


async def _end_cancelled(stream: HostedStreamResult[Any]) -> None:
    """End a cancelled run and undo its cancellation of this task. Any other cancellation is raised again."""
    await stream.aclose()
    if current_task().cancelling():
        raise asyncio.CancelledError


STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_KEEP_ALIVE: Final = b": keep-alive\n\n"
_CHECKS_PER_TIMEOUT: Final = 4
"""The number of checks of a reader within the time for which it may read nothing."""


@dataclass(frozen=True)
class StreamTimes:
    """The timeouts after which an idle stream gets a comment, and an idle reader counts as disconnected."""

    keep_alive: float = 15.0
    """The idle seconds after which a comment is sent."""
    send_seconds: float = SEND_SECONDS
    """The seconds for which a reader may read nothing before it counts as gone."""

    def findings(self) -> list[str]:
        values = {"keep_alive": self.keep_alive, "send_seconds": self.send_seconds}
        return [f"{name} must be positive" for name, value in values.items() if value <= 0]


DEFAULT_TIMES: Final = StreamTimes()


def encode_event(name: bytes, data: bytes, number: int) -> bytes:
    """Encode one event. The data must be one line: JSON has no raw line ends."""
    # Formatted, it would cost twice as much.
    return b"".join((b"event: ", name, b"\nid: ", str(number).encode(), b"\ndata: ", data, b"\n\n"))


def encode_data(event: bytes) -> bytes:
    """Return the data of an event, for transports that need nothing else."""
    return event.partition(b"data: ")[2].removesuffix(b"\n\n")


async def send_events(send: Send, events: bytes, headers: RawHeaders = ()) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": events})


class Reader(Protocol):
    """The client of a stream, as far as its server reports it."""

    def count_received(self) -> int:
        """Return a number that changes whenever the client has read something. Constant if the server does not report
        it."""
        ...

    def leave(self) -> None: ...


class EventStream:
    """A response of server-sent events. Sends comments while idle so that no proxy closes it.

    A reader that reads nothing for `send_seconds` while data is pending counts as disconnected.
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
        self._pause = send_seconds / _CHECKS_PER_TIMEOUT
        self._blocked = False
        self._looked: tuple[float, int] | None = None
        self._loop = asyncio.get_running_loop()
        self._idle_since = self._stuck_since = self._loop.time()
        self._nudge: asyncio.Task[None] | None = None
        self._handle = call_later_within(min(keep_alive, self._pause), self._wake, loop=self._loop)

    async def start(self, headers: RawHeaders = ()) -> None:
        """Send the response headers."""
        self._blocked = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})
        self._blocked = False

    async def send(self, event: bytes) -> None:
        """Send one event. Waits while the reader is slow."""
        self._idle_since = self._loop.time()
        self._blocked = True
        send = self._send
        await send({"type": "http.response.body", "body": event, "more_body": True})
        self._blocked = False

    async def end(self) -> None:
        self._idle_since = self._loop.time()
        self._blocked = True
        if self._nudge is not None:
            self._nudge.cancel()
        await self._send({"type": "http.response.body", "body": b""})
        self.stop()

    def stop(self) -> None:
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
        """Return True if the reader has read nothing for too long while the same event is pending."""
        looked = (self._idle_since, 0 if self._reader is None else self._reader.count_received())
        if looked != self._looked:
            self._looked, self._stuck_since = looked, now
        return now - self._stuck_since >= self._send_seconds

    async def _comment(self) -> None:
        self._idle_since = self._loop.time()
        await self._send({"type": "http.response.body", "body": _KEEP_ALIVE, "more_body": True})


class EventEncoder(Protocol):
    """Renders a run as the events of a protocol. Each returned bytes object is sent in one piece."""

    def begin(self) -> Sequence[bytes]:
        """Return the events before the first update."""
        ...

    def update(self, update: Any) -> Sequence[bytes]:
        """Return the events of an update, possibly none."""
        ...

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        """Return the events after the last update, which report the outcome of the run."""
        ...

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        """Return the final events of a stream that ended with an error."""
        ...


async def stream_events(
    call: HttpCall,
    stream: HostedStreamResult[Any],
    script: EventEncoder,
    times: StreamTimes,
    headers: RawHeaders,
    prepare_end: Callable[[HostedRunResult[Any]], Awaitable[None]] | None = None,
) -> None:
    """Answer a request with the events of a run. The final event is always sent.

    `prepare_end` reads what `script.end` needs.
    """
    events = EventStream(call.send, keep_alive=times.keep_alive, send_seconds=times.send_seconds, reader=call)
    try:
        # An iterator lets the list go at its end: a quiet stream would keep the events that were sent first.
        opening = iter([partial(events.start, headers), *(partial(events.send, event) for event in script.begin())])
        call.begun = True
        try:
            hosted = await pump(stream, script.update, events.send, opening)
            if prepare_end is not None:
                await prepare_end(hosted)
            last = script.end(hosted.run, hosted.result)
        except RequestError as error:
            last = script.fail(stream.run, error)
        for event in last:
            await events.send(event)
        await events.end()
    finally:
        events.stop()


_MARK = "\uf8ff"


def mark(name: str) -> str:
    return f"{_MARK}{name}"


class JsonTemplate:
    __slots__ = ("_form",)

    def __init__(self, drawn: bytes, names: Sequence[str]) -> None:
        """`names` are the placeholders in order of appearance."""
        parts: list[bytes] = []
        for name in names:
            before, separator, drawn = drawn.partition(msgspec.json.encode(mark(name)))
            if not separator:
                raise ValueError(f"placeholder {name!r} is missing or out of order")
            parts.append(before)
        # Formatted as a whole: joined, the many pieces would cost as much again.
        self._form = b"%b".join(part.replace(b"%", b"%%") for part in (*parts, drawn))
        if _MARK.encode() in self._form:
            raise ValueError("the template has a placeholder that is not in names")

    def fill(self, *values: bytes) -> bytes:
        return self._form % values
