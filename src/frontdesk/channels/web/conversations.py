"""The conversations of a visitor: made, renamed, archived, removed, searched, and continued everywhere."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from frontdesk.abc.channel import ChannelContext
from frontdesk.channels.web.branches import need_room
from frontdesk.channels.web.client import NO_CHAT, Mailbox, Spot
from frontdesk.channels.web.config import WebChatConfig
from frontdesk.channels.web.feed import shown_chat
from frontdesk.channels.web.head import LONGEST_TITLE, Chat, Head
from frontdesk.channels.web.pages import DATA_HEADERS
from frontdesk.channels.web.parse import client_id, decode, new_chat_id, session_key
from frontdesk.channels.web.render import storable
from frontdesk.channels.web.search import search
from frontdesk.channels.web.stream import query_of
from frontdesk.channels.web.wire import MAIN, ChatBody, NewBody
from frontdesk.data.identity import Caller
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError
from frontdesk.kit.chat.text import one_line
from frontdesk.kit.http.asgi import send_json
from frontdesk.kit.http.endpoint import BodyDeadline, HttpCall
from frontdesk.kit.names import plain_id

FIELDS_BYTES = 4_096
"""The bytes of a body besides its text."""
_MAIN_STAYS = "This conversation is the same on all channels, and stays."


class Conversations:
    """Answers what the page asks about conversations as a whole."""

    def __init__(
        self,
        config: WebChatConfig,
        context: ChannelContext,
        mailbox: Mailbox,
        allow: Callable[[Caller], Awaitable[None]],
        deadline: BodyDeadline,
    ) -> None:
        self._config, self._context, self._mailbox = config, context, mailbox
        self._allow, self._deadline = allow, deadline

    async def new(self, call: HttpCall) -> None:
        """Make a conversation, once for each id that the page gives."""
        body = decode(NewBody, await call.json_body(limit=FIELDS_BYTES, deadline=self._deadline))
        await self._allow(call.caller)
        now, visitor = self._context.now(), visitor_of(call)
        chat = Chat(id=new_chat_id(visitor, client_id(body.client_id)), at=now, born=now)

        def add(head: Head) -> Head | None:
            if head.chat(chat.id) is not None:
                return None
            need_room(head, self._config.max_conversations)
            return head.with_chat(chat)

        await self._mailbox.change(visitor, add)
        await answer(call, {"conversation": shown_chat(chat, chat.at)})

    async def change(self, call: HttpCall) -> None:
        """Give a conversation a title, or put it into the archive or back; its branches go with it."""
        body = decode(ChatBody, await call.json_body(limit=FIELDS_BYTES, deadline=self._deadline))
        await self._allow(call.caller)
        changes = _changes(body)
        spot = spot_of(call)

        def changed(head: Head) -> Head:
            chat = head.chat(head.root(spot.chat))
            if head.chat(spot.chat) is None or chat is None:
                raise NotFoundError(NO_CHAT, param="conversation")
            if chat.id == MAIN and body.archived:
                raise ConflictError(_MAIN_STAYS, code="main_conversation")
            return head.with_chat(msgspec.structs.replace(chat, **changes))

        await self._mailbox.change(spot.visitor, changed)
        await answer(call, {})

    async def delete(self, call: HttpCall) -> None:
        """Remove a conversation and its branches from the page; the main one stays."""
        await self._allow(call.caller)
        spot = spot_of(call)
        if spot.chat == MAIN:
            raise ConflictError(_MAIN_STAYS, code="main_conversation")
        await self._mailbox.drop(spot)
        await answer(call, {})

    async def search(self, call: HttpCall) -> None:
        """Answer with the messages that have the words of a search."""
        await self._allow(call.caller)
        query = query_of(call.scope)
        found = await search(self._mailbox, visitor_of(call), query.get("q", ""), query.get("after", ""))
        await answer(call, {"hits": found.hits, "next": found.next})

    async def track(self, call: HttpCall) -> None:
        """Let the person's chats on all channels, and the main conversation, go on with a conversation."""
        body = decode(NewBody, await call.json_body(limit=FIELDS_BYTES, deadline=self._deadline))
        client_id(body.client_id)
        await self._allow(call.caller)
        spot = spot_of(call)
        if (await self._mailbox.head(spot.visitor)).chat(spot.chat) is None:
            raise NotFoundError(NO_CHAT, param="conversation")
        if spot.chat == MAIN:
            raise ConflictError("The main conversation is the same everywhere already.", code="main_conversation")
        await self._context.track_session(call.caller, session_key(spot.chat))
        await answer(call, {})


def _changes(body: ChatBody) -> dict[str, Any]:
    """Return the fields of a conversation that a body changes, or refuse it."""
    changes: dict[str, Any] = {} if body.archived is None else {"archived": body.archived}
    if body.title is not None:
        title = one_line(storable(body.title))
        if not title or len(title) > LONGEST_TITLE:
            raise InvalidRequestError(f"A title has 1 to {LONGEST_TITLE} characters.", param="title")
        changes["title"] = title
    if not changes:
        raise InvalidRequestError("A change needs a title, or archived.", param="title")
    return changes


def visitor_of(call: HttpCall) -> str:
    """Return the visitor who is calling."""
    return call.caller.identity.native_id


def spot_of(call: HttpCall) -> Spot:
    """Return the conversation that a call is about."""
    return Spot(visitor_of(call), plain_id(call.scope["path_params"]["chat"], "conversation"))


async def answer(call: HttpCall, body: Any) -> None:
    """Answer with JSON that is the visitor's own."""
    await send_json(call.send, 200, msgspec.json.encode(body), DATA_HEADERS)
