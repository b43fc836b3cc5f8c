"""Writes answers on the wire."""

from collections.abc import Awaitable, Sequence
from typing import Any

from frontdesk.channels.chat_completions.render import DONE, Renderer, error_body, feed, reason_of, status_of
from frontdesk.channels.chat_completions.wire import Delta
from frontdesk.data.result import HostedStreamResult
from frontdesk.data.run import RunRecord
from frontdesk.errors import InternalError, RequestError
from frontdesk.kit.http.asgi import NO_RETRY, error_headers, send_json
from frontdesk.kit.http.endpoint import HttpCall
from frontdesk.kit.http.sse import StreamTimes, stream_events
from frontdesk.kit.openai.answers import encode

RawHeader = tuple[bytes, bytes]


class ResponseWriter:
    """Writes the response to one caller."""

    __slots__ = ("_call", "_renderer")

    def __init__(self, call: HttpCall, renderer: Renderer) -> None:
        self._call = call
        self._renderer = renderer

    async def run(self, run: RunRecord, result: Any) -> None:
        """Send a whole completion; a run that did not complete is an error, because the API has no other word."""
        if run.status != "completed":
            return await self.error(not_completed(run))
        await self._send(self._renderer.completion(run, result), self._headers(run))

    def json(self, body: Any) -> Awaitable[None]:
        """Send anything else that is asked for."""
        return self._send(encode(body), self._headers())

    def _send(self, raw: bytes, headers: list[RawHeader]) -> Awaitable[None]:
        self._call.begun = True
        return send_json(self._call.send, 200, raw, headers)

    async def error(self, error: RequestError) -> None:
        """Send an error; one of a run that has begun tells clients not to run it again."""
        headers = [*error_headers(error), *self._headers()]
        if error.run is not None and NO_RETRY not in headers:
            headers.append(NO_RETRY)
        await send_json(self._call.send, status_of(error), error_body(error), headers)

    def _headers(self, run: RunRecord | None = None) -> list[RawHeader]:
        """Return the caller's own id for the request; else that of the run, or a new one."""
        if run is None:
            return [(b"x-request-id", self._call.answer_id)]
        return [(b"x-request-id", self._call.request_id or run.run_id.encode())]

    async def stream(self, stream: HostedStreamResult[Any], times: StreamTimes) -> None:
        """Send a chunk for every piece of the message as it comes."""
        script = Script(self._renderer, stream.run)
        await stream_events(self._call, stream, script, times, self._headers(stream.run))


def not_completed(run: RunRecord) -> RequestError:
    """Return the error that says how a run ended which did not complete."""
    failure = run.failure
    if failure is not None:
        error = InternalError(failure.message, code=failure.code)
    else:
        error = InternalError(f"The run is {run.status}, and has no answer.", code="run_not_completed")
    error.run = run
    return error


class Script:
    """Turns the updates of a run into the chunks of the API."""

    def __init__(self, renderer: Renderer, run: RunRecord) -> None:
        self._renderer = renderer
        self._run = run
        self._told: list[bytes] = []
        self._assembler = renderer.assembler(run, self._tell)

    def _tell(self, delta: Delta) -> None:
        self._told.append(self._renderer.chunk(self._run, delta))

    def _take(self) -> Sequence[bytes]:
        told, self._told = self._told, []
        return told if len(told) <= 1 else (b"".join(told),)

    def begin(self) -> Sequence[bytes]:
        """Return the chunk that says who speaks."""
        return (self._renderer.chunk(self._run, Delta(role="assistant", content="")),)

    def update(self, update: Any) -> Sequence[bytes]:
        """Return the chunks of an update; nothing, perhaps."""
        feed(self._assembler, update)
        return self._take() if self._told else ()

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        """Return the chunks that say how it ended."""
        if run.status != "completed":
            return self.fail(run, not_completed(run))
        self._assembler.finish()
        self._told.append(self._renderer.chunk(self._run, Delta(), reason_of(self._assembler, result)))
        if self._run.details.get("include_usage") and (usage := self._renderer.usage(self._run, result)) is not None:
            self._told.append(usage)
        self._told.append(DONE)
        return self._take()

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        """Return the error that ends a stream; without `[DONE]`, which would say that all of it came."""
        return (b"data: %b\n\n" % error_body(error),)
