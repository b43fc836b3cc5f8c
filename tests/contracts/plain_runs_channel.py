"""`PlainChannel` with sessions, streams, background runs, approvals and request ids."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

import msgspec
from starlette.routing import Route

from frontdesk import ChannelRequest, ChannelSession, RequestError, RunRecord
from frontdesk.asgi.messages import NO_RETRY, error_headers, send_json
from frontdesk.http import HttpChannel, StreamingConfig, StreamingSettings, takes_settings
from frontdesk.http.bodies import decode_as
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.idempotency import keyed
from frontdesk.http.sse import encode_event, stream_events
from frontdesk.identifiers import plain_id


class Asked(msgspec.Struct):
    text: str
    session: str = ""
    stream: bool = False
    background: bool = False


class Answered(msgspec.Struct):
    approved: bool


ASKED, ANSWERED = msgspec.json.Decoder(Asked), msgspec.json.Decoder(Answered)


class PlainRunsChannel(HttpChannel):
    @takes_settings(StreamingConfig)
    def __init__(self, **settings: Unpack[StreamingSettings]) -> None:
        self._config = StreamingConfig(**settings)
        super().__init__(self._config, name="plain", path="/plain")

    def routes(self) -> list[Route]:
        return [
            Route("/", endpoint=self.endpoint(runs=["POST"], POST=self.ask)),
            Route("/approvals", endpoint=self.endpoint(GET=self.approvals)),
            Route("/approvals/{id}", endpoint=self.endpoint(POST=self.decide)),
            Route("/{id}", endpoint=self.endpoint(GET=self.get, DELETE=self.cancel)),
        ]

    async def ask(self, call: HttpCall) -> None:
        asked, raw = await self.read_body(call, partial(decode_as, ASKED))
        session = ChannelSession(key=asked.session) if asked.session else None
        request = ChannelRequest(
            channel=self.name, input=asked.text, session=session, stream=asked.stream, background=asked.background
        )
        request, shown = keyed(request, call.headers, raw), msgspec.to_builtins(asked)
        if not asked.stream or asked.background:
            hosted = await self.context.run(request, call.caller, protocol_request=shown)
            return await self._send_run(call, hosted.run, hosted.result)
        async with await self.context.stream(request, call.caller, protocol_request=shown) as stream:
            await stream_events(call, stream, Events(), self._config.streams, _headers(call, stream.run.run_id))

    async def get(self, call: HttpCall) -> None:
        run = await self.context.runs.get(call.caller, _id_in(call))
        await self._send_run(call, run, run.result)

    async def cancel(self, call: HttpCall) -> None:
        run = await self.context.runs.cancel(call.caller, _id_in(call))
        await self._send_run(call, run, run.result)

    async def approvals(self, call: HttpCall) -> None:
        page = await self.context.approvals.waiting(call.caller)
        shown = [{"id": view.approval.approval_id, "tool": view.approval.tool} for view in page.questions]
        await self._send(call, 200, {"approvals": shown})

    async def decide(self, call: HttpCall) -> None:
        answer, _ = await self.read_body(call, partial(decode_as, ANSWERED))
        decision = await self.context.approvals.decide(call.caller, _id_in(call), answer.approved)
        await self._send(call, 200, {"outcome": decision.outcome, "run": decision.run_id})

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        if isinstance(error.run, RunRecord):
            return await self._send_run(call, error.run)
        body = {"error": {"code": error.code, "message": error.message}}
        await self._send(call, error.status, body, error_headers(error))

    async def _send_run(self, call: HttpCall, run: RunRecord, result: Any = None) -> None:
        headers = [*_headers(call, run.run_id), *([NO_RETRY] if run.status == "failed" else [])]
        await self._send(call, 202 if run.status == "queued" else 200, _render(run, result), headers)

    async def _send(self, call: HttpCall, status: int, body: Any, headers: Any = ()) -> None:
        call.begun = True
        await send_json(call.send, status, msgspec.json.encode(body), list(headers))


class Events:
    """The events of a stream: a `text` for each update, then `end` with the run."""

    def __init__(self) -> None:
        self._number = 0

    def begin(self) -> Sequence[bytes]:
        return ()

    def update(self, update: Any) -> Sequence[bytes]:
        return [self._event(b"text", update.text)] if update.text else ()

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        return [self._event(b"end", _render(run, result))]

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        failed = error.run if isinstance(error.run, RunRecord) else run
        return [self._event(b"end", {**_render(failed, None), "status": "failed"})]

    def _event(self, name: bytes, data: Any) -> bytes:
        self._number += 1
        return encode_event(name, msgspec.json.encode(data), self._number)


def _render(run: RunRecord, result: Any) -> dict[str, Any]:
    failure = {} if run.failure is None else {"error": {"code": run.failure.code, "message": run.failure.message}}
    return {"id": run.run_id, "status": run.status, "text": getattr(result, "text", ""), **failure}


def _headers(call: HttpCall, run_id: str) -> list[tuple[bytes, bytes]]:
    return [(b"x-request-id", call.request_id or run_id.encode())]


def _id_in(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["id"], "id")
