"""The channel itself: routes, and the way of a request through this room."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from frontdesk.abc.auth import HttpAuth
from frontdesk.abc.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.abc.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.channels.invocations.client import Answer
from frontdesk.channels.invocations.config import InvocationsConfig, ToolCalls
from frontdesk.channels.invocations.openapi import document
from frontdesk.channels.invocations.parse import approval_of, decode, to_request
from frontdesk.channels.invocations.render import Renderer, encode
from frontdesk.channels.invocations.verify import verifier
from frontdesk.data.identity import Caller
from frontdesk.data.request import SessionMode
from frontdesk.errors import MethodNotAllowedError, RequestError, UnsupportedMediaError
from frontdesk.kit.auth import HttpVerifier
from frontdesk.kit.http import ClientGoneError, DisconnectWatch, Headers, headers_of, read_body
from frontdesk.kit.names import is_plain_id, plain_id

Handler = Callable[["Call"], Awaitable[None]]


class InvocationsChannel(Channel):
    """Answers `POST /invocations` with JSON or with server-sent events."""

    def __init__(
        self,
        *,
        name: str = "invocations",
        path: str = "/invocations",
        auth: HttpAuth | None = None,
        session_mode: SessionMode = "auto",
        run_hook: RunHook | None = None,
        response_hook: ResponseHook | None = None,
        stream_transform_hook: StreamTransformHook | None = None,
        max_body_bytes: int = InvocationsConfig.max_body_bytes,
        body_timeout: float = InvocationsConfig.body_timeout,
        keep_alive: float = InvocationsConfig.keep_alive,
        allowed_origins: Sequence[str] = (),
        tool_calls: ToolCalls = "hide",
    ) -> None:
        self.name = name
        self.path = path
        self.auth = auth
        self.session_mode = session_mode
        self.run_hook = run_hook
        self.response_hook = response_hook
        self.stream_transform_hook = stream_transform_hook
        self._config = InvocationsConfig(
            max_body_bytes=max_body_bytes,
            body_timeout=body_timeout,
            keep_alive=keep_alive,
            allowed_origins=tuple(allowed_origins),
            tool_calls=tool_calls,
        )

    def findings(self) -> list[str]:
        return self._config.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        room = _Room(self, self._config, context)
        return ChannelContribution(
            routes=[
                Route("/", endpoint=_Endpoint(room, POST=room.create)),
                Route("/docs/openapi.json", endpoint=_Endpoint(room, GET=room.describe)),
                Route("/{run_id}", endpoint=_Endpoint(room, GET=room.get)),
                Route("/{run_id}/cancel", endpoint=_Endpoint(room, POST=room.cancel)),
            ]
        )


class Call:
    """One HTTP request on its way through the room."""

    __slots__ = ("answer", "caller", "headers", "receive", "scope", "watch")

    caller: Caller

    def __init__(self, scope: Scope, receive: Receive, headers: Headers, answer: Answer) -> None:
        self.scope = scope
        self.receive = receive
        self.headers = headers
        self.answer = answer
        self.watch: DisconnectWatch | None = None

    async def body(self, config: InvocationsConfig) -> bytes:
        """The body; from then on the client is watched, since what else it could send is only that it leaves."""
        _need_json(self.headers)
        raw = await read_body(self.receive, self.headers, limit=config.max_body_bytes, within=config.body_timeout)
        self.watch = DisconnectWatch(self.receive)
        return raw


class _Room:
    def __init__(self, channel: InvocationsChannel, config: InvocationsConfig, context: ChannelContext) -> None:
        self._channel = channel
        self._config = config
        self._context = context
        self.renderer = Renderer(config.tool_calls)
        self.verifier: HttpVerifier = verifier(
            channel.name, channel.auth, config, allow_anonymous=context.anonymous_allowed
        )
        self._document = encode(document(channel.path, context.target, authenticated=channel.auth is not None))

    async def create(self, call: Call) -> None:
        body = decode(await call.body(self._config))
        answer = approval_of(body)
        if answer is not None:
            hosted = await self._context.answer_approval(
                call.caller, answer.id, approved=answer.approved, reason=answer.reason
            )
            return await call.answer.result(hosted)
        request = to_request(
            body,
            channel=self._channel.name,
            session_mode=self._channel.session_mode,
            headers=call.headers,
            query=call.scope["query_string"],
        )
        protocol_request = Request(call.scope) if self._channel.run_hook is not None else None
        if not request.stream or request.background:
            hosted = await self._context.run(request, call.caller, protocol_request=protocol_request)
            return await call.answer.result(hosted)
        async with await self._context.stream(request, call.caller, protocol_request=protocol_request) as stream:
            if stream.run.status == "queued":
                return await call.answer.run(stream.run)
            await call.answer.stream(stream, self._config.keep_alive)

    async def get(self, call: Call) -> None:
        run = await self._context.get_run(call.caller, _run_id(call))
        await call.answer.run(run, run.result)

    async def cancel(self, call: Call) -> None:
        run = await self._context.cancel_run(call.caller, _run_id(call))
        await call.answer.run(run, run.result)

    async def describe(self, call: Call) -> None:
        await call.answer.document(self._document)


class _Endpoint:
    """One path: finds the caller, then the method; every error leaves in the channel's own shape."""

    def __init__(self, room: _Room, **methods: Handler) -> None:
        self._room = room
        self._methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        answer = Answer(send, self._room.renderer, _request_id(headers))
        call = Call(scope, receive, headers, answer)
        try:
            handler = self._methods.get(scope["method"])
            if handler is None:
                raise MethodNotAllowedError
            call.caller = await self._room.verifier.verify(scope, headers)
            await handler(call)
        except ClientGoneError:
            return
        except RequestError as error:
            if answer.begun:
                raise
            await answer.error(error)
        except asyncio.CancelledError:
            if call.watch is None or not call.watch.forgive():
                raise
        finally:
            if call.watch is not None:
                call.watch.stop()


def _request_id(headers: Headers) -> bytes | None:
    given = headers.get(b"x-request-id")
    return given if given is not None and is_plain_id(given.decode("latin-1")) else None


def _run_id(call: Call) -> str:
    return plain_id(call.scope["path_params"]["run_id"], "invocation id")


def _need_json(headers: Headers) -> None:
    kind = headers.get(b"content-type", b"application/json").partition(b";")[0].strip().lower()
    if kind != b"application/json" and not kind.endswith(b"+json"):
        raise UnsupportedMediaError
