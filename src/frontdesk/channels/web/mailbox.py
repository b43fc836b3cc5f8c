"""The mailbox of each visitor: the messages of the page, in the storage of the channel.

The mailbox has the role that the servers of a platform have for other channels. A visitor has one head record, which
changes by compare-and-set only. Each message is a value of its own. A message is written before the head counts it,
under a number that only one writer gets. If a writer crashes in between, the next writer completes its message.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self

import msgspec

from frontdesk.channels.web.wire import MAIN, Message, StoredMessage
from frontdesk.errors import NotFoundError
from frontdesk.identifiers import digest
from frontdesk.interfaces.context import ChannelStorage
from frontdesk.models.live_message import LiveFence

MAX_CHANGES = 200
"""The number of changes that a page may have missed; one that has missed more reads its conversation again."""
MAX_KEYS = 60
"""The number of keys in the head; earlier ones are values of their own."""
MAX_TITLE_LENGTH = 60
"""The number of characters of a title; all titles of a visitor are stored in one value."""


class Chat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    at: float = 0.0
    """When something was said in it last."""
    title: str = ""
    last: int = 0
    """The number of its last message."""
    busy_until: float = 0.0
    """Until when something is being answered in it, unless that is said again."""
    born: float = 0.0
    base: str = ""
    """The conversation from which it has branched off; it has the first `shared` messages in common with it."""
    shared: int = 0
    run: str = ""
    """The run behind which it has branched off; none if nothing was answered before."""
    archived: bool = False


class Change(NamedTuple):
    """A change: its sequence number, the conversation, and the message. 0 stands for the conversation itself."""

    number: int
    chat: str
    message: int


class SentKey(NamedTuple):
    key: str
    chat: str
    message: int


class LiveMessage(NamedTuple):
    chat: str
    message: int


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations of a visitor, the latest change numbers, and the live messages."""

    change: int = 0
    chats: tuple[Chat, ...] = (Chat(id=MAIN),)
    recent: tuple[Change, ...] = ()
    keys: tuple[SentKey, ...] = ()
    live: tuple[LiveMessage, ...] = ()

    def chat(self, chat_id: str) -> Chat | None:
        return next((chat for chat in self.chats if chat.id == chat_id), None)

    def holder(self, chat_id: str, number: int) -> str:
        """Return the conversation that stores a message displayed in a conversation."""
        chat = self.chat(chat_id)
        while chat is not None and chat.base and number <= chat.shared:
            chat_id, chat = chat.base, self.chat(chat.base)
        return chat_id

    def root(self, chat_id: str) -> str:
        """Return the conversation that a branch belongs to. A conversation without a base is its own root."""
        chat = self.chat(chat_id)
        while chat is not None and chat.base:
            chat_id, chat = chat.base, self.chat(chat.base)
        return chat_id

    def branches(self, chat_id: str) -> list[Chat]:
        """Return a conversation and all its direct and indirect branches."""
        family = {chat_id}
        # A branch is younger than its base.
        for chat in sorted(self.chats, key=lambda chat: chat.born):
            if chat.base in family:
                family.add(chat.id)
        return [chat for chat in self.chats if chat.id in family]

    def find_sent(self, key: str) -> SentKey | None:
        """Return the message recently sent under a key, or None."""
        return next((sent for sent in self.keys if sent.key == key), None)

    @property
    def is_full_of_keys(self) -> bool:
        """Return True if the next sent message replaces an earlier key."""
        return len(self.keys) >= MAX_KEYS

    def since(self, cursor: int) -> list[Change] | None:
        """Return the changes after a cursor, each position once. None if there are too many, or the cursor is
        unknown."""
        oldest = self.recent[0].number if self.recent else self.change + 1
        if cursor > self.change or cursor < oldest - 1:
            return None
        places = {(change.chat, change.message): change for change in self.recent if change.number > cursor}
        return list(places.values())

    def with_message(self, chat: Chat, key: str, *, live: bool, busy_until: float = 0.0) -> Self:
        if busy_until:
            chat = msgspec.structs.replace(chat, busy_until=busy_until)
        head = self._add_change(chat.id, chat.last).with_chat(chat)
        return msgspec.structs.replace(
            head,
            keys=(*self.keys, SentKey(key, chat.id, chat.last))[-MAX_KEYS:],
            live=(*self.live, LiveMessage(chat.id, chat.last)) if live else self.live,
        )

    def with_change(self, chat_id: str, number: int, *, live: bool) -> Self:
        others = tuple(place for place in self.live if place != (chat_id, number))
        still = (*others, LiveMessage(chat_id, number)) if live else others
        return msgspec.structs.replace(self._add_change(chat_id, number), live=still)

    def with_chat(self, chat: Chat) -> Self:
        others = tuple(other for other in self.chats if other.id != chat.id)
        return msgspec.structs.replace(self._add_change(chat.id, 0), chats=(*others, chat))

    def without_chat(self, chat_id: str) -> Self:
        chats = tuple(chat for chat in self.chats if chat.id != chat_id)
        live = tuple(place for place in self.live if place.chat != chat_id)
        return msgspec.structs.replace(self._add_change(chat_id, 0), chats=chats, live=live)

    def with_all_changed(self) -> Self:
        """Return the head after a change that affects more than one conversation."""
        return msgspec.structs.replace(self, change=self.change + 1, recent=())

    def _add_change(self, chat_id: str, number: int) -> Self:
        change = self.change + 1
        recent = (*self.recent, Change(change, chat_id, number))[-MAX_CHANGES:]
        return msgspec.structs.replace(self, change=change, recent=recent)


