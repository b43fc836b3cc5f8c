"""`ResponsesChannel`: its routes and the handling of its requests."""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack
from urllib.parse import parse_qs

from starlette.routing import BaseRoute, Route, WebSocketRoute

from frontdesk.asgi.messages import parse_resume_position
from frontdesk.channels.responses.compact import compactor_findings, decode_compact
from frontdesk.channels.responses.config import ResponsesConfig, ResponsesSettings
from frontdesk.channels.responses.parse import check_included, decode, trim_input
from frontdesk.channels.responses.render import (
    Renderer,
    draw_compaction,
    is_compaction,
    list_given_items,
    turn_items,
)
from frontdesk.channels.responses.request_builder import Intake
from frontdesk.channels.responses.socket import Sockets
from frontdesk.channels.responses.writer import ResponseWriter
from frontdesk.concurrency.offload import run_sized, run_weighed
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError
from frontdesk.http.bodies import read_payload
from frontdesk.http.channel import HttpChannel, takes_settings
from frontdesk.http.detached_runs import DetachedRuns
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.idempotency import keyed
from frontdesk.http.run_ids import set_run_id
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.interfaces.context import ShowsItems
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedStreamResult
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import encode
from frontdesk.openai.forms import complete_item
from frontdesk.openai.paths import API_PATHS

# Words, not numbers: `int` fails for digits such as ² and for 5,000 of any.
_LIMITS = frozenset(map(str, range(1, 101)))
_INCLUDE = re.compile(r"include(\[\d*\])?")

T = TypeVar("T")


