"""Writes responses and event streams."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from frontdesk.asgi.messages import NO_RETRY, error_headers, send_json
from frontdesk.channels.responses.render import Renderer, error_body, event, get_status
from frontdesk.channels.responses.schema import ResponseOut, TextDelta
from frontdesk.errors import RequestError
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.sse import StreamTimes, send_events, stream_events
from frontdesk.models.result import HostedStreamResult
from frontdesk.models.run import RunFailure, RunRecord
from frontdesk.openai.bodies import encode

RawHeader = tuple[bytes, bytes]
Pack = Callable[[list[bytes]], Sequence[bytes]]
"""Makes the pieces in which events are sent."""
_NUMBER = b'"sequence_number":0'
_TEXT = b'"delta":""'


class ResponseWriter:
    __slots__ = ("_call", "_renderer")

    def __init__(self, call: HttpCall, renderer: Renderer) -> None:
        self._call = call
        self._renderer = renderer

    def run(self, run: RunRecord, result: Any = None) -> Awaitable[None]:
        drawn = self._renderer.plain(run, result)
        return self._send(drawn or encode(self._renderer.response(run, result)), self._headers(run))

    def json(self, body: Any) -> Awaitable[None]:
        """Send any other JSON body."""
        return self.raw(encode(body))

    def raw(self, raw: bytes) -> Awaitable[None]:
        return self._send(raw, self._headers())

    def _send(self, raw: bytes, headers: list[RawHeader]) -> Awaitable[None]:
        self._call.begun = True
        return send_json(self._call.send, 200, raw, headers)

    async def error(self, error: RequestError) -> None:
        """Send an error. For a started run send its outcome instead, because clients retry errors."""
        if isinstance(error.run, RunRecord):
            return await self._send_failure(error.run)
        headers = [*error_headers(error), *self._headers()]
        await send_json(self._call.send, get_status(error), error_body(error), headers)

    async def _send_failure(self, run: RunRecord) -> None:
        if not run.stream:
            return await self._send(encode(self._renderer.response(run)), [*self._headers(run), NO_RETRY])
        self._call.begun = True
        events = b"".join(build_failed_events(self._renderer, run))
        await send_events(self._call.send, events, [*self._headers(run), NO_RETRY])

    def _headers(self, run: RunRecord | None = None) -> list[RawHeader]:
        """Return the request id header: the caller's own id, or that of the run, or a new one."""
        if run is None:
            return [(b"x-request-id", self._call.answer_id)]
        given = self._call.request_id if b"x-request-id" in self._call.headers else None
        return [(b"x-request-id", given or run.run_id.encode())]

    async def send_queued(self, run: RunRecord) -> None:
        """Send the stream of a run whose answer is delivered elsewhere."""
        self._call.begun = True
        await send_events(self._call.send, b"".join(build_queued_events(self._renderer, run)), self._headers(run))

    async def stream(self, stream: HostedStreamResult[Any], times: StreamTimes, after: int = -1) -> None:
        """Send the events numbered above `after`, and always the last one."""
        script = Script(self._renderer, stream.run, after)
        await stream_events(self._call, stream, script, times, self._headers(stream.run))


def build_failed_run(run: RunRecord, error: RequestError) -> RunRecord:
    return run.replace(status="failed", failure=RunFailure(code=error.code, message=error.message))


class Script:
    """Converts the updates of a run into the events of the API, numbered without gaps.

    The events depend only on the run and its updates, so they are the same for every reader. Events that a reader
    already has are rendered again and skipped.
    """

    def __init__(self, renderer: Renderer, run: RunRecord, after: int = -1, pack: Pack | None = None) -> None:
        """`after` is the number of the last event that the reader has received.

        The events of an update form one piece, unless `pack` groups them differently.
        """
        self._renderer = renderer
        # As it was when it began, whatever became of it.
        self._run = run.replace(status="running", finished_at=None, failure=None)
        self._after = after
        self._pack = pack
        self._number = 0
        self._told: list[bytes] = []
        self._deltas = TextDeltas()
        self._assembler = renderer.assembler(run, emit=self._tell, delta=self._tell_delta)

    def _tell(self, kind: str, fields: dict[str, Any]) -> None:
        if self._number > self._after:
            self._told.append(event(kind, fields, self._number))
        self._number += 1

    def _tell_delta(self, item_id: str, output_index: int, content_index: int, text: str) -> None:
        if self._number > self._after:
            self._told.append(self._deltas.event(self._number, item_id, output_index, content_index, text))
        self._number += 1

    def _take(self) -> Sequence[bytes]:
        told, self._told = self._told, []
        if self._pack is not None:
            return self._pack(told)
        return told if len(told) <= 1 else (b"".join(told),)

    def begin(self) -> Sequence[bytes]:
        """Return the first two events."""
        response = self._renderer.response(self._run, output=[])
        created = msgspec.structs.replace(response, status="queued") if self._run.background else response
        self._tell("response.created", {"response": created})
        self._tell("response.in_progress", {"response": response})
        return self._take()

    def update(self, update: Any) -> Sequence[bytes]:
        self._assembler.add(update)
        return self._take() if self._told else ()

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        """Close open items, emit pending questions and the final event."""
        self._renderer.finish(self._assembler, run, result)
        if run.status == "failed" and not self._assembler.items:
            # Some clients take a stream that fails before its first item for one that never began, and ask again.
            self._assembler.begin_nothing()
        response = self._renderer.response(run, result, self._assembler.items)
        self._tell(_last(response), {"response": response})
        return self._take()

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        """Emit the final events of a stream that failed."""
        return self.end(build_failed_run(run, error), None)


def build_failed_events(renderer: Renderer, run: RunRecord, pack: Pack | None = None) -> list[bytes]:
    """Return the whole stream of a run that failed before its first update."""
    script = Script(renderer, run, pack=pack)
    return [*script.begin(), *script.end(run, None)]


def build_queued_events(renderer: Renderer, run: RunRecord) -> list[bytes]:
    """Return the whole stream of a run whose answer is delivered elsewhere."""
    response = {"response": renderer.response(run, output=[])}
    return [event("response.created", response, 0), event("response.queued", response, 1)]


class TextDeltas:
    """Encodes text deltas. The result equals full encoding, for a third of the cost."""

    __slots__ = ("_after", "_before", "_between", "_place")

    def __init__(self) -> None:
        self._place = ("", -1, -1)
        self._before = self._between = self._after = b""

    def event(self, number: int, item_id: str, output_index: int, content_index: int, text: str) -> bytes:
        place = (item_id, output_index, content_index)
        if place != self._place:
            self._draw(item_id, output_index, content_index)
            self._place = place
        return b"".join((self._before, str(number).encode(), self._between, encode(text), self._after))

    def _draw(self, item_id: str, output_index: int, content_index: int) -> None:
        """Encode an event without number and text, and cache the bytes around them."""
        drawn = encode(
            TextDelta(
                sequence_number=0, item_id=item_id, output_index=output_index, content_index=content_index, delta=""
            )
        )
        # Quotes within an id would be escaped, so that it can't pass for a field.
        before, _, rest = drawn.partition(_NUMBER)
        between, _, after = rest.rpartition(_TEXT)
        self._before = b"event: response.output_text.delta\ndata: " + before + _NUMBER[:-1]
        self._between = between + _TEXT[:-2]
        self._after = after + b"\n\n"


def _last(response: ResponseOut) -> str:
    # The API has no event for a cancelled run; its clients end a stream at one of these three.
    return (
        f"response.{response.status}"
        if response.status in ("completed", "failed", "incomplete")
        else "response.incomplete"
    )
