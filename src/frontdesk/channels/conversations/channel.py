"""The Conversations channel: its routes, bodies and request handling."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Unpack
from urllib.parse import parse_qs

import msgspec
from msgspec import Meta
from starlette.routing import Route

from frontdesk.asgi.messages import error_headers, send_json
from frontdesk.channels.conversations.config import ConversationsConfig, ConversationsSettings
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import InvalidRequestError, NotFoundError, RequestError
from frontdesk.http.bodies import MAX_VALUES, HttpPayload, decode_as, read_payload
from frontdesk.http.channel import HttpChannel, takes_settings
from frontdesk.http.endpoint import HttpCall
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.storage.pages import MAX_PAGE_BYTES
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.openai.forms import INCLUDES, complete_item, trim
from frontdesk.openai.items import read_added
from frontdesk.openai.paths import API_PATHS

Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
Item = dict[str, Any]


class CreateBody(msgspec.Struct, kw_only=True, frozen=True):
    """`POST /conversations`."""

    items: Annotated[list[Item], Meta(max_length=20)] | None = None
    metadata: Metadata | None = None


class UpdateBody(msgspec.Struct, kw_only=True, frozen=True):
    """`POST /conversations/{id}`."""

    metadata: Metadata | None


class ItemsBody(msgspec.Struct, kw_only=True, frozen=True):
    """`POST /conversations/{id}/items`."""

    items: Annotated[list[Item], Meta(min_length=1, max_length=20)]


class ConversationOut(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: Any


class DeletedOut(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: Literal[True] = True


class PageOut(msgspec.Struct, kw_only=True):
    object: Literal["list"] = "list"
    data: list[Any]
    first_id: str | None
    last_id: str | None
    has_more: bool


class ErrorOut(msgspec.Struct, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str | None


_create = msgspec.json.Decoder(CreateBody)
_update = msgspec.json.Decoder(UpdateBody)
_items = msgspec.json.Decoder(ItemsBody)
# Words, not numbers: `int` fails for digits such as ² and for 5,000 of any.
_LIMITS = frozenset(map(str, range(1, 101)))
_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "mcp_call": "mcp",
    "image_generation_call": "ig",
}


@dataclass(frozen=True, kw_only=True)
class Page:
    after: str | None
    limit: int
    descending: bool
    include: frozenset[str]


def decode_create(raw: bytes, max_values: int = MAX_VALUES) -> CreateBody:
    """Decode a new conversation. Without a body it is empty."""
    return decode_as(_create, raw or b"{}", max_values)


def decode_update(raw: bytes, max_values: int = MAX_VALUES) -> UpdateBody:
    return decode_as(_update, raw, max_values)


def decode_items(raw: bytes, max_values: int = MAX_VALUES) -> ItemsBody:
    return decode_as(_items, raw, max_values)


def to_items(given: Sequence[Item], host_tools: Sequence[str], new_id: Callable[[str], str]) -> list[dict[str, Any]]:
    """Convert items to their stored and displayed form. The host generates the ids and ignores those of the client."""
    read_added(given, host_tools=host_tools)
    return [complete_item(trim(item), new_id(_PREFIXES.get(item.get("type") or "message", "item"))) for item in given]


def build_page(query: bytes) -> Page:
    asked = _parse_query(query)
    limit, order = asked.get("limit", ["20"])[-1], asked.get("order", ["desc"])[-1]
    if limit not in _LIMITS:
        raise InvalidRequestError("`limit` must be a number from 1 to 100.", param="limit")
    if order not in ("asc", "desc"):
        raise InvalidRequestError("`order` must be asc or desc.", param="order")
    after = asked["after"][-1] if "after" in asked else None
    return Page(after=after, limit=int(limit), descending=order == "desc", include=parse_include(query))


def parse_include(query: bytes) -> frozenset[str]:
    asked = _parse_query(query)
    names = [*asked.get("include", ()), *asked.get("include[]", ())]
    for name in names:
        if name not in INCLUDES:
            raise InvalidRequestError(f"Unknown `include` value: {name!r}.", param="include")
    return frozenset(names)


def _parse_query(query: bytes) -> dict[str, list[str]]:
    return parse_qs(query.decode("latin-1"), keep_blank_values=True)


_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_ENCRYPTED = "reasoning.encrypted_content"


def conversation_out(conversation: Conversation) -> ConversationOut:
    return ConversationOut(
        id=conversation.conversation_id, created_at=int(conversation.created_at), metadata=conversation.metadata
    )


def build_deleted(conversation_id: str) -> DeletedOut:
    return DeletedOut(id=conversation_id)


def page_out(bodies: Sequence[Mapping[str, Any]], include: frozenset[str], *, has_more: bool) -> PageOut:
    return PageOut(
        data=[item_out(body, include) for body in bodies],
        first_id=bodies[0]["id"] if bodies else None,
        last_id=bodies[-1]["id"] if bodies else None,
        has_more=has_more,
    )


def item_out(body: Mapping[str, Any], include: frozenset[str]) -> Mapping[str, Any]:
    """Render an item. Encrypted reasoning is only included on request."""
    if "encrypted_content" not in body or body.get("type") != "reasoning" or _ENCRYPTED in include:
        return body
    return {name: value for name, value in body.items() if name != "encrypted_content"}


def error_body(error: RequestError) -> bytes:
    return msgspec.json.encode({"error": error_out(error)})


def error_out(error: RequestError) -> ErrorOut:
    kind = _ERROR_TYPES.get(error.status) or ("server_error" if error.status >= 500 else "invalid_request_error")
    return ErrorOut(message=error.message, type=kind, param=error.param, code=error.code)


class ResponseWriter:
    __slots__ = ("_call",)

    def __init__(self, call: HttpCall) -> None:
        self._call = call

    async def json(self, body: Any) -> None:
        raw = msgspec.json.encode(body)
        self._call.begun = True
        await send_json(self._call.send, 200, raw, self._headers())

    async def error(self, error: RequestError) -> None:
        await send_json(self._call.send, error.status, error_body(error), [*error_headers(error), *self._headers()])

    def _headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"x-request-id", self._call.answer_id)]


class ConversationsChannel(HttpChannel):
    """Serves the OpenAI Conversations API, under `/conversations` and `/v1/conversations`."""

    shares_path = True
    client_path = "/v1"

    @takes_settings(ConversationsConfig)
    def __init__(
        self, *, name: str = "conversations", path: str = "", **settings: Unpack[ConversationsSettings]
    ) -> None:
        config = ConversationsConfig(**settings)
        super().__init__(config, name=name, path=path)
        # A caller who creates a conversation here is the same caller there.
        self.callers_of = config.callers_of

    def routes(self) -> list[Route]:
        routes: list[Route] = []
        bases = [f"{base}/conversations" for base in ("", *API_PATHS)]
        for base in bases:
            conversation, items = f"{base}/{{conversation_id}}", f"{base}/{{conversation_id}}/items"
            routes += [
                Route(base, endpoint=self.endpoint(POST=self.create)),
                Route(conversation, endpoint=self.endpoint(GET=self.get, POST=self.update, DELETE=self.delete)),
                Route(items, endpoint=self.endpoint(GET=self.list_items, POST=self.add_items)),
                Route(f"{items}/{{item_id}}", endpoint=self.endpoint(GET=self.get_item, DELETE=self.delete_item)),
            ]
        return [*routes, *self.unknown_paths(*bases)]

    async def create(self, call: HttpCall) -> None:
        body, raw = await self.read_body(call, decode_create)
        items = await self._items(len(raw), body.items or ())
        made = await self.context.conversations.save(
            call.caller, None, body.metadata or {}, items, protocol_request=await self._protocol_request(call, raw)
        )
        await ResponseWriter(call).json(conversation_out(made))

    async def get(self, call: HttpCall) -> None:
        found = await self.context.conversations.get(call.caller, _conversation_id(call))
        await ResponseWriter(call).json(conversation_out(found))

    async def update(self, call: HttpCall) -> None:
        body, _ = await self.read_body(call, decode_update)
        changed = await self.context.conversations.save(call.caller, _conversation_id(call), body.metadata or {})
        await ResponseWriter(call).json(conversation_out(changed))

    async def delete(self, call: HttpCall) -> None:
        conversation_id = _conversation_id(call)
        await self.context.conversations.delete(call.caller, conversation_id)
        await ResponseWriter(call).json(build_deleted(conversation_id))

    async def list_items(self, call: HttpCall) -> None:
        page = build_page(call.scope["query_string"])
        try:
            found = await self._page(call, page, page.after, page.limit)
        except NotFoundError as error:
            raise NotFoundError(error.message, param="after" if error.param == "item_id" else error.param) from None
        has_more = False
        if found:
            # A page of large items has fewer of them. An item that was deleted meanwhile ends the list.
            with suppress(NotFoundError):
                has_more = bool(await self._page(call, page, found[-1].item_id, 1))
        shown = [item.body for item in found]
        await ResponseWriter(call).json(page_out(shown, page.include, has_more=has_more))

    async def _page(self, call: HttpCall, page: Page, after: str | None, limit: int) -> Sequence[ConversationItem]:
        return await self.context.conversations.list_items(
            call.caller,
            _conversation_id(call),
            after=after,
            limit=limit,
            descending=page.descending,
            max_bytes=MAX_PAGE_BYTES,
        )

    async def add_items(self, call: HttpCall) -> None:
        include = parse_include(call.scope["query_string"])
        body, raw = await self.read_body(call, decode_items)
        items = await self._items(len(raw), body.items)
        added = await self.context.conversations.add_items(
            call.caller, _conversation_id(call), items, protocol_request=await self._protocol_request(call, raw)
        )
        await ResponseWriter(call).json(page_out(added, include, has_more=False))

    async def get_item(self, call: HttpCall) -> None:
        include = parse_include(call.scope["query_string"])
        found = await self.context.conversations.get_item(call.caller, _conversation_id(call), _item_id(call))
        await ResponseWriter(call).json(item_out(found.body, include))

    async def delete_item(self, call: HttpCall) -> None:
        left = await self.context.conversations.delete_item(call.caller, _conversation_id(call), _item_id(call))
        await ResponseWriter(call).json(conversation_out(left))

    async def _protocol_request(self, call: HttpCall, raw: bytes) -> HttpPayload | None:
        return None if self.run_hook is None else await read_payload(raw, call.scope)

    async def _items(self, size: int, given: Sequence[Item]) -> list[Item]:
        return await run_sized(size, to_items, given, self.context.target.tool_names, self.context.new_id)

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        await ResponseWriter(call).error(error)


def _conversation_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["conversation_id"], "conversation_id")


def _item_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["item_id"], "item_id")
