"""The channel itself: routes, and the way of a request through this room."""

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs

from starlette.routing import BaseRoute, Route, WebSocketRoute

from frontdesk.abc.allowlist import Allowlist, Inherit
from frontdesk.abc.auth import Auth
from frontdesk.abc.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.abc.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.channels.responses.client import ResponseWriter
from frontdesk.channels.responses.compact import compactor_findings, decode_compact
from frontdesk.channels.responses.config import (
    FORWARDED,
    Bodies,
    Fetching,
    HostRules,
    HostTools,
    Instructions,
    ResponsesConfig,
    Runs,
    SocketLimits,
    StorePolicy,
)
from frontdesk.channels.responses.intake import Intake
from frontdesk.channels.responses.parse import check_included, decode, trimmed_input
from frontdesk.channels.responses.render import (
    Renderer,
    draw_compaction,
    given_items,
    is_compaction,
    turn_items,
)
from frontdesk.channels.responses.socket import Sockets
from frontdesk.data.identity import Caller
from frontdesk.data.request import ChannelRequest, SessionMode
from frontdesk.data.result import HostedStreamResult
from frontdesk.data.run import RunRecord
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError
from frontdesk.kit.aio.detached_runs import DetachedRuns
from frontdesk.kit.aio.large import LARGE, off_loop, run_sized, run_weighed
from frontdesk.kit.auth.any_auth import as_auth
from frontdesk.kit.auth.verifier import HttpVerifier
from frontdesk.kit.http.asgi import resumed_after
from frontdesk.kit.http.endpoint import BodyDeadline, Handler, HttpCall, HttpEndpoint
from frontdesk.kit.http.idempotency import keyed
from frontdesk.kit.http.limits import Limiter, Limits
from frontdesk.kit.http.payload import read_payload
from frontdesk.kit.http.run_ids import RunIdFactory, identified
from frontdesk.kit.http.sse import StreamTimes
from frontdesk.kit.names import plain_id
from frontdesk.kit.openai.answers import encode
from frontdesk.kit.openai.forms import complete_item

# Words, not numbers: `int` fails for digits such as ² and for 5,000 of any.
_LIMITS = frozenset(map(str, range(1, 101)))
_INCLUDE = re.compile(r"include(\[\d*\])?")

T = TypeVar("T")


class ResponsesChannel(Channel):
    """Serves the OpenAI Responses API, under `/responses` and `/v1/responses`."""

    tells_sessions = False
    run_prefix = "resp"
    shares_path = True
    client_path = "/v1"

    def __init__(
        self,
        *,
        name: str = "responses",
        path: str = "",
        auth: Auth | None = None,
        allowlist: Allowlist | Inherit | None = "inherit",
        require_link: bool = False,
        confidentiality_tier: str | None = None,
        session_mode: SessionMode = "auto",
        run_hook: RunHook | None = None,
        response_hook: ResponseHook | None = None,
        stream_transform_hook: StreamTransformHook | None = None,
        host_tools: HostTools = "hide",
        force_host_tools: bool = False,
        instructions: Instructions = "append",
        store_policy: StorePolicy = "as_asked",
        forward: Collection[str] = FORWARDED,
        fetch_urls: bool = False,
        fetch_from: Sequence[str] = (),
        fetch_http: bool = False,
        max_fetched_bytes: int = Fetching.max_bytes,
        finish_abandoned: bool = False,
        max_body_bytes: int = Bodies.max_bytes,
        max_body_values: int = Bodies.max_values,
        max_items: int = Bodies.max_items,
        body_timeout: float = Bodies.timeout,
        keep_alive: float = StreamTimes.keep_alive,
        send_seconds: float = StreamTimes.send_seconds,
        allowed_origins: Sequence[str] = (),
        limits: Limits | None = ResponsesConfig.limits,
        compactor: Any = None,
        sockets: SocketLimits = ResponsesConfig.sockets,
        response_id_factory: RunIdFactory | None = None,
    ) -> None:
        self.name, self.path, self.auth = name, _before_api(path), as_auth(auth)
        self.session_mode, self.compactor = session_mode, compactor
        self.allowlist, self.require_link, self.confidentiality_tier = allowlist, require_link, confidentiality_tier
        self.run_hook, self.response_hook, self.stream_transform_hook = run_hook, response_hook, stream_transform_hook
        self._config = ResponsesConfig(
            bodies=Bodies(max_body_bytes, max_body_values, body_timeout, max_items),
            streams=StreamTimes(keep_alive, send_seconds),
            allowed_origins=tuple(allowed_origins),
            limits=limits,
            own=HostRules(host_tools, force_host_tools, instructions),
            forward=frozenset(forward),
            fetching=Fetching(fetch_urls, fetch_from, fetch_http, max_fetched_bytes),
            sockets=sockets,
            runs=Runs(store_policy, finish_abandoned, response_id_factory),
        )

    def findings(self) -> list[str]:
        return self._config.findings() + compactor_findings(self.compactor)

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._renderer = Renderer(self._config, context.target)
        return ChannelContribution(routes=_Room(self, self._config, context, self._renderer).routes())

    def turn_items(self, run: RunRecord, result: Any) -> Sequence[dict[str, Any]]:
        """Return what a run adds to its conversation."""
        return turn_items(self._renderer, run, result)


