"""Optional abilities of chat channels: live messages, typing notices, and lookup of delivered messages."""

from abc import abstractmethod
from functools import cached_property

from frontdesk.chat.abilities import EditsMessages, chat_ability
from frontdesk.chat.channel import ChatChannel
from frontdesk.chat.growing import GrowingTexts
from frontdesk.chat.live_message import LiveMessage
from frontdesk.chat.messages import Destination
from frontdesk.interfaces.chat import (
    LivePlace,
    LiveView,
    PushPart,
    ShowsTyping,
    StreamsReplies,
    SupportsLiveLookup,
    SupportsPushLookup,
)


class LiveAnswers(EditsMessages, StreamsReplies, ChatChannel):
    """A platform that displays an answer while it is written, by editing its message.

    The messages have `OutboundMessage.live`. A message that no longer accepts edits, such as an expired stream, raises
    `PushNotEditableError` with the code `stream_expired`. The rest continues in a new message.
    """

    push_edits = True

    async def open_live(self, place: LivePlace, view: LiveView, key: str) -> str | None:
        return await (await self._live_answer(place)).open(view, key)

    async def update_live(self, place: LivePlace, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Display more of an answer. What does not fit into one message continues in another."""
        return await (await self._live_answer(place)).update(handles, view)

    async def _live_answer(self, place: LivePlace) -> LiveMessage:
        return LiveMessage(self, self.growing, place, await _build_destination(self, place))

    @cached_property
    def growing(self) -> GrowingTexts:
        return GrowingTexts(self.renderer)


@chat_ability
class FindsMessages(SupportsPushLookup, SupportsLiveLookup, ChatChannel):
    """A platform that can look up sent messages."""

    @abstractmethod
    async def find(self, key: str, destination: Destination) -> str | None:
        """Return the id of the message sent under a key, or None if the platform never received it."""

    async def find_push(self, part: PushPart) -> str | None:
        place = await self.destination(part.identity, part.conversation_id, part.kind, part.reference)
        return await self.find(part.idempotency_key, place)

    async def find_live(self, place: LivePlace, key: str) -> str | None:
        return await self.find(key, await _build_destination(self, place))


@chat_ability
class TypingNotices(ShowsTyping, ChatChannel):
    """A platform with typing notices."""

    typing_interval: float | None = 5.0
    """After how many seconds the platform has to be told again; `None` tells it once."""

    @abstractmethod
    async def typing(self, destination: Destination, *, on: bool) -> None:
        """Show or hide the typing notice."""

    async def show_typing(self, place: LivePlace) -> None:
        await self.typing(await _build_destination(self, place), on=True)

    async def end_typing(self, place: LivePlace) -> None:
        await self.typing(await _build_destination(self, place), on=False)


async def _build_destination(channel: ChatChannel, place: LivePlace) -> Destination:
    return await channel.destination(place.identity, place.conversation_id, place.kind, place.reference)
