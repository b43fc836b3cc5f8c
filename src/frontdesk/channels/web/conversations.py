"""The conversations of a visitor: create, rename, archive, delete, search and continue."""

from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from frontdesk.asgi.messages import send_json
from frontdesk.channels.web.config import WebChatConfig
from frontdesk.channels.web.mailbox import MAX_TITLE_LENGTH, NO_CHAT, Chat, Head, Mailbox, MessageRef
from frontdesk.channels.web.pages import DATA_HEADERS
from frontdesk.channels.web.parse import client_id, decode, new_chat_id, session_key
from frontdesk.channels.web.render import storable
from frontdesk.channels.web.stream import parse_query, render_chat
from frontdesk.channels.web.wire import MAIN, ChatBody, Message, NewBody, SentFile, ShownFile
from frontdesk.concurrency.offload import MIN_LARGE_BYTES, run_sized
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError
from frontdesk.http.endpoint import BodyDeadline, HttpCall
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.markdown.plain_text import one_line
from frontdesk.models.identity import Caller

MAX_QUERY_LENGTH = 200
MAX_HITS = 20
MAX_READ = 400
"""The number of messages that one page of a search reads."""
_EXCERPT_LENGTH = 60
_SEARCH_COST_FACTOR = 8
"""The factor by which it takes longer to look at a character than to read or write a byte."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    chat: str
    number: int
    at: float
    role: str
    snippet: str


class Found(NamedTuple):
    """A page of search results and the position of the next one. Empty at the end."""

    hits: list[Hit]
    next: str = ""


async def search(mailbox: Mailbox, visitor: str, query: str, after: str) -> Found:
    """Return the messages that match a query, latest first within each conversation."""
    words = one_line(query[: MAX_QUERY_LENGTH + 1]).casefold()
    if not words or len(query) > MAX_QUERY_LENGTH:
        raise InvalidRequestError(f"A search must have 1 to {MAX_QUERY_LENGTH} characters.", param="q")
    head = await mailbox.head(visitor)
    hits: list[Hit] = []
    looked = 0
    for read, (chat, number) in enumerate(_places(head, after)):
        if read >= MAX_READ or len(hits) >= MAX_HITS:
            return Found(hits, f"{chat}:{number}")
        message = await mailbox.message(MessageRef(visitor, chat, number))
        if message is None or message.state == "removed":
            continue
        # Each time that it has become much, it goes on in the turn of its caller, and others come in between.
        looked += _SEARCH_COST_FACTOR * len(message.text)
        hit = await run_sized(looked, _hit, chat, message, words)
        if looked > MIN_LARGE_BYTES:
            looked = 0
        if hit is not None:
            hits.append(hit)
    return Found(hits)


def _places(head: Head, after: str) -> list[tuple[str, int]]:
    """Return the positions of all messages from a position on, in an order that new messages do not change."""
    chats = sorted(head.chats, key=lambda chat: (chat.id != MAIN, -chat.born, chat.id))
    first, _, given = after.partition(":")
    if first:
        ids = [chat.id for chat in chats]
        if first not in ids or not (given.isascii() and given.isdigit() and len(given) < 16):
            raise InvalidRequestError("`after` is not a valid position.", param="after")
        chats = chats[ids.index(first) :]
    places: list[tuple[str, int]] = []
    for chat in chats:
        last = min(chat.last, int(given)) if chat.id == first else chat.last
        # One more than a page reads tells where the next one begins.
        remaining = MAX_READ + 1 - len(places)
        places += [(chat.id, number) for number in range(last, chat.shared, -1)[:remaining]]
    return places


def _hit(chat: str, message: Message, words: str) -> Hit | None:
    text = one_line(message.text)
    place = text.casefold().find(words)
    if place < 0:
        return None
    start, end = max(0, place - _EXCERPT_LENGTH), place + len(words) + _EXCERPT_LENGTH
    snippet = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    return Hit(chat=chat, number=message.number, at=message.at, role=message.role, snippet=snippet)


_MAX_EXAMINED = 200
"""The number of messages among which the run is looked for behind which a branch begins."""
_GONE = "A file of that message has expired. Remove it or attach it again."


def require_capacity(head: Head, most: int) -> None:
    """Reject a new conversation if the visitor has reached the limit."""
    if len(head.chats) >= most:
        raise ConflictError("Too many conversations. Delete one first.", code="too_many_chats")


async def begin_branch(mailbox: Mailbox, spot: MessageRef, chat_id: str, now: float, most: int) -> Chat:
    """Create the branch on which a message replaces an earlier one. Idempotent for each id."""
    visitor, number = spot.visitor, spot.number
    head = await mailbox.head(visitor)
    known = head.chat(chat_id)
    if known is not None:
        return known
    said = await mailbox.peek(await mailbox.find_holder(spot))
    if said is None or said.role != "user" or said.state == "removed":
        raise NotFoundError("Message not found.", param="instead_of")
    base = head.holder(spot.chat, number - 1) if number > 1 else head.root(spot.chat)
    branch = Chat(
        id=chat_id,
        at=now,
        born=now,
        base=base,
        shared=number - 1,
        last=number - 1,
        run=await _run_before(mailbox, head, spot),
    )

    def add(head: Head) -> Head | None:
        if head.chat(chat_id) is not None:
            return None
        if head.chat(base) is None:
            raise NotFoundError("Conversation not found.", param="conversation")
        require_capacity(head, most)
        return head.with_chat(branch)

    await mailbox.change(visitor, add)
    return branch


async def find_kept_files(
    context: ChannelContext, mailbox: Mailbox, caller: Caller, spot: MessageRef, ids: Sequence[str]
) -> list[tuple[ShownFile, SentFile]]:
    """Return files of an earlier message, as displayed and as sent again."""
    said = await mailbox.peek(await mailbox.find_holder(spot)) if ids else None
    known = {file.id: file for file in (() if said is None else said.files)}
    kept: list[tuple[ShownFile, SentFile]] = []
    for file_id in dict.fromkeys(ids):
        if file_id not in known:
            raise InvalidRequestError(_GONE, param="keep", code="file_not_kept")
        try:
            stored, data = await context.storage.get_file(caller, file_id)
        except NotFoundError:
            raise InvalidRequestError(_GONE, param="keep", code="file_not_kept") from None
        encoded = (await run_sized(len(data), b64encode, data)).decode()
        kept.append((known[file_id], SentFile(media_type=stored.media_type, data=encoded, name=stored.name)))
    return kept


async def drop_empty(mailbox: Mailbox, spot: MessageRef) -> None:
    """Remove an empty branch whose message was rejected."""
    chat = (await mailbox.head(spot.visitor)).chat(spot.chat)
    if chat is not None and chat.base and chat.last == chat.shared:
        await mailbox.drop(spot)


async def _run_before(mailbox: Mailbox, head: Head, spot: MessageRef) -> str:
    """Return the last run that answered before a message. Empty if there was none."""
    first = max(1, spot.number - _MAX_EXAMINED)
    for number in range(spot.number - 1, first - 1, -1):
        message = await mailbox.peek(MessageRef(spot.visitor, head.holder(spot.chat, number), number))
        if message is not None and message.run:
            return message.run
    if first > 1:
        raise ConflictError(
            "No earlier answer is near enough to continue from this message.", code="branch_not_possible"
        )
    return ""


FIELDS_BYTES = 4_096
"""The bytes of a body besides its text."""
_MAIN_STAYS = "The main conversation can't be deleted or archived."


class Conversations:
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
        """Create a conversation. Idempotent for each id given by the page."""
        body = decode(NewBody, await call.json_body(limit=FIELDS_BYTES, deadline=self._deadline))
        await self._allow(call.caller)
        now, visitor = self._context.now(), get_visitor(call)
        chat = Chat(id=new_chat_id(visitor, client_id(body.client_id)), at=now, born=now)

        def add(head: Head) -> Head | None:
            if head.chat(chat.id) is not None:
                return None
            require_capacity(head, self._config.max_conversations)
            return head.with_chat(chat)

        await self._mailbox.change(visitor, add)
        await answer(call, {"conversation": render_chat(chat, chat.at)})

    async def change(self, call: HttpCall) -> None:
        """Rename, archive or restore a conversation, together with its branches."""
        body = decode(ChatBody, await call.json_body(limit=FIELDS_BYTES, deadline=self._deadline))
        await self._allow(call.caller)
        changes = _changes(body)
        spot = build_message_ref(call)

        def change_chat(head: Head) -> Head:
            chat = head.chat(head.root(spot.chat))
            if head.chat(spot.chat) is None or chat is None:
                raise NotFoundError(NO_CHAT, param="conversation")
            if chat.id == MAIN and body.archived:
                raise ConflictError(_MAIN_STAYS, code="main_conversation")
            return head.with_chat(msgspec.structs.replace(chat, **changes))

        await self._mailbox.change(spot.visitor, change_chat)
        await answer(call, {})

    async def delete(self, call: HttpCall) -> None:
        """Remove a conversation and its branches from the page. The main one is kept."""
        await self._allow(call.caller)
        spot = build_message_ref(call)
        if spot.chat == MAIN:
            raise ConflictError(_MAIN_STAYS, code="main_conversation")
        await self._mailbox.drop(spot)
        await answer(call, {})

    async def search(self, call: HttpCall) -> None:
        await self._allow(call.caller)
        query = parse_query(call.scope)
        found = await search(self._mailbox, get_visitor(call), query.get("q", ""), query.get("after", ""))
        await answer(call, {"hits": found.hits, "next": found.next})

    async def track(self, call: HttpCall) -> None:
        """Continue a conversation in the person's chats on all channels and in the main conversation."""
        body = decode(NewBody, await call.json_body(limit=FIELDS_BYTES, deadline=self._deadline))
        client_id(body.client_id)
        await self._allow(call.caller)
        spot = build_message_ref(call)
        if (await self._mailbox.head(spot.visitor)).chat(spot.chat) is None:
            raise NotFoundError(NO_CHAT, param="conversation")
        if spot.chat == MAIN:
            raise ConflictError("The main conversation is already shared by all channels.", code="main_conversation")
        await self._context.sessions.track(call.caller, session_key(spot.chat))
        await answer(call, {})


def _changes(body: ChatBody) -> dict[str, Any]:
    """Return the changed fields of a conversation. Raise for an invalid body."""
    changes: dict[str, Any] = {} if body.archived is None else {"archived": body.archived}
    if body.title is not None:
        title = one_line(storable(body.title))
        if not title or len(title) > MAX_TITLE_LENGTH:
            raise InvalidRequestError(f"A title must have 1 to {MAX_TITLE_LENGTH} characters.", param="title")
        changes["title"] = title
    if not changes:
        raise InvalidRequestError("A change requires `title` or `archived`.", param="title")
    return changes


def get_visitor(call: HttpCall) -> str:
    return call.caller.identity.native_id


def build_message_ref(call: HttpCall) -> MessageRef:
    return MessageRef(get_visitor(call), plain_id(call.scope["path_params"]["chat"], "conversation"))


async def answer(call: HttpCall, body: Any) -> None:
    """Send JSON that belongs to the visitor."""
    await send_json(call.send, 200, msgspec.json.encode(body), DATA_HEADERS)
