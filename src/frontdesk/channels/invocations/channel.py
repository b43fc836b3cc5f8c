"""The channel itself: routes, and the way of a request through this room."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import Route

from frontdesk.abc.allowlist import Allowlist, Inherit
from frontdesk.abc.auth import Auth
from frontdesk.abc.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.abc.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.channels.invocations.client import ResponseWriter
from frontdesk.channels.invocations.config import ExtraFields, InvocationsConfig, ToolCalls
from frontdesk.channels.invocations.openapi import document
from frontdesk.channels.invocations.parse import (
    approval_of,
    decode,
    decode_open,
    extra_fields,
    page_of,
    run_id_of,
    target_of,
    to_request,
)
from frontdesk.channels.invocations.render import Renderer, encode, waiting_out
from frontdesk.channels.invocations.wire import InvocationBody
from frontdesk.data.approval import ApprovalAnswer
from frontdesk.data.request import ChannelRequest, SessionMode
from frontdesk.errors import RequestError
from frontdesk.kit.aio.detached_runs import DetachedRuns
from frontdesk.kit.aio.large import LARGE, off_loop
from frontdesk.kit.auth.any_auth import as_auth, schemes_of
from frontdesk.kit.auth.verifier import HttpVerifier
from frontdesk.kit.http.asgi import resumed_after, send_json
from frontdesk.kit.http.endpoint import BodyDeadline, Handler, HttpCall, HttpEndpoint
from frontdesk.kit.http.idempotency import keyed
from frontdesk.kit.http.limits import Limiter, Limits
from frontdesk.kit.http.payload import read_payload
from frontdesk.kit.http.sse import StreamTimes
from frontdesk.kit.names import plain_id


class InvocationsChannel(Channel):
    """Answers `POST /invocations` with JSON or with server-sent events."""

    def __init__(
        self,
        *,
        name: str = "invocations",
        path: str = "/invocations",
        auth: Auth | None = None,
        allowlist: Allowlist | Inherit | None = "inherit",
        require_link: bool = False,
        confidentiality_tier: str | None = None,
        session_mode: SessionMode = "auto",
        run_hook: RunHook | None = None,
        response_hook: ResponseHook | None = None,
        stream_transform_hook: StreamTransformHook | None = None,
        max_body_bytes: int = InvocationsConfig.max_body_bytes,
        max_body_values: int = InvocationsConfig.max_body_values,
        body_timeout: float = InvocationsConfig.body_timeout,
        keep_alive: float = StreamTimes.keep_alive,
        send_seconds: float = StreamTimes.send_seconds,
        allowed_origins: Sequence[str] = (),
        limits: Limits | None = InvocationsConfig.limits,
        tool_calls: ToolCalls = "hide",
        extra_fields: ExtraFields = "refuse",
        openapi_spec: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.auth = as_auth(auth)
        self.allowlist, self.require_link = allowlist, require_link
        self.confidentiality_tier = confidentiality_tier
        self.session_mode = session_mode
        self.run_hook = run_hook
        self.response_hook = response_hook
        self.stream_transform_hook = stream_transform_hook
        self._config = InvocationsConfig(
            max_body_bytes=max_body_bytes,
            max_body_values=max_body_values,
            body_timeout=body_timeout,
            streams=StreamTimes(keep_alive, send_seconds),
            allowed_origins=tuple(allowed_origins),
            limits=limits,
            tool_calls=tool_calls,
            extra_fields=extra_fields,
            openapi_spec=openapi_spec,
        )

    def findings(self) -> list[str]:
        return self._config.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        return ChannelContribution(routes=_Room(self, self._config, context).routes())


class _Room:
    def __init__(self, channel: InvocationsChannel, config: InvocationsConfig, context: ChannelContext) -> None:
        self._channel = channel
        self._config = config
        self._context = context
        self._deadline = BodyDeadline(config.body_timeout)
        self._limiter = None if config.limits is None else Limiter(config.limits)
        self._detached = DetachedRuns()
        self._renderer = Renderer(config.tool_calls)
        self._verifier = HttpVerifier.for_channel(channel.name, channel.auth, context, config.allowed_origins)
        self._open = config.extra_fields == "attributes"
        self._decode = decode_open if self._open else decode
        # An operator whose hook takes bodies of its own describes them as well.
        self._document = encode(
            document(channel.path, context.target, schemes_of(channel.auth), extra_fields=self._open)
            if config.openapi_spec is None
            else config.openapi_spec
        )

    def routes(self) -> list[Route]:
        return [
            Route("/", endpoint=self._endpoint(runs=["POST"], POST=self.create)),
            Route("/docs/openapi.json", endpoint=self._endpoint(GET=self.describe)),
            # Two names, because a caller may call an invocation anything.
            Route("/approvals/pending", endpoint=self._endpoint(GET=self.approvals)),
            Route("/{run_id}", endpoint=self._endpoint(GET=self.get)),
            Route("/{run_id}/cancel", endpoint=self._endpoint(POST=self.cancel)),
        ]

    def _endpoint(self, *, runs: Sequence[str] = (), **methods: Handler) -> HttpEndpoint:
        return HttpEndpoint(
            self._verifier, self.refuse, limiter=self._limiter, allow=self._context.allow, runs=runs, **methods
        )

    def _answer(self, call: HttpCall) -> ResponseWriter:
        return ResponseWriter(call, self._renderer, self._channel.path)

    async def create(self, call: HttpCall) -> None:
        config = self._config
        raw = await call.json_body(limit=config.max_body_bytes, deadline=self._deadline)
        most = config.max_body_values
        # As `run_sized`, without a coroutine for what is small: every request comes by here.
        body = self._decode(raw, most) if len(raw) <= LARGE else await off_loop(self._decode, raw, most)
        shown = self._open or self._channel.run_hook is not None
        protocol_request = await read_payload(raw, call.scope) if shown else None
        extra = extra_fields(protocol_request) if self._open and protocol_request is not None else {}
        approval = approval_of(body)
        if approval is None:
            request = self._asked(call, body, extra)
        else:
            request = await self._answered(call, body, approval, extra)
        request = keyed(request, call.headers, raw, call.scope["query_string"])
        answer = self._answer(call)
        # Under a key its client may come back for it.
        detached = request.idempotency_key is not None and not request.background
        if not request.stream:
            work = self._context.run(request, call.caller, protocol_request=protocol_request)
            hosted = await (self._detached.run(work, call.hand_on()) if detached else work)
            return await answer.run(hosted.run, hosted.result)
        opened = self._context.stream(request, call.caller, protocol_request=protocol_request)
        async with await (self._detached.stream(opened, call.hand_on()) if detached else opened) as stream:
            if stream.run.status == "queued" and not stream.run.stream:
                return await answer.run(stream.run)
            await answer.stream(stream, config.streams)

    async def _answered(
        self, call: HttpCall, body: InvocationBody, approval: ApprovalAnswer, extra: Mapping[str, Any]
    ) -> ChannelRequest:
        request = await self._context.approval_request(call.caller, [approval])
        return request.replace(
            run_id=run_id_of(call.headers),
            stream=body.stream,
            background=body.background,
            response_target=target_of(body.response_target),
            attributes=extra,
        )

    def _asked(self, call: HttpCall, body: InvocationBody, extra: Mapping[str, Any]) -> ChannelRequest:
        return to_request(
            body,
            channel=self._channel.name,
            session_mode=self._channel.session_mode,
            headers=call.headers,
            query=call.scope["query_string"],
            identity=call.caller.identity,
            attributes=extra,
        )

    async def get(self, call: HttpCall) -> None:
        after = resumed_after(call.scope["query_string"])
        if after is not None:
            async with await self._context.follow(call.caller, _run_id(call)) as stream:
                return await self._answer(call).stream(stream, self._config.streams, after)
        run = await self._context.get_run(call.caller, _run_id(call))
        await self._answer(call).run(run, run.result)

    async def cancel(self, call: HttpCall) -> None:
        run = await self._context.cancel_run(call.caller, _run_id(call))
        await self._answer(call).run(run, run.result)

    async def approvals(self, call: HttpCall) -> None:
        after, limit = page_of(call.scope["query_string"])
        page = await self._context.waiting_approvals(call.caller, after=after, limit=limit)
        await send_json(call.send, 200, encode(waiting_out(page)), [(b"x-request-id", call.answer_id)])

    async def describe(self, call: HttpCall) -> None:
        await self._context.allow(call.caller)
        await send_json(call.send, 200, self._document, [(b"x-request-id", call.answer_id)])

    async def refuse(self, call: HttpCall, error: RequestError) -> None:
        await self._answer(call).error(error)


def _run_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["run_id"], "invocation id")
