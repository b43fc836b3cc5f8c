"""The channel itself: routes, and the way of a request through this room."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from frontdesk.abc.auth import HttpAuth
from frontdesk.abc.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.abc.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.channels.responses.client import Answer
from frontdesk.channels.responses.config import FORWARDED, HostTools, Instructions, ResponsesConfig, StorePolicy
from frontdesk.channels.responses.items import Items, reference
from frontdesk.channels.responses.parse import Parser, decode, unknown_keys
from frontdesk.channels.responses.render import Renderer, input_items
from frontdesk.channels.responses.verify import verifier
from frontdesk.channels.responses.wire import CreateBody
from frontdesk.data.identity import Caller
from frontdesk.data.request import ChannelRequest, SessionMode
from frontdesk.errors import InvalidRequestError, NotFoundError, RequestError
from frontdesk.kit.contents import asked_for
from frontdesk.kit.endpoint import Handler, HttpCall, HttpEndpoint
from frontdesk.kit.lasting import LastingRuns
from frontdesk.kit.media import MediaFetcher
from frontdesk.kit.names import plain_id
from frontdesk.kit.reminders import Reminders

# Words, not numbers: `int` fails for digits such as ² and for 5,000 of any.
_LIMITS = frozenset(map(str, range(1, 101)))

T = TypeVar("T")


class ResponsesChannel(Channel):
    """Serves the OpenAI Responses API, under `/responses` and `/v1/responses`."""

    run_prefix = "resp"

    def __init__(
        self,
        *,
        name: str = "responses",
        path: str = "",
        auth: HttpAuth | None = None,
        session_mode: SessionMode = "auto",
        run_hook: RunHook | None = None,
        response_hook: ResponseHook | None = None,
        stream_transform_hook: StreamTransformHook | None = None,
        host_tools: HostTools = "hide",
        instructions: Instructions = "append",
        store_policy: StorePolicy = "as_asked",
        forward: Collection[str] = FORWARDED,
        fetch_urls: bool = False,
        fetch_from: Sequence[str] = (),
        fetch_http: bool = False,
        max_fetched_bytes: int = ResponsesConfig.max_fetched_bytes,
        finish_abandoned: bool = False,
        max_body_bytes: int = ResponsesConfig.max_body_bytes,
        max_items: int = ResponsesConfig.max_items,
        body_timeout: float = ResponsesConfig.body_timeout,
        keep_alive: float = ResponsesConfig.keep_alive,
        allowed_origins: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.path = path
        self.auth = auth
        self.session_mode = session_mode
        self.run_hook = run_hook
        self.response_hook = response_hook
        self.stream_transform_hook = stream_transform_hook
        self._config = ResponsesConfig(
            max_body_bytes=max_body_bytes,
            max_items=max_items,
            body_timeout=body_timeout,
            keep_alive=keep_alive,
            allowed_origins=tuple(allowed_origins),
            host_tools=host_tools,
            instructions=instructions,
            store_policy=store_policy,
            forward=frozenset(forward),
            fetch_urls=fetch_urls,
            fetch_from=(fetch_from,) if isinstance(fetch_from, str) else tuple(fetch_from),
            fetch_http=fetch_http,
            max_fetched_bytes=max_fetched_bytes,
            finish_abandoned=finish_abandoned,
        )

    def findings(self) -> list[str]:
        return self._config.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        return ChannelContribution(routes=_Room(self, self._config, context).routes())


class _Room:
    def __init__(self, channel: ResponsesChannel, config: ResponsesConfig, context: ChannelContext) -> None:
        self._channel = channel
        self._config = config
        self._context = context
        self._deadline = Reminders(config.body_timeout)
        self._lasting = LastingRuns()
        self._fetcher = _fetcher(config)
        self._parser = Parser(channel.name, config, context.target, channel.session_mode)
        self._renderer = Renderer(config, context.target)
        self._verifier = verifier(channel.name, channel.auth, config, allow_anonymous=context.anonymous_allowed)

    def routes(self) -> list[Route]:
        found: list[Route] = []
        for base in ("", "/v1"):
            found += [
                Route(f"{base}/responses", endpoint=self._endpoint(POST=self.create)),
                Route(f"{base}/responses/{{run_id}}", endpoint=self._endpoint(GET=self.get, DELETE=self.delete)),
                Route(f"{base}/responses/{{run_id}}/cancel", endpoint=self._endpoint(POST=self.cancel)),
                Route(f"{base}/responses/{{run_id}}/input_items", endpoint=self._endpoint(GET=self.list_input)),
                Route(f"{base}/models", endpoint=self._endpoint(GET=self.models)),
                Route(f"{base}/models/{{model:path}}", endpoint=self._endpoint(GET=self.model)),
            ]
        # What the API has beyond that is not served, and its clients should learn so in words that they understand.
        nothing = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), self.nothing)
        unknown = self._endpoint(**nothing)
        return [*found, *(Route(f"{base}/{{path:path}}", endpoint=unknown) for base in ("/responses", "/v1"))]

    async def nothing(self, call: HttpCall) -> None:
        raise NotFoundError(f"{call.scope['path']} is not served here.", code="unknown_url")

    def _endpoint(self, **methods: Handler) -> HttpEndpoint:
        return HttpEndpoint(self._verifier, self.refuse, **methods)

    async def create(self, call: HttpCall) -> None:
        raw = await call.json_body(limit=self._config.max_body_bytes, deadline=self._deadline)
        request = await self._request(call, raw)
        answer = Answer(call, self._renderer)
        protocol_request = Request(call.scope) if self._channel.run_hook is not None else None
        lasting = self._config.finish_abandoned and request.store
        if not request.stream or request.background:
            work = self._context.run(request, call.caller, protocol_request=protocol_request)
            hosted = await (self._lasting.run(work) if lasting else work)
            return await answer.run(hosted.run, hosted.result)
        opened = self._context.stream(request, call.caller, protocol_request=protocol_request)
        async with await (self._lasting.stream(opened) if lasting else opened) as stream:
            if stream.run.status == "queued":
                return await answer.run(stream.run)
            await answer.stream(stream, self._config.keep_alive)

    async def _request(self, call: HttpCall, raw: bytes) -> ChannelRequest:
        body = await self._resolved(call, decode(raw))
        items = self._parser.items(body)
        request = self._parser.request(body, items, call.caller.identity)
        if items is not None:
            request = await self._looked_up(call, request, items)
        if self._channel.run_hook is not None:
            request = request.replace(attributes=unknown_keys(raw))
        return request

    async def _looked_up(self, call: HttpCall, request: ChannelRequest, items: Items) -> ChannelRequest:
        if items.urls and self._fetcher is not None:
            # Nothing is done for a stranger, and going out for them would be something.
            await self._context.allow(call.caller)
            await self._fetcher.fill(items.urls)
        if items.approvals:
            await self._check_questions(call, items)
        if items.approvals and request.previous_run_id is None:
            asked = await self._asked(call, items)
            request = request.replace(session=asked.session, operation=asked.operation)
        return request

    async def _asked(self, call: HttpCall, items: Items) -> ChannelRequest:
        try:
            return await self._context.approval_request(call.caller, items.approvals)
        except NotFoundError:
            raise NotFoundError("There is no such approval.", param="input") from None

    async def _check_questions(self, call: HttpCall, items: Items) -> None:
        """A question that the caller repeats with its answer must be the one that was asked."""
        if not items.questions:
            return
        asked = {one.approval_id: one.request for one in await self._context.pending_approvals(call.caller)}
        for question in items.questions:
            request = asked.get(question.approval_id)
            if request is not None and asked_for(request) != (question.tool, question.arguments):
                raise InvalidRequestError("This is not what was asked.", param=question.where)

    async def _resolved(self, call: HttpCall, body: CreateBody) -> CreateBody:
        """The body with the items that it refers to in their places."""
        given = body.input
        if not isinstance(given, list) or not any(map(reference, given)):
            return body
        self._parser.check_length(given)
        found = [await self._look_up(call, item, place) for place, item in enumerate(given)]
        return msgspec.structs.replace(body, input=found)

    async def _look_up(self, call: HttpCall, item: dict[str, Any], place: int) -> dict[str, Any]:
        item_id = reference(item)
        if item_id is None:
            return item
        # An item's id holds that of its response, which is looked up as the caller's own like any other.
        try:
            run = await self._context.get_run(call.caller, f"resp_{item_id.partition('_')[2][:-4]}")
        except NotFoundError:
            run = None
        for one in () if run is None else (*self._renderer.output(run, run.result), *input_items(run)):
            found: dict[str, Any] = msgspec.to_builtins(one)
            if found["id"] == item_id:
                return found
        raise NotFoundError("There is no such item.", param=f"input[{place}]")

    async def get(self, call: HttpCall) -> None:
        if b"stream=true" in call.scope["query_string"]:
            raise InvalidRequestError("A stream can't be taken up again here.", param="stream", code="unsupported")
        run = await self._about(call, self._context.get_run)
        await Answer(call, self._renderer).run(run, run.result)

    async def cancel(self, call: HttpCall) -> None:
        run = await self._about(call, self._context.cancel_run)
        await Answer(call, self._renderer).run(run, run.result)

    async def delete(self, call: HttpCall) -> None:
        await self._about(call, self._context.delete_run)
        await Answer(call, self._renderer).json({"id": _run_id(call), "object": "response", "deleted": True})

    async def _about(self, call: HttpCall, act: Callable[[Caller, str], Awaitable[T]]) -> T:
        """Does something with the response that the path names."""
        run_id = _run_id(call)
        try:
            return await act(call.caller, run_id)
        except NotFoundError:
            # One text for everyone: whether the caller was ever here, and whether somebody else has such a response.
            raise NotFoundError("There is no such response.", param="response_id") from None

    async def list_input(self, call: HttpCall) -> None:
        run = await self._about(call, self._context.get_run)
        await Answer(call, self._renderer).json(page(input_items(run), call.scope["query_string"]))

    async def models(self, call: HttpCall) -> None:
        await Answer(call, self._renderer).json({"object": "list", "data": [self._model()]})

    async def model(self, call: HttpCall) -> None:
        if call.scope["path_params"]["model"] != self._context.target.name:
            raise NotFoundError("There is no such model.", param="model")
        await Answer(call, self._renderer).json(self._model())

    def _model(self) -> dict[str, Any]:
        return {"id": self._context.target.name, "object": "model", "created": 0, "owned_by": "frontdesk"}

    async def refuse(self, call: HttpCall, error: RequestError) -> None:
        await Answer(call, self._renderer).error(error)


def page(items: list[dict[str, Any]], query: bytes) -> dict[str, Any]:
    """One page of a list, as the API pages."""
    asked = {name: values[-1] for name, values in parse_qs(query.decode("latin-1"), keep_blank_values=True).items()}
    limit, order = asked.get("limit", "20"), asked.get("order", "desc")
    if limit not in _LIMITS:
        raise InvalidRequestError("`limit` must be a number from 1 to 100.", param="limit")
    if order not in ("asc", "desc"):
        raise InvalidRequestError("`order` must be asc or desc.", param="order")
    found = items if order == "asc" else items[::-1]
    if "after" in asked:
        places = [place for place, item in enumerate(found) if item["id"] == asked["after"]]
        if not places:
            raise NotFoundError("There is no such item.", param="after")
        found = found[places[0] + 1 :]
    shown = found[: int(limit)]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": len(found) > len(shown),
    }


def _fetcher(config: ResponsesConfig) -> MediaFetcher | None:
    if not config.fetch_urls:
        return None
    return MediaFetcher(config.fetch_from, allow_http=config.fetch_http, max_bytes=config.max_fetched_bytes)


def _run_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["run_id"], "response_id")
