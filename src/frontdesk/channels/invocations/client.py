"""Writes answers on the wire."""

from collections.abc import Awaitable, Sequence
from typing import Any

from frontdesk.channels.invocations.parse import INVOCATION_ID, SESSION_ID
from frontdesk.channels.invocations.render import Renderer, encode, ended, error_body, error_out, started
from frontdesk.channels.invocations.wire import InvocationOut
from frontdesk.data.result import HostedStreamResult
from frontdesk.data.run import RunRecord
from frontdesk.errors import RequestError
from frontdesk.kit.http.asgi import NO_RETRY, below, error_headers, send_json
from frontdesk.kit.http.endpoint import HttpCall
from frontdesk.kit.http.sse import StreamTimes, send_events, stream_events

RawHeader = tuple[bytes, bytes]


def run_headers(run: RunRecord, request_id: bytes | None) -> list[RawHeader]:
    """Return the ids by which a caller finds a run and its session again."""
    run_id = run.run_id.encode()
    headers = [(INVOCATION_ID, run_id), (b"x-request-id", request_id or run_id)]
    if run.session_key is not None:
        headers.append((SESSION_ID, run.session_key.encode()))
    return headers


class ResponseWriter:
    """Writes the response to one caller."""

    __slots__ = ("_call", "_path", "_renderer")

    def __init__(self, call: HttpCall, renderer: Renderer, path: str) -> None:
        """`path` is that of the channel, below which its runs are found."""
        self._call = call
        self._renderer = renderer
        self._path = path

    def run(self, run: RunRecord, result: object = None) -> Awaitable[None]:
        """Send a run, with its result if it has one; 202 while it is queued."""
        body = self._renderer.plain(run, result) or encode(self._renderer.invocation(run, result))
        self._call.begun = True
        headers = run_headers(run, self._call.request_id)
        if run.status != "queued":
            return send_json(self._call.send, 200, body, headers)
        location = (b"location", below(self._call.scope, f"{self._path}/{run.run_id}"))
        return send_json(self._call.send, 202, body, [*headers, location])

    async def error(self, error: RequestError) -> None:
        """Send an error; of a run that has begun, how it ended, since a client repeats what was an error."""
        if isinstance(error.run, RunRecord):
            return await self._failed(error.run)
        headers = [*error_headers(error), (b"x-request-id", self._call.answer_id)]
        await send_json(self._call.send, error.status, error_body(error), headers)

    async def _failed(self, run: RunRecord) -> None:
        headers = [*run_headers(run, self._call.request_id), NO_RETRY]
        self._call.begun = True
        if not run.stream:
            return await send_json(self._call.send, 200, encode(self._renderer.invocation(run, None)), headers)
        script = Script(self._renderer, run)
        await send_events(self._call.send, b"".join((*script.begin(), *script.end(run, None))), headers)

    async def stream(self, stream: HostedStreamResult[Any], times: StreamTimes, after: int = -1) -> None:
        """Send an event above a number for every update as it comes, and at the end what it all came to."""
        script = Script(self._renderer, stream.run, after)
        await stream_events(self._call, stream, script, times, run_headers(stream.run, self._call.request_id))


class Script:
    """Turns the updates of a run into events, numbered from the start, so that every reader counts alike."""

    def __init__(self, renderer: Renderer, run: RunRecord, after: int = -1) -> None:
        """`after` is the number of the last event that the reader has."""
        self._renderer = renderer
        self._run = run
        self._after = after
        self._number = 1

    def begin(self) -> Sequence[bytes]:
        """Return the first event."""
        return () if self._after >= 0 else (started(self._run),)

    def update(self, update: Any) -> Sequence[bytes]:
        """Return the event of an update that shows something."""
        number = self._number
        event = self._renderer.update(update, number)
        if event is None:
            return ()
        self._number = number + 1
        return (event,) if number > self._after else ()

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        """Return the last event, with what the run came to."""
        return self._end(self._renderer.invocation(run, result))

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        """Return the last event of a stream that an error has ended."""
        out = self._renderer.invocation(error.run if isinstance(error.run, RunRecord) else run, None)
        out.status = "failed"
        out.error = error_out(error, run.run_id)
        return self._end(out)

    def _end(self, out: InvocationOut) -> Sequence[bytes]:
        return (ended(out, self._number),) if self._number > self._after else ()
