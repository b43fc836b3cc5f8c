"""The channel itself: routes, and the way of a request through this room."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from starlette.routing import Route

from frontdesk.abc.allowlist import Allowlist, Inherit
from frontdesk.abc.auth import Auth
from frontdesk.abc.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.abc.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.channels.chat_completions.client import ResponseWriter
from frontdesk.channels.chat_completions.config import FORWARDED, ChatCompletionsConfig, Instructions
from frontdesk.channels.chat_completions.parse import Parser, decode, unknown_keys
from frontdesk.channels.chat_completions.render import Renderer
from frontdesk.channels.chat_completions.wire import CompletionBody
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import NotFoundError, RequestError
from frontdesk.kit.aio.large import run_sized
from frontdesk.kit.auth.any_auth import as_auth
from frontdesk.kit.auth.verifier import HttpVerifier
from frontdesk.kit.http.endpoint import BodyDeadline, Handler, HttpCall, HttpEndpoint
from frontdesk.kit.http.idempotency import keyed
from frontdesk.kit.http.limits import Limiter, Limits
from frontdesk.kit.http.payload import read_payload
from frontdesk.kit.http.sse import StreamTimes
from frontdesk.kit.outbound.fetching import Fetching


class ChatCompletionsChannel(Channel):
    """Serves the OpenAI Chat Completions API, under `/chat/completions` and `/v1/chat/completions`."""

    run_prefix = "chatcmpl"
    shares_path = True
    client_path = "/v1"
    session_mode = "disabled"

    def __init__(
        self,
        *,
        name: str = "chat_completions",
        path: str = "",
        auth: Auth | None = None,
        allowlist: Allowlist | Inherit | None = "inherit",
        require_link: bool = False,
        confidentiality_tier: str | None = None,
        run_hook: RunHook | None = None,
        response_hook: ResponseHook | None = None,
        stream_transform_hook: StreamTransformHook | None = None,
        instructions: Instructions = "append",
        force_host_tools: bool = False,
        forward: Collection[str] = FORWARDED,
        fetch_urls: bool = False,
        fetch_from: Sequence[str] = (),
        fetch_http: bool = False,
        max_fetched_bytes: int = Fetching.max_bytes,
        max_body_bytes: int = ChatCompletionsConfig.max_body_bytes,
        max_body_values: int = ChatCompletionsConfig.max_body_values,
        max_messages: int = ChatCompletionsConfig.max_messages,
        body_timeout: float = ChatCompletionsConfig.body_timeout,
        keep_alive: float = StreamTimes.keep_alive,
        send_seconds: float = StreamTimes.send_seconds,
        allowed_origins: Sequence[str] = (),
        limits: Limits | None = ChatCompletionsConfig.limits,
    ) -> None:
        self.name, self.path, self.auth = name, path.removesuffix("/chat/completions"), as_auth(auth)
        self.allowlist, self.require_link, self.confidentiality_tier = allowlist, require_link, confidentiality_tier
        self.run_hook, self.response_hook, self.stream_transform_hook = run_hook, response_hook, stream_transform_hook
        self._config = ChatCompletionsConfig(
            max_body_bytes=max_body_bytes,
            max_body_values=max_body_values,
            max_messages=max_messages,
            body_timeout=body_timeout,
            streams=StreamTimes(keep_alive, send_seconds),
            allowed_origins=tuple(allowed_origins),
            limits=limits,
            instructions=instructions,
            force_host_tools=force_host_tools,
            forward=frozenset(forward),
            fetching=Fetching(fetch_urls, fetch_from, fetch_http, max_fetched_bytes),
        )

    def findings(self) -> list[str]:
        return self._config.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        return ChannelContribution(routes=_Room(self, self._config, context).routes())


class _Room:
    def __init__(self, channel: ChatCompletionsChannel, config: ChatCompletionsConfig, context: ChannelContext) -> None:
        self._config = config
        self._context = context
        self._deadline = BodyDeadline(config.body_timeout)
        self._limiter = None if config.limits is None else Limiter(config.limits)
        self._renderer = Renderer(context.target.name)
        self._parser = Parser(channel.name, config, context.target)
        self._fetcher = config.fetching.fetcher()
        self._verifier = HttpVerifier.for_channel(channel.name, channel.auth, context, config.allowed_origins)
        self._shows_payload = channel.run_hook is not None or context.target.reads_attributes

    def routes(self) -> list[Route]:
        routes: list[Route] = []
        for base in ("", "/v1"):
            routes += [
                Route(f"{base}/chat/completions", endpoint=self._endpoint(runs=["POST"], POST=self.create)),
                Route(f"{base}/models", endpoint=self._endpoint(GET=self.models)),
                Route(f"{base}/models/{{model:path}}", endpoint=self._endpoint(GET=self.model)),
            ]
        # What the API has beyond that is not served, and its clients should learn so in words that they understand.
        unknown = self._endpoint(**dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), self.nothing))
        return [*routes, *(Route(f"{base}/{{path:path}}", endpoint=unknown) for base in ("/chat/completions", "/v1"))]

    def _endpoint(self, *, runs: Sequence[str] = (), **methods: Handler) -> HttpEndpoint:
        return HttpEndpoint(
            self._verifier, self.refuse, limiter=self._limiter, allow=self._context.allow, runs=runs, **methods
        )

    async def nothing(self, call: HttpCall) -> None:
        raise NotFoundError(f"{call.scope['path']} is not served here.", code="unknown_url")

    async def create(self, call: HttpCall) -> None:
        config = self._config
        raw = await call.json_body(limit=config.max_body_bytes, deadline=self._deadline)
        body = await run_sized(len(raw), decode, raw, config.max_body_values)
        payload = await read_payload(raw, call.scope) if self._shows_payload else None
        request = keyed(await self._request(call, body, raw, payload), call.headers, raw)
        answer = ResponseWriter(call, self._renderer)
        if not request.stream:
            hosted = await self._context.run(request, call.caller, protocol_request=payload)
            return await answer.run(hosted.run, hosted.result)
        async with await self._context.stream(request, call.caller, protocol_request=payload) as stream:
            if stream.run.status == "queued" and not stream.run.stream:
                return await answer.run(stream.run, None)
            await answer.stream(stream, config.streams)

    async def _request(
        self, call: HttpCall, body: CompletionBody, raw: bytes, payload: Mapping[str, Any] | None
    ) -> ChannelRequest:
        """Return the request that a body asks for, with its pictures fetched where the channel is set to."""
        said = await run_sized(len(raw), self._parser.conversation, body)
        request = await run_sized(len(raw), self._parser.request, body, said, call.caller.identity)
        if said.urls and self._fetcher is not None:
            # Nothing is done for a stranger, and going out for them would be something.
            await self._context.allow(call.caller)
            await self._fetcher.fill(said.urls, caller=call.caller.identity.key)
        if payload is not None and (unknown := unknown_keys(payload)):
            request = request.replace(attributes=unknown)
        return request

    async def models(self, call: HttpCall) -> None:
        await self._context.allow(call.caller)
        await ResponseWriter(call, self._renderer).json({"object": "list", "data": [self._renderer.model()]})

    async def model(self, call: HttpCall) -> None:
        await self._context.allow(call.caller)
        if call.scope["path_params"]["model"] != self._context.target.name:
            raise NotFoundError("There is no such model.", param="model")
        await ResponseWriter(call, self._renderer).json(self._renderer.model())

    async def refuse(self, call: HttpCall, error: RequestError) -> None:
        await ResponseWriter(call, self._renderer).error(error)
