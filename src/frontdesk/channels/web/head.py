"""The head of a visitor's mailbox: their conversations, and what has changed last. Pure."""

from typing import NamedTuple, Self

import msgspec

from frontdesk.channels.web.wire import MAIN

MOST_CHANGES = 200
"""The number of changes that a page may have missed; one that has missed more reads its conversation again."""
MOST_KEYS = 60
"""The number of keys in the head; earlier ones are values of their own."""
LONGEST_TITLE = 60
"""The number of characters of a title; all titles of a visitor are stored in one value."""


class Chat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation in the list."""

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
    """A change: its number, the conversation, and the message; 0 for the conversation itself."""

    number: int
    chat: str
    message: int


class SentKey(NamedTuple):
    """The message that was sent under a key."""

    key: str
    chat: str
    message: int


class LiveMessage(NamedTuple):
    """A message that is being written."""

    chat: str
    message: int


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations of a visitor, the numbers of the last changes, and the messages that are being written."""

    change: int = 0
    chats: tuple[Chat, ...] = (Chat(id=MAIN),)
    recent: tuple[Change, ...] = ()
    keys: tuple[SentKey, ...] = ()
    live: tuple[LiveMessage, ...] = ()

    def chat(self, chat_id: str) -> Chat | None:
        """Return a conversation; `None` if there is none of this id."""
        return next((chat for chat in self.chats if chat.id == chat_id), None)

    def holder(self, chat_id: str, number: int) -> str:
        """Return the conversation under which a message is stored that is shown in a conversation."""
        chat = self.chat(chat_id)
        while chat is not None and chat.base and number <= chat.shared:
            chat_id, chat = chat.base, self.chat(chat.base)
        return chat_id

    def root(self, chat_id: str) -> str:
        """Return the conversation of which a branch is one; a conversation without a base is its own."""
        chat = self.chat(chat_id)
        while chat is not None and chat.base:
            chat_id, chat = chat.base, self.chat(chat.base)
        return chat_id

    def branches(self, chat_id: str) -> list[Chat]:
        """Return a conversation and all that have branched off from it, directly or not."""
        family = {chat_id}
        # A branch is younger than its base.
        for chat in sorted(self.chats, key=lambda chat: chat.born):
            if chat.base in family:
                family.add(chat.id)
        return [chat for chat in self.chats if chat.id in family]

    def sent(self, key: str) -> SentKey | None:
        """Return the message that was sent under a key, if that was not long ago."""
        return next((sent for sent in self.keys if sent.key == key), None)

    @property
    def is_full_of_keys(self) -> bool:
        """Tell whether the next message that is sent takes the place of an earlier key."""
        return len(self.keys) >= MOST_KEYS

    def since(self, cursor: int) -> list[Change] | None:
        """Return the changes behind a cursor, each place once; `None` if too many came since, or it is unknown."""
        oldest = self.recent[0].number if self.recent else self.change + 1
        if cursor > self.change or cursor < oldest - 1:
            return None
        places = {(change.chat, change.message): change for change in self.recent if change.number > cursor}
        return list(places.values())

    def with_message(self, chat: Chat, key: str, *, live: bool, busy_until: float = 0.0) -> Self:
        """Return the head after the last message of a conversation was added."""
        if busy_until:
            chat = msgspec.structs.replace(chat, busy_until=busy_until)
        head = self._changed(chat.id, chat.last).with_chat(chat)
        return msgspec.structs.replace(
            head,
            keys=(*self.keys, SentKey(key, chat.id, chat.last))[-MOST_KEYS:],
            live=(*self.live, LiveMessage(chat.id, chat.last)) if live else self.live,
        )

    def with_change(self, chat_id: str, number: int, *, live: bool) -> Self:
        """Return the head after a message was changed."""
        others = tuple(place for place in self.live if place != (chat_id, number))
        still = (*others, LiveMessage(chat_id, number)) if live else others
        return msgspec.structs.replace(self._changed(chat_id, number), live=still)

    def with_chat(self, chat: Chat) -> Self:
        """Return the head with a conversation that is new or was changed."""
        others = tuple(other for other in self.chats if other.id != chat.id)
        return msgspec.structs.replace(self._changed(chat.id, 0), chats=(*others, chat))

    def without_chat(self, chat_id: str) -> Self:
        """Return the head without a conversation."""
        chats = tuple(chat for chat in self.chats if chat.id != chat_id)
        live = tuple(place for place in self.live if place.chat != chat_id)
        return msgspec.structs.replace(self._changed(chat_id, 0), chats=chats, live=live)

    def with_all_changed(self) -> Self:
        """Return the head after something has changed that is in none of its conversations alone."""
        return msgspec.structs.replace(self, change=self.change + 1, recent=())

    def _changed(self, chat_id: str, number: int) -> Self:
        change = self.change + 1
        recent = (*self.recent, Change(change, chat_id, number))[-MOST_CHANGES:]
        return msgspec.structs.replace(self, change=change, recent=recent)
