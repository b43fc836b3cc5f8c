"""The mailbox of each visitor: what was said on the page, kept in the channel's storage.

It is to this channel what the servers of a platform are to another. A visitor has one head, a value that is changed by
compare and set alone, and each message is a value of its own. A message is written before the head counts it, and under
a number that only one writer gets, so that a writer that dies in between is completed by the next one.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from frontdesk.abc.channel_state import ChannelStorage
from frontdesk.channels.web.head import Chat, Head, SentKey
from frontdesk.channels.web.wire import Message, StoredMessage
from frontdesk.errors import NotFoundError
from frontdesk.kit.names import digest

PIECE = 6_000
"""The number of characters of one piece of a text: as JSON, a piece always fits into a stored value."""
_KEY = 24
NO_CHAT = "There is no such conversation."

Edit = Callable[[StoredMessage], "tuple[StoredMessage, str | None]"]
"""Returns a message as it is to be, and its whole text if that is another one."""


class Spot(NamedTuple):
    """The place of a message: the visitor, the conversation and its number."""

    visitor: str
    chat: str
    number: int = 0

    @property
    def path(self) -> str:
        """Return the key of the message in the storage."""
        return f"message/{self.visitor}/{self.chat}/{self.number}"


class Mailbox:
    """The conversations of all visitors, and the pages of this process that wait for something new."""

    def __init__(self, storage: ChannelStorage, now: Callable[[], float], keep_seconds: float) -> None:
        self._storage = storage
        self._now = now
        self._keep_seconds = keep_seconds
        self._waiting: dict[str, set[asyncio.Event]] = {}

    async def head(self, visitor: str) -> Head:
        """Return the conversations of a visitor and what has changed in them."""
        return (await self._head(visitor))[0]

    async def change(self, visitor: str, change: Callable[[Head], Head | None]) -> Head:
        """Change the head of a visitor, unless the function returns `None`; return it as it is then."""
        while True:
            head, version = await self._head(visitor)
            changed = change(head)
            if changed is None:
                return head
            if await self._save_head(visitor, changed, version):
                return changed

    async def add(self, spot: Spot, message: StoredMessage, *, title: str = "", busy_until: float = 0.0) -> int:
        """Add a message to a conversation, once for each key, and return its number.

        `title` is that of a conversation that has none, and `busy_until` is until when the message waits for an answer.
        """
        message = msgspec.structs.replace(message, key=digest(message.key)[:_KEY], length=len(message.text))
        await self._save_pieces(spot, message, message.text, 0)
        while True:
            head, version = await self._head(spot.visitor)
            sent, chat = await self._sent(spot.visitor, head, message.key), head.chat(spot.chat)
            if sent is not None:
                return sent.message
            if chat is None:
                raise NotFoundError(NO_CHAT, param="conversation")
            place = spot._replace(number=chat.last + 1)
            stored = await self._claim(place, message)
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

    async def _claim(self, place: Spot, message: StoredMessage) -> StoredMessage:
        """Write a message under a number, and return the one that has got it."""
        begun = msgspec.structs.replace(message, number=place.number, text=message.text[:PIECE])
        while True:
            if await self._save(place.path, begun, None) is not None:
                return begun
            other = await self._read(place)
            if other is not None:
                return other[0]

    async def find(self, visitor: str, key: str) -> Spot | None:
        """Return the place of the message that was sent under a key."""
        sent = await self._sent(visitor, await self.head(visitor), digest(key)[:_KEY])
        return None if sent is None else Spot(visitor, sent.chat, sent.message)

    async def _sent(self, visitor: str, head: Head, key: str) -> SentKey | None:
        """Return the message that was sent under a key, however long ago."""
        sent = head.sent(key)
        if sent is not None or not head.is_full_of_keys:
            return sent
        value = await self._storage.get(f"sent/{visitor}/{key}")
        return None if value is None else msgspec.convert(value.value, SentKey)

    async def _keep_key(self, visitor: str, sent: SentKey) -> None:
        until = self._now() + self._keep_seconds
        await self._storage.set(f"sent/{visitor}/{sent.key}", list(sent), expires_at=until)

    async def edit(self, place: Spot, change: Edit, *, quiet: bool = False) -> StoredMessage | None:
        """Change a message and return it; `None` if there is none.

        `quiet` leaves the head alone, for a message that is being written: pages read these at each look.
        """
        while True:
            known = await self._read(place)
            if known is None:
                return None
            before, version = known
            after, text = change(before)
            if text is not None:
                after = msgspec.structs.replace(after, length=len(text), text=text[:PIECE])
                # Pieces that are complete stay as they are while a text grows.
                first = before.length // PIECE if before.epoch == after.epoch else 0
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
        """Let the pages of a visitor read all of what they show anew, also in other processes."""
        await self.change(visitor, Head.with_all_changed)

    async def set_busy(self, spot: Spot, until: float) -> None:
        """Note until when something is being answered in a conversation; 0 if nothing is."""

        def change(head: Head) -> Head | None:
            chat = head.chat(spot.chat)
            if chat is None or (not until and not chat.busy_until):
                return None
            return head.with_chat(msgspec.structs.replace(chat, busy_until=until))

        await self.change(spot.visitor, change)

    async def message(self, place: Spot) -> Message | None:
        """Return a message with its whole text."""
        known = await self._read(place)
        if known is None:
            return None
        stored = known[0]
        text = stored.text if stored.length <= PIECE else await self.text(place, stored, 0)
        return as_shown(stored, text)

    async def held(self, spot: Spot) -> Spot:
        """Return the place under which a message is stored that is shown in a conversation, perhaps a branch."""
        return spot._replace(chat=(await self.head(spot.visitor)).holder(spot.chat, spot.number))

    async def peek(self, place: Spot) -> StoredMessage | None:
        """Return a message as it is stored, with the beginning of its text alone."""
        known = await self._read(place)
        return None if known is None else known[0]

    async def text(self, place: Spot, stored: StoredMessage, start: int) -> str:
        """Return the text of a message from a character on."""
        pieces: list[str] = []
        for number in range(start // PIECE, -(-stored.length // PIECE)):
            if number == 0:
                pieces.append(stored.text)
                continue
            value = await self._storage.get(_piece(place, stored, number))
            pieces.append("" if value is None else str(value.value))
        return "".join(pieces)[start - start // PIECE * PIECE :][: stored.length - start]

    async def page(self, spot: Spot, before: int | None, limit: int) -> Sequence[Message]:
        """Return the messages of a conversation before a number, or its last ones, in their order."""
        head = await self.head(spot.visitor)
        chat = head.chat(spot.chat)
        if chat is None:
            raise NotFoundError(NO_CHAT, param="conversation")
        end = chat.last + 1 if before is None else min(before, chat.last + 1)
        places = [
            Spot(spot.visitor, head.holder(chat.id, number), number) for number in range(max(1, end - limit), end)
        ]
        messages = [await self.message(place) for place in places]
        return [message for message in messages if message is not None and message.state != "removed"]

    async def drop(self, spot: Spot) -> None:
        """Remove a conversation with its branches, and their messages."""
        dropped: list[Chat] = []

        def without(head: Head) -> Head | None:
            dropped[:] = head.branches(spot.chat)
            for chat in dropped:
                head = head.without_chat(chat.id)
            return head if dropped else None

        await self.change(spot.visitor, without)
        for chat in dropped:
            for number in range(chat.shared + 1, chat.last + 1):
                await self._remove(Spot(spot.visitor, chat.id, number))

    async def _remove(self, place: Spot) -> None:
        known = await self._read(place)
        if known is not None:
            await self._remove_pieces(place, known[0])
        await self._storage.delete(place.path)

    async def _remove_pieces(self, place: Spot, stored: StoredMessage) -> None:
        for number in range(1, -(-stored.length // PIECE)):
            await self._storage.delete(_piece(place, stored, number))

    @contextmanager
    def listening(self, visitor: str) -> Generator[asyncio.Event]:
        """Have an event set whenever this process changes something of a visitor's."""
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

    async def _read(self, place: Spot) -> tuple[StoredMessage, str] | None:
        value = await self._storage.get(place.path)
        return None if value is None else (msgspec.convert(value.value, StoredMessage), value.version)

    async def _save(self, path: str, value: msgspec.Struct, version: str | None) -> str | None:
        return await self._storage.compare_and_set(
            path, version, msgspec.to_builtins(value), expires_at=self._now() + self._keep_seconds
        )

    async def _save_pieces(self, place: Spot, stored: StoredMessage, text: str, first: int) -> None:
        for number in range(max(first, 1), -(-len(text) // PIECE)):
            piece = text[number * PIECE : (number + 1) * PIECE]
            until = self._now() + self._keep_seconds
            await self._storage.set(_piece(place, stored, number), piece, expires_at=until)


def as_shown(stored: StoredMessage, text: str) -> Message:
    """Return a message as a page gets it, with a text."""
    fields: dict[str, Any] = {name: getattr(stored, name) for name in Message.__struct_fields__}
    return msgspec.structs.replace(Message(**fields), text=text)


def _piece(place: Spot, stored: StoredMessage, number: int) -> str:
    # Not by the number of the message: of two writers that want the same one, one gets another.
    return f"piece/{place.visitor}/{stored.key}/{stored.epoch}/{number}"


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait until an event is set, or for a time; and clear it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()