class ResponsesChannel(HttpChannel, ShowsItems):
    """Serves the OpenAI Responses API, under `/responses` and `/v1/responses`."""

    announces_sessions = False
    run_prefix = "resp"
    shares_path = True
    client_path = "/v1"

    @takes_settings(ResponsesConfig)
    def __init__(self, *, name: str = "responses", path: str = "", **settings: Unpack[ResponsesSettings]) -> None:
        self._config = config = ResponsesConfig(**settings)
        super().__init__(config, name=name, path=path.removesuffix("/responses"))
        self.session_mode = config.session_mode

    def findings(self) -> list[str]:
        return super().findings() + compactor_findings(self._config.compactor)

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._detached = DetachedRuns()
        self._renderer = Renderer(self._config, context.target)
        self._intake = Intake(self, self._config, context, self._renderer)
        return super().contribute(context)

    def turn_items(self, run: RunRecord, result: Any) -> Sequence[dict[str, Any]]:
        return turn_items(self._renderer, run, result)

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = []
        sockets = Sockets(self, self._config, self._intake, self._renderer, self._detached)
        for base in ("", *API_PATHS):
            routes += [
                Route(f"{base}/responses", endpoint=self.endpoint(runs=["POST"], POST=self.create)),
                WebSocketRoute(f"{base}/responses", endpoint=sockets.endpoint),
                Route(f"{base}/responses/compact", endpoint=self.endpoint(runs=["POST"], POST=self.compact)),
                Route(f"{base}/responses/input_tokens", endpoint=self.endpoint(POST=self.count)),
                Route(f"{base}/responses/{{run_id}}", endpoint=self.endpoint(GET=self.get, DELETE=self.delete)),
                Route(f"{base}/responses/{{run_id}}/cancel", endpoint=self.endpoint(POST=self.cancel)),
                Route(f"{base}/responses/{{run_id}}/input_items", endpoint=self.endpoint(GET=self.list_input)),
                Route(f"{base}/models", endpoint=self.endpoint(GET=self.models)),
                Route(f"{base}/models/{{model:path}}", endpoint=self.endpoint(GET=self.model)),
            ]
        return [*routes, *self.unknown_paths("/responses", *API_PATHS)]

    async def create(self, call: HttpCall) -> None:
        body, raw = await self.read_body(call, decode)
        protocol_request = await read_payload(raw, call.scope) if self._intake.shows_payload else None
        request, settle = await self._intake.request(call.caller, body, raw, protocol_request)
        request = keyed(request, call.headers, raw)
        request = self._set_run_id(request, call)
        answer = ResponseWriter(call, self._renderer)
        # A run in the background does not end with its readers anyway; under a key its client may come back for it.
        lasts = self._config.finish_abandoned or request.idempotency_key is not None
        detached = lasts and request.store and not request.background
        if not request.stream:
            work = self.context.run(request, call.caller, protocol_request=protocol_request, settle=settle)
            hosted = await (self._detached.run(work, call.detach()) if detached else work)
            return await answer.run(hosted.run, hosted.result)
        # A quiet stream would keep what its request was read from.
        del raw, body
        opened = self.context.stream(request, call.caller, protocol_request=protocol_request, settle=settle)
        async with await (self._detached.stream(opened, call.detach()) if detached else opened) as stream:
            if stream.run.status == "queued" and not stream.run.stream:
                return await answer.send_queued(stream.run)
            await answer.stream(stream, self._config.streams)

    async def count(self, call: HttpCall) -> None:
        await self.context.allow(call.caller)
        body, raw = await self.read_body(call, decode)
        tokens = await self._intake.tokens(call.caller, body, raw)
        # A field more than the API has, because the number is not the model's own.
        counted = {"object": "response.input_tokens", "input_tokens": tokens, "estimated": True}
        await ResponseWriter(call, self._renderer).json(counted)

    async def compact(self, call: HttpCall) -> None:
        (body, instructions), raw = await self.read_body(call, decode_compact)
        if instructions is not None and self._config.instructions == "refuse":
            raise InvalidRequestError("Instructions are not accepted: this host sets them.", param="instructions")
        body, messages = await self._intake.messages(call.caller, body, len(raw))
        given = await run_sized(len(raw), trim_input, body)
        request = ChannelRequest(
            channel=self.name,
            input=messages,
            options={"instructions": instructions} if self._config.instructions == "append" else {},
            identity=call.caller.identity,
            previous_run_id=body.previous_response_id and plain_id(body.previous_response_id, "previous_response_id"),
            details={"input": given, "seal": self.context.new_id("seal")},
        )
        run = await self.context.conversations.compact(
            set_run_id(
                keyed(request, call.headers, raw, b"compact"),
                call.caller,
                call.headers,
                self._config.response_id_factory,
            ),
            call.caller,
            by=self._config.compactor,
            protocol_request=await read_payload(raw, call.scope) if self._intake.shows_payload else None,
        )
        await self._show(call, run)

    def _set_run_id(self, request: ChannelRequest, call: HttpCall) -> ChannelRequest:
        return set_run_id(request, call.caller, call.headers, self._config.response_id_factory)

    async def _show(self, call: HttpCall, run: RunRecord) -> None:
        answer = ResponseWriter(call, self._renderer)
        if is_compaction(run):
            return await answer.json(draw_compaction(run))
        await answer.run(run, run.result)

    async def get(self, call: HttpCall) -> None:
        after, included = parse_resume_position(call.scope["query_string"]), _read_include(call)
        if after is not None:
            async with await self._follow(call) as stream:
                stream.run = _add_include(stream.run, included)
                return await ResponseWriter(call, self._renderer).stream(stream, self._config.streams, after)
        await self._show(call, _add_include(await self._about(call, self.context.runs.get), included))

    async def _follow(self, call: HttpCall) -> HostedStreamResult[Any]:
        try:
            return await self._about(call, partial(self.context.runs.follow, stored_events_only=True))
        except ConflictError as error:
            # Clients of the API try again after a conflict, and this one does not go away.
            raise InvalidRequestError(error.message, param=error.param, code=error.code) from None

    async def cancel(self, call: HttpCall) -> None:
        await self._show(call, await self._about(call, self.context.runs.cancel))

    async def delete(self, call: HttpCall) -> None:
        await self._about(call, self.context.runs.delete)
        await ResponseWriter(call, self._renderer).json({"id": _run_id(call), "object": "response", "deleted": True})

    async def _about(self, call: HttpCall, act: Callable[[Caller, str], Awaitable[T]]) -> T:
        run_id = _run_id(call)
        try:
            return await act(call.caller, run_id)
        except NotFoundError:
            # One text for everyone: whether the caller was ever here, and whether somebody else has such a response.
            raise NotFoundError("Response not found.", param="response_id") from None

    async def list_input(self, call: HttpCall) -> None:
        _read_include(call)
        run = await self._about(call, self.context.runs.get)
        await ResponseWriter(call, self._renderer).raw(
            await run_weighed(run.details, _input_page, run, call.scope["query_string"])
        )

    async def models(self, call: HttpCall) -> None:
        await self.context.allow(call.caller)
        await ResponseWriter(call, self._renderer).json({"object": "list", "data": [self._model()]})

    async def model(self, call: HttpCall) -> None:
        await self.context.allow(call.caller)
        if call.scope["path_params"]["model"] != self.context.target.name:
            raise NotFoundError("Model not found.", param="model")
        await ResponseWriter(call, self._renderer).json(self._model())

    def _model(self) -> dict[str, Any]:
        return {"id": self.context.target.name, "object": "model", "created": 0, "owned_by": "frontdesk"}

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        await ResponseWriter(call, self._renderer).error(error)


def _input_page(run: RunRecord, query: bytes) -> bytes:
    """Render one page of a run's input in the paging format of the API, and only its items."""
    asked = {name: values[-1] for name, values in parse_qs(query.decode("latin-1"), keep_blank_values=True).items()}
    limit, order = asked.get("limit", "20"), asked.get("order", "desc")
    if limit not in _LIMITS:
        raise InvalidRequestError("`limit` must be a number from 1 to 100.", param="limit")
    if order not in ("asc", "desc"):
        raise InvalidRequestError("`order` must be asc or desc.", param="order")
    given = list_given_items(run)
    items = given if order == "asc" else given[::-1]
    if "after" in asked:
        places = [place for place, (item_id, _) in enumerate(items) if item_id == asked["after"]]
        if not places:
            raise NotFoundError("Item not found.", param="after")
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


def _read_include(call: HttpCall) -> list[str]:
    asked = parse_qs(call.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    names = [value for name, values in asked.items() if _INCLUDE.fullmatch(name) for value in values]
    check_included(names)
    return names


def _add_include(run: RunRecord, names: Sequence[str]) -> RunRecord:
    if not names:
        return run
    return run.replace(details={**run.details, "include": [*(run.details.get("include") or ()), *names]})


def _run_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["run_id"], "response_id")
