"""`AGUIChannel`: its routes and the handling of its requests."""

from functools import partial
from typing import Any, Unpack
from urllib.parse import parse_qs

import msgspec
from starlette.routing import Route

from frontdesk.asgi.messages import NO_RETRY, error_headers, send_json
from frontdesk.channels.agui.config import AGUIConfig, AGUISettings
from frontdesk.channels.agui.events import Script, event
from frontdesk.channels.agui.intake import CancelRun, FollowRun, Intake, ReplayRun
from frontdesk.channels.agui.parse import decode, parse_thread_id
from frontdesk.channels.agui.schema import RunInput
from frontdesk.channels.agui.thread import SEPARATOR
from frontdesk.channels.agui.threads import Threads, ThreadView
from frontdesk.errors import InvalidRequestError, RequestError
from frontdesk.http.bodies import read_payload
from frontdesk.http.channel import HttpChannel, takes_settings
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.lasting import keep_open
from frontdesk.http.sse import EventStream, send_events, stream_events
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import FINAL, RunRecord
from frontdesk.openai.bodies import encode

RawHeader = tuple[bytes, bytes]


class AGUIChannel(HttpChannel):
    """Serves the target to web applications by the AG-UI protocol."""

    @takes_settings(AGUIConfig)
    def __init__(self, *, name: str = "agui", path: str = "/agui", **settings: Unpack[AGUISettings]) -> None:
        self._config = config = AGUIConfig(**settings)
        super().__init__(config, name=name, path=path)

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._threads = Threads(context)
        self._intake = Intake(self.name, self._config, context, self._threads)
        return super().contribute(context)

    def routes(self) -> list[Route]:
        return [
            Route("/", endpoint=self.endpoint(runs=["POST"], POST=self.run)),
            Route("/threads/{thread_id}", endpoint=self.endpoint(GET=self.read_thread)),
            Route("/runs/{run_id}/cancel", endpoint=self.endpoint(POST=self.cancel)),
        ]

    async def run(self, call: HttpCall) -> None:
        body, raw = await self.read_body(call, decode)
        asked = await self._intake.read(call.caller, body, len(raw))
        if isinstance(asked, FollowRun):
            return await self._follow(call, body, asked.run_id)
        if isinstance(asked, CancelRun):
            return await self._cancel_questions(call, body, asked.run_id)
        protocol_request = None if self.run_hook is None else await read_payload(raw, call.scope)
        is_current = body.protocol_version is not None
        # A quiet stream would keep what its request was read from.
        thread_id, run_id = body.thread_id, body.run_id
        del raw, body
        if isinstance(asked, ReplayRun):
            opened = self.context.runs.follow(call.caller, asked.run_id)
        else:
            opened = self.context.stream(asked, call.caller, protocol_request=protocol_request)
        async with await opened as stream:
            run = stream.run
            if run.status == "queued" and not run.stream:
                return await self._send_queued(call, run, thread_id, run_id)
            script = Script(run, thread_id=thread_id, run_id=run_id, is_current=is_current)
            prepare = partial(self._prepare_end, call, script)
            await stream_events(call, stream, script, self._config.streams, _headers(call, run_id), prepare)

    async def _prepare_end(self, call: HttpCall, script: Script, hosted: HostedRunResult[Any]) -> None:
        await self._threads.prepare_end(call.caller, script, hosted.run, hosted.result)

    async def _send_queued(self, call: HttpCall, run: RunRecord, thread_id: str, run_id: str) -> None:
        """Send the end of a run whose answer is delivered elsewhere, as a hook has set."""
        ids = {"threadId": thread_id, "runId": run_id}
        queued = event("CUSTOM", name="queued", value={"runId": run.run_id})
        call.begun = True
        events = b"".join((event("RUN_STARTED", **ids), queued, event("RUN_FINISHED", **ids)))
        await send_events(call.send, events, _headers(call, run_id))

    async def _follow(self, call: HttpCall, body: RunInput, asked: str) -> None:
        """Send the runs that went on after somebody else's decision."""
        run = await self.context.runs.get(call.caller, asked)
        is_current = body.protocol_version is not None
        script = Script(run, thread_id=body.thread_id, run_id=body.run_id, is_current=is_current)
        events = self._event_stream(call)
        try:
            call.begun = True
            await events.start(_headers(call, body.run_id))
            await self._threads.send_continuation(call.caller, asked, script, events)
            await events.end()
        finally:
            events.stop()

    def _event_stream(self, call: HttpCall) -> EventStream:
        times = self._config.streams
        return EventStream(call.send, keep_alive=times.keep_alive, send_seconds=times.send_seconds, reader=call)

    async def _cancel_questions(self, call: HttpCall, body: RunInput, asked: str) -> None:
        chain = await self.context.runs.cancel_chain(call.caller, asked)
        is_current = body.protocol_version is not None
        script = Script(chain.newest, thread_id=body.thread_id, run_id=body.run_id, is_current=is_current)
        call.begun = True
        events = b"".join((*script.begin(), *script.end(chain.newest, None)))
        await send_events(call.send, events, _headers(call, body.run_id))

    async def read_thread(self, call: HttpCall) -> None:
        thread_id = parse_thread_id(call.scope["path_params"]["thread_id"])
        waits = _waits(call.scope["query_string"])
        view = await self._threads.find(call.caller, thread_id)
        if b"application/json" in call.headers.get(b"accept", b""):
            return await self._send_thread(call, thread_id, view)
        events = self._event_stream(call)
        try:
            with keep_open(call.scope):
                call.begun = True
                await events.start(_headers(call, view.newest.run_id))
                await self._threads.send(call.caller, thread_id, view, events, waits=waits, is_current=True)
                await events.end()
        finally:
            events.stop()

    async def _send_thread(self, call: HttpCall, thread_id: str, view: ThreadView) -> None:
        shown = {
            "threadId": thread_id,
            "runId": view.newest.run_id,
            "isRunning": view.newest.status not in FINAL,
            "messages": view.messages,
            "interrupts": await self._threads.interrupts(call.caller, view),
        }
        if view.state is not msgspec.UNSET:
            shown["state"] = view.state
        await send_json(call.send, 200, encode(shown), _headers(call, view.newest.run_id))

    async def cancel(self, call: HttpCall) -> None:
        run_id = plain_id(call.scope["path_params"]["run_id"], "runId")
        chain = await self.context.runs.cancel_chain(call.caller, run_id)
        thread_id = (chain.newest.session_key or "").partition(SEPARATOR)[0]
        shown = {"threadId": thread_id, "runId": run_id, "status": chain.status}
        await send_json(call.send, 200, encode(shown), _headers(call, run_id))

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        """Send an error. For a started run send its outcome instead, because clients retry errors."""
        if isinstance(error.run, RunRecord):
            run = error.run
            script = Script(run, thread_id=(run.session_key or "").partition(SEPARATOR)[0])
            call.begun = True
            events = b"".join((*script.begin(), *script.fail(run, error)))
            return await send_events(call.send, events, _headers(call, run.run_id))
        headers = [*error_headers(error), (b"x-request-id", call.answer_id)]
        shown = {"code": error.code, "message": error.message}
        if error.param:
            shown["param"] = error.param
        await send_json(call.send, error.status, encode({"error": shown}), headers)


def _headers(call: HttpCall, run_id: str) -> list[RawHeader]:
    # A run that failed is no failed request. To repeat it, clients need a new run id.
    return [(b"x-request-id", call.request_id or run_id.encode()), NO_RETRY]


def _waits(query: bytes) -> bool:
    given = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("wait", ["false"])[-1]
    if given not in ("true", "false"):
        raise InvalidRequestError("`wait` must be true or false.", param="wait")
    return given == "true"