class _Room:
    def __init__(
        self, channel: ResponsesChannel, config: ResponsesConfig, context: ChannelContext, renderer: Renderer
    ) -> None:
        self._channel = channel
        self._config = config
        # Asked for by every request: the way through the settings costs more than some of its steps.
        self._max_bytes, self._max_values = config.bodies.max_bytes, config.bodies.max_values
        self._finish_abandoned, self._response_ids = config.finish_abandoned, config.response_ids
        self._context = context
        self._deadline = BodyDeadline(config.bodies.timeout)
        self._limiter = None if config.limits is None else Limiter(config.limits)
        self._detached = DetachedRuns()
        self._renderer = renderer
        self._intake = Intake(channel, config, context, self._renderer)
        self._verifier = HttpVerifier.for_channel(channel.name, channel.auth, context, config.allowed_origins)
        self._sockets = Sockets(
            channel, config, context, self._intake, self._renderer, self._detached, self._verifier, self._limiter
        )

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = []
        for base in ("", "/v1"):
            routes += [
                Route(f"{base}/responses", endpoint=self._endpoint(runs=["POST"], POST=self.create)),
                WebSocketRoute(f"{base}/responses", endpoint=self._sockets.endpoint),
                Route(f"{base}/responses/compact", endpoint=self._endpoint(runs=["POST"], POST=self.compact)),
                Route(f"{base}/responses/input_tokens", endpoint=self._endpoint(POST=self.count)),
                Route(f"{base}/responses/{{run_id}}", endpoint=self._endpoint(GET=self.get, DELETE=self.delete)),
                Route(f"{base}/responses/{{run_id}}/cancel", endpoint=self._endpoint(POST=self.cancel)),
                Route(f"{base}/responses/{{run_id}}/input_items", endpoint=self._endpoint(GET=self.list_input)),
                Route(f"{base}/models", endpoint=self._endpoint(GET=self.models)),
                Route(f"{base}/models/{{model:path}}", endpoint=self._endpoint(GET=self.model)),
            ]
        # What the API has beyond that is not served, and its clients should learn so in words that they understand.
        nothing = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), self.nothing)
        unknown = self._endpoint(**nothing)
        return [*routes, *(Route(f"{base}/{{path:path}}", endpoint=unknown) for base in ("/responses", "/v1"))]

    async def nothing(self, call: HttpCall) -> None:
        raise NotFoundError(f"{call.scope['path']} is not served here.", code="unknown_url")

    def _endpoint(self, *, runs: Sequence[str] = (), **methods: Handler) -> HttpEndpoint:
        return HttpEndpoint(
            self._verifier, self.refuse, limiter=self._limiter, allow=self._context.allow, runs=runs, **methods
        )

    async def create(self, call: HttpCall) -> None:
        raw = await call.json_body(limit=self._max_bytes, deadline=self._deadline)
        most = self._max_values
        # As `run_sized`, without a coroutine for what is small: every request comes by here.
        body = decode(raw, most) if len(raw) <= LARGE else await off_loop(decode, raw, most)
        protocol_request = await read_payload(raw, call.scope) if self._intake.shows_payload else None
        request, settle = await self._intake.request(call.caller, body, raw, protocol_request)
        request = keyed(request, call.headers, raw)
        request = identified(request, call.caller, call.headers, self._response_ids)
        answer = ResponseWriter(call, self._renderer)
        # A run in the background does not end with its readers anyway; under a key its client may come back for it.
        lasts = self._finish_abandoned or request.idempotency_key is not None
        detached = lasts and request.store and not request.background
        if not request.stream:
            work = self._context.run(request, call.caller, protocol_request=protocol_request, settle=settle)
            hosted = await (self._detached.run(work, call.hand_on()) if detached else work)
            return await answer.run(hosted.run, hosted.result)
        opened = self._context.stream(request, call.caller, protocol_request=protocol_request, settle=settle)
        async with await (self._detached.stream(opened, call.hand_on()) if detached else opened) as stream:
            if stream.run.status == "queued" and not stream.run.stream:
                return await answer.run(stream.run)
            await answer.stream(stream, self._config.streams)

    async def count(self, call: HttpCall) -> None:
        await self._context.allow(call.caller)
        raw = await call.json_body(limit=self._max_bytes, deadline=self._deadline)
        body = await run_sized(len(raw), decode, raw, self._max_values)
        tokens = await self._intake.tokens(call.caller, body, raw)
        # A field more than the API has, because the number is not the model's own.
        counted = {"object": "response.input_tokens", "input_tokens": tokens, "estimated": True}
        await ResponseWriter(call, self._renderer).json(counted)

    async def compact(self, call: HttpCall) -> None:
        raw = await call.json_body(limit=self._max_bytes, deadline=self._deadline)
        body, instructions = await run_sized(len(raw), decode_compact, raw, self._max_values)
        if instructions is not None and self._config.instructions == "refuse":
            raise InvalidRequestError("This host sets the instructions itself.", param="instructions")
        body, messages = await self._intake.messages(call.caller, body, len(raw))
        given = await run_sized(len(raw), trimmed_input, body)
        request = ChannelRequest(
            channel=self._channel.name,
            input=messages,
            options={"instructions": instructions} if self._config.instructions == "append" else {},
            identity=call.caller.identity,
            previous_run_id=body.previous_response_id and plain_id(body.previous_response_id, "previous_response_id"),
            details={"input": given, "seal": self._context.new_id("seal")},
        )
        run = await self._context.conversations.compact(
            identified(keyed(request, call.headers, raw, b"compact"), call.caller, call.headers, self._response_ids),
            call.caller,
            by=self._channel.compactor,
            protocol_request=await read_payload(raw, call.scope) if self._intake.shows_payload else None,
        )
        await self._show(call, run)

    async def _show(self, call: HttpCall, run: RunRecord) -> None:
        answer = ResponseWriter(call, self._renderer)
        if is_compaction(run):
            return await answer.json(draw_compaction(run))
        await answer.run(run, run.result)

    async def get(self, call: HttpCall) -> None:
        after, included = resumed_after(call.scope["query_string"]), _included(call)
        if after is not None:
            async with await self._followed(call) as stream:
                stream.run = _including(stream.run, included)
                return await ResponseWriter(call, self._renderer).stream(stream, self._config.streams, after)
        await self._show(call, _including(await self._about(call, self._context.get_run), included))

    async def _followed(self, call: HttpCall) -> HostedStreamResult[Any]:
        try:
            return await self._about(call, self._context.follow)
        except ConflictError as error:
            # Clients of the API try again after a conflict, and this one does not go away.
            raise InvalidRequestError(error.message, param=error.param, code=error.code) from None

    async def cancel(self, call: HttpCall) -> None:
        await self._show(call, await self._about(call, self._context.cancel_run))

    async def delete(self, call: HttpCall) -> None:
        await self._about(call, self._context.delete_run)
        await ResponseWriter(call, self._renderer).json({"id": _run_id(call), "object": "response", "deleted": True})

    async def _about(self, call: HttpCall, act: Callable[[Caller, str], Awaitable[T]]) -> T:
        """Do something with the response that the path names."""
        run_id = _run_id(call)
        try:
            return await act(call.caller, run_id)
        except NotFoundError:
            # One text for everyone: whether the caller was ever here, and whether somebody else has such a response.
            raise NotFoundError("There is no such response.", param="response_id") from None

    async def list_input(self, call: HttpCall) -> None:
        _included(call)
        run = await self._about(call, self._context.get_run)
        await ResponseWriter(call, self._renderer).raw(
            await run_weighed(run.details, _input_page, run, call.scope["query_string"])
        )

    async def models(self, call: HttpCall) -> None:
        await self._context.allow(call.caller)
        await ResponseWriter(call, self._renderer).json({"object": "list", "data": [self._model()]})

    async def model(self, call: HttpCall) -> None:
        await self._context.allow(call.caller)
        if call.scope["path_params"]["model"] != self._context.target.name:
            raise NotFoundError("There is no such model.", param="model")
        await ResponseWriter(call, self._renderer).json(self._model())

    def _model(self) -> dict[str, Any]:
        return {"id": self._context.target.name, "object": "model", "created": 0, "owned_by": "frontdesk"}

    async def refuse(self, call: HttpCall, error: RequestError) -> None:
        await ResponseWriter(call, self._renderer).error(error)