MAX_PIECE_LENGTH = 6_000
"""The number of characters of one piece of a text: as JSON, a piece always fits into a stored value."""
_KEY_LENGTH = 24
NO_CHAT = "Conversation not found."

Edit = Callable[[StoredMessage], "tuple[StoredMessage, str | None]"]
"""Returns a message as it is to be, and its whole text if that is another one."""


class MessageRef(NamedTuple):
    """A message reference: the visitor, the conversation and the message number."""

    visitor: str
    chat: str
    number: int = 0

    @property
    def path(self) -> str:
        return f"message/{self.visitor}/{self.chat}/{self.number}"


class Mailbox:
    """The conversations of all visitors, and the waiting pages of this process."""

    def __init__(self, storage: ChannelStorage, now: Callable[[], float], keep_seconds: float) -> None:
        self._storage = storage
        self._now = now
        self._keep_seconds = keep_seconds
        self._waiting: dict[str, set[asyncio.Event]] = {}

    async def head(self, visitor: str) -> Head:
        return (await self._head(visitor))[0]

    async def change(self, visitor: str, change: Callable[[Head], Head | None]) -> Head:
        """Update the head of a visitor, unless the function returns None. Return the resulting head."""
        while True:
            head, version = await self._head(visitor)
            changed = change(head)
            if changed is None:
                return head
            if await self._save_head(visitor, changed, version):
                return changed

    async def add(
        self,
        spot: MessageRef,
        message: StoredMessage,
        *,
        title: str = "",
        busy_until: float = 0.0,
        fence: LiveFence | None = None,
    ) -> int:
        """Add a message to a conversation, once for each key, and return its number.

        `title` is used if the conversation has none. `busy_until` is the time until which the message waits for an
        answer. With a `fence`, raise `LostEventError` if another process has taken over the answer.
        """
        message = msgspec.structs.replace(message, key=digest(message.key)[:_KEY_LENGTH], length=len(message.text))
        await self._save_pieces(spot, message, message.text, 0)
        while True:
            head, version = await self._head(spot.visitor)
            sent, chat = await self._find_sent(spot.visitor, head, message.key), head.chat(spot.chat)
            if sent is not None:
                return sent.message
            if chat is None:
                raise NotFoundError(NO_CHAT, param="conversation")
            place = spot._replace(number=chat.last + 1)
            stored = await self._claim(place, message, fence)
            if head.is_full_of_keys:
                # The head is about to forget it.
                await self._keep_key(spot.visitor, head.keys[0])
            # Whoever has written it, the head has to count it before the next one can be written.
            counted = head.with_message(
                msgspec.structs.replace(
                    chat, last=place.number, at=stored.at, title=chat.title or ("" if chat.base else title)
                ),
                stored.key,
                live=stored.state == "live",
                busy_until=busy_until,
            )
            await self._save_head(spot.visitor, counted, version)

    async def _claim(self, place: MessageRef, message: StoredMessage, fence: LiveFence | None) -> StoredMessage:
        """Write a message under a number, and return the message that won it."""
        begun = msgspec.structs.replace(message, number=place.number, text=message.text[:MAX_PIECE_LENGTH])
        while True:
            if await self._save(place.path, begun, None, fence) is not None:
                return begun
            other = await self._read(place)
            if other is not None:
                return other[0]

    async def find(self, visitor: str, key: str, *, chat: str = "") -> MessageRef | None:
        """Return the reference of the message that was sent under a key.

        In a `chat` it is found even if its writer died before the head was updated. The head counts it then: pages do
        not list a message that the head does not count.
        """
        head, short = await self.head(visitor), digest(key)[:_KEY_LENGTH]
        sent = await self._find_sent(visitor, head, short)
        if sent is not None:
            return MessageRef(visitor, sent.chat, sent.message)
        known = head.chat(chat) if chat else None
        if known is None:
            return None
        place = MessageRef(visitor, chat, known.last + 1)
        uncounted = await self._read(place)
        if uncounted is None or uncounted[0].key != short:
            return None
        if head.is_full_of_keys:
            await self._keep_key(visitor, head.keys[0])
        await self._count(place, uncounted[0])
        return place

    async def _count(self, place: MessageRef, stored: StoredMessage) -> None:
        """Add a stored message to the head, unless another process has done so."""

        def count(head: Head) -> Head | None:
            chat = head.chat(place.chat)
            if chat is None or chat.last >= place.number:
                return None
            chat = msgspec.structs.replace(chat, last=place.number, at=stored.at)
            return head.with_message(chat, stored.key, live=stored.state == "live")

        await self.change(place.visitor, count)

    async def _find_sent(self, visitor: str, head: Head, key: str) -> SentKey | None:
        """Return the message that was sent under a key at any time."""
        sent = head.find_sent(key)
        if sent is not None or not head.is_full_of_keys:
            return sent
        value = await self._storage.get(f"sent/{visitor}/{key}")
        return None if value is None else msgspec.convert(value.value, SentKey)

    async def _keep_key(self, visitor: str, sent: SentKey) -> None:
        until = self._now() + self._keep_seconds
        await self._storage.set(f"sent/{visitor}/{sent.key}", list(sent), expires_at=until)

    async def edit(self, place: MessageRef, change: Edit, *, quiet: bool = False) -> StoredMessage | None:
        """Edit a message and return it, or None if it does not exist.

        `quiet` does not update the head. It is for live messages, which pages read at each poll.
        """
        while True:
            known = await self._read(place)
            if known is None:
                return None
            before, version = known
            after, text = change(before)
            if text is not None:
                after = msgspec.structs.replace(after, length=len(text), text=text[:MAX_PIECE_LENGTH])
                # Pieces that are complete stay as they are while a text grows.
                first = before.length // MAX_PIECE_LENGTH if before.epoch == after.epoch else 0
                await self._save_pieces(place, after, text, first)
            if after == before or await self._save(place.path, after, version) is not None:
                break
        if after.epoch != before.epoch:
            await self._remove_pieces(place, before)
        if not quiet:
            live = after.state == "live"
            await self.change(place.visitor, lambda head: head.with_change(place.chat, place.number, live=live))
        self._notify(place.visitor)
        return after

    async def touch(self, visitor: str) -> None:
        """Make the pages of a visitor reload everything, also in other processes."""
        await self.change(visitor, Head.with_all_changed)

    async def set_busy(self, spot: MessageRef, until: float) -> None:
        """Set the time until which a conversation has an answer in progress, or 0."""

        def change(head: Head) -> Head | None:
            chat = head.chat(spot.chat)
            if chat is None or (not until and not chat.busy_until):
                return None
            return head.with_chat(msgspec.structs.replace(chat, busy_until=until))

        await self.change(spot.visitor, change)

    async def message(self, place: MessageRef) -> Message | None:
        known = await self._read(place)
        if known is None:
            return None
        stored = known[0]
        text = stored.text if stored.length <= MAX_PIECE_LENGTH else await self.text(place, stored, 0)
        return as_shown(stored, text)

    async def find_holder(self, spot: MessageRef) -> MessageRef:
        """Return the storage reference of a message in a conversation, which may be a branch."""
        return spot._replace(chat=(await self.head(spot.visitor)).holder(spot.chat, spot.number))

    async def peek(self, place: MessageRef) -> StoredMessage | None:
        known = await self._read(place)
        return None if known is None else known[0]

    async def text(self, place: MessageRef, stored: StoredMessage, start: int) -> str:
        pieces: list[str] = []
        for number in range(start // MAX_PIECE_LENGTH, -(-stored.length // MAX_PIECE_LENGTH)):
            if number == 0:
                pieces.append(stored.text)
                continue
            value = await self._storage.get(_piece(place, stored, number))
            pieces.append("" if value is None else str(value.value))
        return "".join(pieces)[start - start // MAX_PIECE_LENGTH * MAX_PIECE_LENGTH :][: stored.length - start]

    async def page(self, spot: MessageRef, before: int | None, limit: int) -> Sequence[Message]:
        """Return messages of a conversation in order: those before a number, or the last ones."""
        head = await self.head(spot.visitor)
        chat = head.chat(spot.chat)
        if chat is None:
            raise NotFoundError(NO_CHAT, param="conversation")
        end = chat.last + 1 if before is None else min(before, chat.last + 1)
        places = [
            MessageRef(spot.visitor, head.holder(chat.id, number), number) for number in range(max(1, end - limit), end)
        ]
        messages = [await self.message(place) for place in places]
        return [message for message in messages if message is not None and message.state != "removed"]

    async def drop(self, spot: MessageRef) -> None:
        """Remove a conversation with its branches and their messages."""
        dropped: list[Chat] = []

        def without(head: Head) -> Head | None:
            dropped[:] = head.branches(spot.chat)
            for chat in dropped:
                head = head.without_chat(chat.id)
            return head if dropped else None

        await self.change(spot.visitor, without)
        for chat in dropped:
            for number in range(chat.shared + 1, chat.last + 1):
                await self._remove(MessageRef(spot.visitor, chat.id, number))

    async def _remove(self, place: MessageRef) -> None:
        known = await self._read(place)
        if known is not None:
            await self._remove_pieces(place, known[0])
        await self._storage.delete(place.path)

    async def _remove_pieces(self, place: MessageRef, stored: StoredMessage) -> None:
        for number in range(1, -(-stored.length // MAX_PIECE_LENGTH)):
            await self._storage.delete(_piece(place, stored, number))

    @contextmanager
    def listen(self, visitor: str) -> Generator[asyncio.Event]:
        """Return an event that is set whenever this process changes data of a visitor."""
        event = asyncio.Event()
        self._waiting.setdefault(visitor, set()).add(event)
        try:
            yield event
        finally:
            waiting = self._waiting[visitor]
            waiting.discard(event)
            if not waiting:
                del self._waiting[visitor]

    def _notify(self, visitor: str) -> None:
        for event in self._waiting.get(visitor, ()):
            event.set()

    async def _head(self, visitor: str) -> tuple[Head, str | None]:
        value = await self._storage.get(f"head/{visitor}")
        return (Head(), None) if value is None else (msgspec.convert(value.value, Head), value.version)

    async def _save_head(self, visitor: str, head: Head, version: str | None) -> bool:
        if await self._save(f"head/{visitor}", head, version) is None:
            return False
        self._notify(visitor)
        return True

    async def _read(self, place: MessageRef) -> tuple[StoredMessage, str] | None:
        value = await self._storage.get(place.path)
        return None if value is None else (msgspec.convert(value.value, StoredMessage), value.version)

    async def _save(
        self, path: str, value: msgspec.Struct, version: str | None, fence: LiveFence | None = None
    ) -> str | None:
        until = self._now() + self._keep_seconds
        data = msgspec.to_builtins(value)
        return await self._storage.compare_and_set(path, version, data, expires_at=until, fence=fence)

    async def _save_pieces(self, place: MessageRef, stored: StoredMessage, text: str, first: int) -> None:
        for number in range(max(first, 1), -(-len(text) // MAX_PIECE_LENGTH)):
            piece = text[number * MAX_PIECE_LENGTH : (number + 1) * MAX_PIECE_LENGTH]
            until = self._now() + self._keep_seconds
            await self._storage.set(_piece(place, stored, number), piece, expires_at=until)


def as_shown(stored: StoredMessage, text: str) -> Message:
    """Return a stored message in display form, with a text."""
    fields: dict[str, Any] = {name: getattr(stored, name) for name in Message.__struct_fields__}
    return msgspec.structs.replace(Message(**fields), text=text)


def _piece(place: MessageRef, stored: StoredMessage, number: int) -> str:
    # Not by the number of the message: of two writers that want the same one, one gets another.
    return f"piece/{place.visitor}/{stored.key}/{stored.epoch}/{number}"


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait until an event is set or the time is over, and clear the event."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()
