"""Writes answers on the wire."""

import asyncio
from collections.abc import Awaitable

from frontdesk.channels.invocations.parse import INVOCATION_ID, SESSION_ID
from frontdesk.channels.invocations.render import Renderer, encode, ended, error_body, error_out, started
from frontdesk.channels.invocations.wire import InvocationOut
from frontdesk.data.result import HostedStreamResult
from frontdesk.data.run import RunRecord
from frontdesk.errors import RequestError
from frontdesk.kit.aio.tasks import present_task
from frontdesk.kit.http.asgi import NO_RETRY, below, error_headers, send_json
from frontdesk.kit.http.endpoint import HttpCall
from frontdesk.kit.http.sse import EventStream, StreamTimes, send_events

RawHeader = tuple[bytes, bytes]


def run_headers(run: RunRecord, request_id: bytes | None) -> list[RawHeader]:
    """The ids by which a caller finds a run and its session again."""
    run_id = run.run_id.encode()
    headers = [(INVOCATION_ID, run_id), (b"x-request-id", request_id or run_id)]
    if run.session_key is not None:
        headers.append((SESSION_ID, run.session_key.encode()))
    return headers


class Answer:
    """The way back to one caller."""

    __slots__ = ("_call", "_path", "_renderer")

    def __init__(self, call: HttpCall, renderer: Renderer, path: str) -> None:
        """`path` is that of the channel, below which its runs are found."""
        self._call = call
        self._renderer = renderer
        self._path = path

    def run(self, run: RunRecord, result: object = None) -> Awaitable[None]:
        """A run, with its result if it has one; 202 while it is queued."""
        body = self._renderer.plain(run, result) or encode(self._renderer.invocation(run, result))
        self._call.begun = True
        headers = run_headers(run, self._call.request_id)
        if run.status != "queued":
            return send_json(self._call.send, 200, body, headers)
        location = (b"location", below(self._call.scope, f"{self._path}/{run.run_id}"))
        return send_json(self._call.send, 202, body, [*headers, location])

    async def error(self, error: RequestError) -> None:
        """What went wrong; of a run that has begun, how it ended, since a client repeats what was an error."""
        if isinstance(error.run, RunRecord):
            return await self._failed(error.run)
        headers = [*error_headers(error), (b"x-request-id", self._call.answer_id)]
        await send_json(self._call.send, error.status, error_body(error), headers)

    async def _failed(self, run: RunRecord) -> None:
        headers = [*run_headers(run, self._call.request_id), NO_RETRY]
        out = self._renderer.invocation(run, None)
        self._call.begun = True
        if run.stream:
            return await send_events(self._call.send, started(run) + ended(out, 1), headers)
        await send_json(self._call.send, 200, encode(out), headers)

    async def stream(self, stream: HostedStreamResult[object], times: StreamTimes, after: int = -1) -> None:
        """Every update above a number as it comes, and at the end what it all came to."""
        call = self._call
        events = EventStream(call.send, keep_alive=times.keep_alive, send_seconds=times.send_seconds, reader=call)
        try:
            self._call.begun = True
            await events.start(run_headers(stream.run, self._call.request_id))
            if after < 0:
                await events.send(started(stream.run))
            number = 1
            try:
                async for update in stream:
                    event = self._renderer.update(update, number)
                    if event is not None:
                        # Numbered from the start, so that every reader counts alike.
                        if number > after:
                            await events.send(event)
                        number += 1
                out = self._ended(stream)
            except RequestError as error:
                out = self._broken_off(stream.run, error)
            except asyncio.CancelledError:
                # If it was the run that was cancelled, closing it takes that back from this task, which waited for a
                # slow reader at that moment.
                await stream.aclose()
                if present_task().cancelling():
                    raise
                out = self._ended(stream)
            if number > after:
                await events.send(ended(out, number))
            await events.end()
        finally:
            events.stop()

    def _ended(self, stream: HostedStreamResult[object]) -> InvocationOut:
        hosted = stream.final()
        return self._renderer.invocation(hosted.run, hosted.result)

    def _broken_off(self, run: RunRecord, error: RequestError) -> InvocationOut:
        out = self._renderer.invocation(error.run if isinstance(error.run, RunRecord) else run, None)
        out.status = "failed"
        out.error = error_out(error, run.run_id)
        return out
