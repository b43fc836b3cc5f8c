"""The channel itself: routes, and the way of a request through this room."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from starlette.routing import Route

from frontdesk.abc.allowlist import Allowlist, Inherit
from frontdesk.abc.auth import Auth
from frontdesk.abc.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.abc.hooks import RunHook
from frontdesk.channels.conversations.client import ResponseWriter
from frontdesk.channels.conversations.config import ConversationsConfig
from frontdesk.channels.conversations.parse import (
    decode_create,
    decode_items,
    decode_update,
    include_of,
    page_of,
    to_items,
)
from frontdesk.channels.conversations.render import conversation_out, deleted_out, item_out, page_out
from frontdesk.channels.conversations.wire import Item
from frontdesk.errors import NotFoundError, RequestError
from frontdesk.kit.aio.large import run_sized
from frontdesk.kit.auth.any_auth import as_auth
from frontdesk.kit.auth.verifier import HttpVerifier
from frontdesk.kit.http.endpoint import BodyDeadline, Handler, HttpCall, HttpEndpoint
from frontdesk.kit.http.limits import Limiter, Limits
from frontdesk.kit.http.payload import HttpPayload, read_payload
from frontdesk.kit.names import plain_id

T = TypeVar("T")


class ConversationsChannel(Channel):
    """Serves the OpenAI Conversations API, under `/conversations` and `/v1/conversations`."""

    shares_path = True
    client_path = "/v1"

    def __init__(
        self,
        *,
        name: str = "conversations",
        path: str = "",
        auth: Auth | None = None,
        allowlist: Allowlist | Inherit | None = "inherit",
        require_link: bool = False,
        confidentiality_tier: str | None = None,
        callers_of: str = ConversationsConfig.callers_of,
        run_hook: RunHook | None = None,
        max_body_bytes: int = ConversationsConfig.max_body_bytes,
        max_body_values: int = ConversationsConfig.max_body_values,
        body_timeout: float = ConversationsConfig.body_timeout,
        allowed_origins: Sequence[str] = (),
        limits: Limits | None = ConversationsConfig.limits,
    ) -> None:
        self.name = name
        self.path = path
        self.auth = as_auth(auth)
        self.allowlist, self.require_link = allowlist, require_link
        self.confidentiality_tier = confidentiality_tier
        self.callers_of = callers_of
        self.run_hook = run_hook
        self._config = ConversationsConfig(
            callers_of=callers_of,
            max_body_bytes=max_body_bytes,
            max_body_values=max_body_values,
            body_timeout=body_timeout,
            allowed_origins=tuple(allowed_origins),
            limits=limits,
        )

    def findings(self) -> list[str]:
        return self._config.findings()

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        return ChannelContribution(routes=_Room(self, self._config, context).routes())


class _Room:
    def __init__(self, channel: ConversationsChannel, config: ConversationsConfig, context: ChannelContext) -> None:
        self._channel = channel
        self._config = config
        self._context, self._conversations = context, context.conversations
        self._deadline = BodyDeadline(config.body_timeout)
        self._limiter = None if config.limits is None else Limiter(config.limits)
        # Someone who makes a conversation here is the same one who goes on with it there.
        self._verifier = HttpVerifier.for_channel(config.callers_of, channel.auth, context, config.allowed_origins)

    def routes(self) -> list[Route]:
        routes: list[Route] = []
        for base in ("/conversations", "/v1/conversations"):
            conversation, items = f"{base}/{{conversation_id}}", f"{base}/{{conversation_id}}/items"
            routes += [
                Route(base, endpoint=self._endpoint(POST=self.create)),
                Route(conversation, endpoint=self._endpoint(GET=self.get, POST=self.update, DELETE=self.delete)),
                Route(items, endpoint=self._endpoint(GET=self.list_items, POST=self.add_items)),
                Route(f"{items}/{{item_id}}", endpoint=self._endpoint(GET=self.get_item, DELETE=self.delete_item)),
            ]
        # What the API has beyond that is not served, and its clients should learn so in words that they understand.
        unknown = self._endpoint(**dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), self.nothing))
        bases = ("/conversations", "/v1/conversations")
        return [*routes, *(Route(f"{base}/{{path:path}}", endpoint=unknown) for base in bases)]

    def _endpoint(self, **methods: Handler) -> HttpEndpoint:
        return HttpEndpoint(
            self._verifier, self.refuse, limiter=self._limiter, allow=self._context.allow, runs=(), **methods
        )

    async def nothing(self, call: HttpCall) -> None:
        raise NotFoundError(f"{call.scope['path']} is not served here.", code="unknown_url")

    async def create(self, call: HttpCall) -> None:
        body, raw = await self._body(call, decode_create)
        items = await self._items(len(raw), body.items or ())
        made = await self._conversations.save(
            call.caller, None, body.metadata or {}, items, protocol_request=await self._protocol_request(call, raw)
        )
        await ResponseWriter(call).json(conversation_out(made))

    async def get(self, call: HttpCall) -> None:
        found = await self._conversations.get(call.caller, _conversation_id(call))
        await ResponseWriter(call).json(conversation_out(found))

    async def update(self, call: HttpCall) -> None:
        body, _ = await self._body(call, decode_update)
        changed = await self._conversations.save(call.caller, _conversation_id(call), body.metadata or {})
        await ResponseWriter(call).json(conversation_out(changed))

    async def delete(self, call: HttpCall) -> None:
        conversation_id = _conversation_id(call)
        await self._conversations.delete(call.caller, conversation_id)
        await ResponseWriter(call).json(deleted_out(conversation_id))

    async def list_items(self, call: HttpCall) -> None:
        page = page_of(call.scope["query_string"])
        try:
            found = await self._conversations.list_items(
                call.caller, _conversation_id(call), after=page.after, limit=page.limit + 1, descending=page.descending
            )
        except NotFoundError as error:
            raise NotFoundError(error.message, param="after" if error.param == "item_id" else error.param) from None
        shown = [item.body for item in found[: page.limit]]
        await ResponseWriter(call).json(page_out(shown, page.include, has_more=len(found) > page.limit))

    async def add_items(self, call: HttpCall) -> None:
        include = include_of(call.scope["query_string"])
        body, raw = await self._body(call, decode_items)
        items = await self._items(len(raw), body.items)
        added = await self._conversations.add_items(
            call.caller, _conversation_id(call), items, protocol_request=await self._protocol_request(call, raw)
        )
        await ResponseWriter(call).json(page_out(added, include, has_more=False))

    async def get_item(self, call: HttpCall) -> None:
        include = include_of(call.scope["query_string"])
        found = await self._conversations.get_item(call.caller, _conversation_id(call), _item_id(call))
        await ResponseWriter(call).json(item_out(found.body, include))

    async def delete_item(self, call: HttpCall) -> None:
        left = await self._conversations.delete_item(call.caller, _conversation_id(call), _item_id(call))
        await ResponseWriter(call).json(conversation_out(left))

    async def _protocol_request(self, call: HttpCall, raw: bytes) -> HttpPayload | None:
        return None if self._channel.run_hook is None else await read_payload(raw, call.scope)

    async def _body(self, call: HttpCall, decode: Callable[[bytes, int], T]) -> tuple[T, bytes]:
        """Read a body; returns also its bytes."""
        raw = await call.json_body(limit=self._config.max_body_bytes, deadline=self._deadline)
        return await run_sized(len(raw), decode, raw, self._config.max_body_values), raw

    async def _items(self, size: int, given: Sequence[Item]) -> list[Item]:
        return await run_sized(size, to_items, given, self._context.target.tool_names, self._context.new_id)

    async def refuse(self, call: HttpCall, error: RequestError) -> None:
        await ResponseWriter(call).error(error)


def _conversation_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["conversation_id"], "conversation_id")


def _item_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["item_id"], "item_id")