def _before_api(path: str) -> str:
    """Return a path without the API's own name, which may be part of it or not: what is served there is the same."""
    return path.removesuffix("/responses")


def _input_page(run: RunRecord, query: bytes) -> bytes:
    """Draw one page of a run's input, as the API pages, and nothing that is not on it."""
    asked = {name: values[-1] for name, values in parse_qs(query.decode("latin-1"), keep_blank_values=True).items()}
    limit, order = asked.get("limit", "20"), asked.get("order", "desc")
    if limit not in _LIMITS:
        raise InvalidRequestError("`limit` must be a number from 1 to 100.", param="limit")
    if order not in ("asc", "desc"):
        raise InvalidRequestError("`order` must be asc or desc.", param="order")
    given = given_items(run)
    items = given if order == "asc" else given[::-1]
    if "after" in asked:
        places = [place for place, (item_id, _) in enumerate(items) if item_id == asked["after"]]
        if not places:
            raise NotFoundError("There is no such item.", param="after")
        items = items[places[0] + 1 :]
    shown = [complete_item(item, item_id) for item_id, item in items[: int(limit)]]
    return encode(
        {
            "object": "list",
            "data": shown,
            "first_id": shown[0]["id"] if shown else None,
            "last_id": shown[-1]["id"] if shown else None,
            "has_more": len(items) > len(shown),
        }
    )


def _included(call: HttpCall) -> list[str]:
    """Return what a request asks to see beside the rest, in its query."""
    asked = parse_qs(call.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    names = [value for name, values in asked.items() if _INCLUDE.fullmatch(name) for value in values]
    check_included(names)
    return names


def _including(run: RunRecord, names: Sequence[str]) -> RunRecord:
    if not names:
        return run
    return run.replace(details={**run.details, "include": [*(run.details.get("include") or ()), *names]})


def _run_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["run_id"], "response_id")
