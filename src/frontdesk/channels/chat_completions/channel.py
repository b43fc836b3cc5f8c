"""`ChatCompletionsChannel`: its routes and the handling of its requests."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Unpack

from starlette.routing import Route

from frontdesk.asgi.messages import NO_RETRY, error_headers, send_json
from frontdesk.channels.chat_completions.config import ChatCompletionsConfig, ChatCompletionsSettings
from frontdesk.channels.chat_completions.parse import Parser, decode, unknown_keys
from frontdesk.channels.chat_completions.render import DONE, Renderer, error_body, get_status, map_finish_reason
from frontdesk.channels.chat_completions.schema import CompletionBody, Delta
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import InternalError, NotFoundError, RequestError
from frontdesk.http.bodies import read_payload
from frontdesk.http.channel import HttpChannel, takes_settings
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.idempotency import keyed
from frontdesk.http.sse import StreamTimes, stream_events
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedStreamResult
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import encode
from frontdesk.openai.paths import API_PATHS

RawHeader = tuple[bytes, bytes]


class ResponseWriter:
    __slots__ = ("_call", "_renderer")

    def __init__(self, call: HttpCall, renderer: Renderer) -> None:
        self._call = call
        self._renderer = renderer

    async def run(self, run: RunRecord, result: Any) -> None:
        """Send a whole completion. A run that did not complete is sent as an error, because the API has no other
        status."""
        if run.status != "completed":
            return await self.error(not_completed(run))
        await self._send(self._renderer.completion(run, result), self._headers(run))

    def json(self, body: Any) -> Awaitable[None]:
        return self._send(encode(body), self._headers())

    def _send(self, raw: bytes, headers: list[RawHeader]) -> Awaitable[None]:
        self._call.begun = True
        return send_json(self._call.send, 200, raw, headers)

    async def error(self, error: RequestError) -> None:
        """Send an error. The error of a started run has a type that clients do not retry."""
        headers = [*error_headers(error), *self._headers()]
        if error.run is not None and NO_RETRY not in headers:
            headers.append(NO_RETRY)
        await send_json(self._call.send, get_status(error), error_body(error), headers)

    def _headers(self, run: RunRecord | None = None) -> list[RawHeader]:
        """Return the request id header: the caller's own id, or that of the run, or a new one."""
        if run is None:
            return [(b"x-request-id", self._call.answer_id)]
        return [(b"x-request-id", self._call.request_id or run.run_id.encode())]

    async def stream(self, stream: HostedStreamResult[Any], times: StreamTimes) -> None:
        """Send one chunk for each piece of the message as it arrives."""
        script = Script(self._renderer, stream.run)
        await stream_events(self._call, stream, script, times, self._headers(stream.run))


def not_completed(run: RunRecord) -> RequestError:
    """Return the error for a run that did not complete."""
    failure = run.failure
    if failure is not None:
        error = InternalError(failure.message, code=failure.code)
    else:
        error = InternalError(f"The run has no answer: its status is {run.status}.", code="run_not_completed")
    error.run = run
    return error


class Script:
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
        """Return the chunk with the role."""
        return (self._renderer.chunk(self._run, Delta(role="assistant", content="")),)

    def update(self, update: Any) -> Sequence[bytes]:
        self._assembler.add(update)
        return self._take() if self._told else ()

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        """Return the final chunks with the finish reason."""
        if run.status != "completed":
            return self.fail(run, not_completed(run))
        self._assembler.finish()
        self._told.append(self._renderer.chunk(self._run, Delta(), map_finish_reason(self._assembler, result)))
        if self._run.details.get("include_usage") and (usage := self._renderer.usage(self._run, result)) is not None:
            self._told.append(usage)
        self._told.append(DONE)
        return self._take()

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        """Return the error chunk that ends a stream. `[DONE]` is omitted, because it would signal completion."""
        return (b"data: %b\n\n" % error_body(error, begun=True),)


class ChatCompletionsChannel(HttpChannel):
    """Serves the OpenAI Chat Completions API, under `/chat/completions` and `/v1/chat/completions`."""

    run_prefix = "chatcmpl"
    shares_path = True
    client_path = "/v1"
    session_mode = "disabled"

    @takes_settings(ChatCompletionsConfig)
    def __init__(
        self, *, name: str = "chat_completions", path: str = "", **settings: Unpack[ChatCompletionsSettings]
    ) -> None:
        self._config = ChatCompletionsConfig(**settings)
        super().__init__(self._config, name=name, path=path.removesuffix("/chat/completions"))

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._renderer = Renderer(context.target.name)
        self._parser = Parser(self.name, self._config, context.target)
        self._fetcher = self._config.fetcher()
        self._shows_payload = self.run_hook is not None or context.target.reads_attributes
        return super().contribute(context)

    def routes(self) -> list[Route]:
        routes: list[Route] = []
        for base in ("", *API_PATHS):
            routes += [
                Route(f"{base}/chat/completions", endpoint=self.endpoint(runs=["POST"], POST=self.create)),
                Route(f"{base}/models", endpoint=self.endpoint(GET=self.models)),
                Route(f"{base}/models/{{model:path}}", endpoint=self.endpoint(GET=self.model)),
            ]
        return [*routes, *self.unknown_paths("/chat/completions", *API_PATHS)]

    async def create(self, call: HttpCall) -> None:
        body, raw = await self.read_body(call, decode)
        payload = await read_payload(raw, call.scope) if self._shows_payload else None
        request = keyed(await self._request(call, body, raw, payload), call.headers, raw)
        answer = ResponseWriter(call, self._renderer)
        if not request.stream:
            hosted = await self.context.run(request, call.caller, protocol_request=payload)
            return await answer.run(hosted.run, hosted.result)
        async with await self.context.stream(request, call.caller, protocol_request=payload) as stream:
            if stream.run.status == "queued" and not stream.run.stream:
                return await answer.run(stream.run, None)
            await answer.stream(stream, self._config.streams)

    async def _request(
        self, call: HttpCall, body: CompletionBody, raw: bytes, payload: Mapping[str, Any] | None
    ) -> ChannelRequest:
        """Return the request of a body. Images are fetched if the channel is configured so."""
        said = await run_sized(len(raw), self._parser.conversation, body)
        request = await run_sized(len(raw), self._parser.request, body, said, call.caller.identity)
        if said.urls and self._fetcher is not None:
            # Nothing is done for a stranger, and going out for them would be something.
            await self.context.allow(call.caller)
            await self._fetcher.fill(said.urls, caller=call.caller.identity.key)
        if payload is not None and (unknown := unknown_keys(payload)):
            request = request.replace(attributes=unknown)
        return request

    async def models(self, call: HttpCall) -> None:
        await self.context.allow(call.caller)
        await ResponseWriter(call, self._renderer).json({"object": "list", "data": [self._renderer.model()]})

    async def model(self, call: HttpCall) -> None:
        await self.context.allow(call.caller)
        if call.scope["path_params"]["model"] != self.context.target.name:
            raise NotFoundError("Model not found.", param="model")
        await ResponseWriter(call, self._renderer).json(self._renderer.model())

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        await ResponseWriter(call, self._renderer).error(error)
