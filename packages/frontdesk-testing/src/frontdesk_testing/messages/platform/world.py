"""The people, chats and events of the platform."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile

import msgspec

from frontdesk.clock import SystemClock
from frontdesk.ids import RandomIds
from frontdesk_testing.messages.platform.records import EventState, Place, PrivateText, RefusedError, Said, Settings
from frontdesk_testing.messages.wire import Chat, Click, Event, Media, Mention, MessageIn, Receipt, ReplyTo, User

_HANDLES = re.compile(r"@(\w+)")


class World:
    """The whole state of the platform."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.me = User(user_id="bot-1", name="The desk", bot=True)
        self.users: dict[str, User] = {self.me.user_id: self.me}
        self.places: dict[str, Place] = {}
        self.events: dict[str, EventState] = {}
        self.open: dict[int, EventState] = {}
        """The events that were not acknowledged, by their numbers."""
        self.clicks: dict[str, str] = {}
        self.clicked_at: dict[str, float] = {}
        self.tokens: dict[str, tuple[Event, float]] = {}
        """The events of tokens, and until when they can be used."""
        self.private: list[PrivateText] = []
        self.changes = 0
        self._direct: dict[str, str] = {}
        self._ids = RandomIds()
        self._clock = SystemClock()
        self._changed = asyncio.Event()

    def now(self) -> float:
        """Return the time."""
        return self._clock.now()

    def new_id(self, prefix: str) -> str:
        """Return a new id, unique across restarts."""
        return self._ids.new(prefix)

    def change(self) -> None:
        """Signal that something has changed."""
        self.changes += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self, after: int, seconds: float) -> int:
        """Wait for a change after the one with this number."""
        if self.changes <= after:
            changed = self._changed
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), seconds)
        return self.changes

    def add_user(self, user_id: str, name: str, locale: str = "") -> User:
        """Add a user, with a direct chat."""
        user = User(user_id=user_id or self.new_id("user"), name=name, locale=locale)
        self.users[user.user_id] = user
        if user.user_id not in self._direct:
            chat = Chat(chat_id=self.new_id("chat"), kind="direct")
            self._direct[user.user_id] = chat.chat_id
            self.places[chat.chat_id] = Place(chat=chat, members={user.user_id, self.me.user_id})
        return user

    def add_group(self, title: str, members: Sequence[str], chat_id: str = "", admins: Sequence[str] = ()) -> Chat:
        """Add a group with the bot in it."""
        chat = Chat(chat_id=chat_id or self.new_id("chat"), kind="group", title=title)
        self.places[chat.chat_id] = Place(chat=chat, members={self.me.user_id, *members}, admins=set(admins))
        return chat

    def direct(self, user_id: str) -> str:
        """Return the direct chat of a user."""
        if user_id not in self._direct:
            raise RefusedError(404, "user_not_found", "There is no such user.")
        return self._direct[user_id]

    def place(self, chat_id: str) -> Place:
        """Return a chat."""
        if chat_id not in self.places:
            raise RefusedError(404, "chat_not_found", "There is no such chat.")
        return self.places[chat_id]

    def say(self, user_id: str, chat_id: str, message: Mapping[str, object]) -> Event:
        """Add a message of a user. Return its event."""
        place, sender = self._present(user_id, chat_id or self.direct(user_id))
        given = msgspec.convert(message, _Written)
        if given.thread_id and place.chat.kind != "group":
            raise RefusedError(400, "bad_request", "Only groups have threads.")
        posted = Said(
            message_id=self.new_id("msg"),
            user_id=user_id,
            text=given.text,
            media=given.media,
            thread_id=given.thread_id,
            album_id=given.album_id,
        )
        reply_to = None
        if given.reply_to:
            answered = place.messages[given.reply_to]
            posted.reply_to = answered.message_id
            reply_to = ReplyTo(message_id=answered.message_id, user_id=answered.user_id)
        place.messages[posted.message_id] = posted
        return self._add_event(
            "message", place, sender, thread_id=posted.thread_id, message=self._build_message(posted, reply_to)
        )

    def edit_own(self, user_id: str, chat_id: str, message_id: str, text: str) -> Event:
        """Change a message of a user. Return the event."""
        place, sender = self._present(user_id, chat_id)
        posted = place.messages[message_id]
        posted.text, posted.edits = text, posted.edits + 1
        return self._add_event(
            "edit", place, sender, thread_id=posted.thread_id, message=self._build_message(posted, None)
        )

    def click(self, user_id: str, chat_id: str, message_id: str, data: str) -> Event:
        """Press a button as a user. Every user who sees a message can press the buttons under it."""
        place, sender = self._present(user_id, chat_id)
        expects = self.settings.expects_cards
        click = Click(callback_id=self.new_id("call"), message_id=message_id, data=data, expects_card=expects)
        self.clicks[click.callback_id], self.clicked_at[click.callback_id] = "", self.now()
        pressed = place.messages.get(message_id)
        thread_id = "" if pressed is None else pressed.thread_id
        return self._add_event("click", place, sender, thread_id=thread_id, click=click)

    def report(self, chat_id: str, message_id: str, status: str, reason: str) -> Event:
        """Report a message of the bot as `delivered` or `failed`."""
        place = self.place(chat_id)
        if message_id not in place.messages or status not in ("delivered", "failed"):
            raise RefusedError(400, "bad_request", "There is no such message, or no such status.")
        return self._add_event(status, place, self.me, receipt=Receipt(message_id=message_id, reason=reason))

    def _present(self, user_id: str, chat_id: str) -> tuple[Place, User]:
        place = self.place(chat_id)
        if user_id not in self.users or user_id not in place.members:
            raise RefusedError(403, "not_a_member", "This user is not in the chat.")
        return place, self.users[user_id]

    def _build_message(self, said: Said, reply_to: ReplyTo | None) -> MessageIn:
        mentions = [
            Mention(user_id=self.me.user_id, offset=match.start(), length=len(match.group()))
            for match in _HANDLES.finditer(said.text)
            if match.group(1).lower() == self.settings.handle.lower()
        ]
        return MessageIn(
            message_id=said.message_id,
            text=said.text,
            media=said.media,
            mentions=tuple(mentions),
            reply_to=reply_to,
            album_id=said.album_id,
        )

    def _add_event(
        self,
        kind: str,
        place: Place,
        sender: User,
        *,
        thread_id: str = "",
        message: MessageIn | None = None,
        click: Click | None = None,
        receipt: Receipt | None = None,
    ) -> Event:
        event = Event(
            event_id=self.new_id("event"),
            number=len(self.events) + 1,
            type=kind,
            at=self.now(),
            chat=place.chat,
            sender=sender,
            admin=sender.user_id in place.admins,
            thread_id=thread_id,
            message=message,
            click=click,
            receipt=receipt,
            expects_reply=self.settings.expects_replies and receipt is None,
            reply_token="" if self.settings.token_seconds is None else self.new_id("token"),
        )
        if event.reply_token:
            self.tokens[event.reply_token] = (event, event.at + (self.settings.token_seconds or 0.0))
        state = EventState(event=event)
        self.events[event.event_id] = self.open[event.number] = state
        self.change()
        return event

    def acknowledge(self, state: EventState) -> None:
        """Record that an event was acknowledged."""
        state.state = "acknowledged"
        self.open.pop(state.event.number, None)
        self.change()

    def confirm(self, offset: int) -> None:
        """Acknowledge all events below an offset, as a poll does."""
        for number in list(takewhile(lambda number: number < offset, self.open)):
            self.acknowledge(self.open[number])

    def list_unconfirmed(self, offset: int, limit: int) -> list[Event]:
        """Return the events that were not acknowledged, in their order. Receipts are for webhooks only."""
        waiting = (
            state.event for number, state in self.open.items() if number >= offset and state.event.receipt is None
        )
        return list(islice(waiting, limit))


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    text: str = ""
    media: tuple[Media, ...] = ()
    reply_to: str = ""
    thread_id: str = ""
    album_id: str = ""
