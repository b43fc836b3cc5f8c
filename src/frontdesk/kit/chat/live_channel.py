"""Abilities of a platform that the host asks for: to show an answer while it is written, and to find what arrived."""

from abc import abstractmethod

from frontdesk.abc.live import LivePlace, LiveView
from frontdesk.abc.push import PushPart
from frontdesk.kit.chat.abilities import EditsMessages
from frontdesk.kit.chat.channel import ChatChannel
from frontdesk.kit.chat.live import LiveAnswer
from frontdesk.kit.chat.messages import Destination


class LiveAnswers(EditsMessages, ChatChannel):
    """A platform on which an answer is shown while it is written, by edits of its message.

    The messages come with `OutboundMessage.live`. A message that takes no more updates, such as a stream that has
    expired, is a `PushNotEditableError` with the code `stream_expired`; what is still to be said goes on in a new one.
    """

    push_edits = True

    async def open_live(self, place: LivePlace, view: LiveView, key: str) -> str | None:
        """Send the first message of an answer that is being written; return its id."""
        return await (await self._live_answer(place)).open(place, view, key)

    async def update_live(self, place: LivePlace, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Show more of an answer; what does not fit into one message goes on in another."""
        return await (await self._live_answer(place)).update(handles, view)

    async def _live_answer(self, place: LivePlace) -> LiveAnswer:
        return LiveAnswer(self, self.renderer, await _place_of(self, place))


class FindsMessages(ChatChannel):
    """A platform that can be asked what became of a message."""

    @abstractmethod
    async def find(self, key: str, destination: Destination) -> str | None:
        """Return the id of the message that was sent under a key; `None` if the platform never got it."""

    async def find_push(self, part: PushPart) -> str | None:
        """Return the id of a message that arrived; `None` if the platform never got it."""
        place = await self.destination(part.identity, part.conversation_id, part.kind, part.reference)
        return await self.find(part.idempotency_key, place)

    async def find_live(self, place: LivePlace, key: str) -> str | None:
        """Return the id of the first message of an answer; `None` if the platform never got it."""
        return await self.find(key, await _place_of(self, place))


class TypingNotices(ChatChannel):
    """A platform that shows that an answer is being written."""

    typing_interval: float | None = 5.0
    """After how many seconds the platform has to be told again; `None` tells it once."""

    @abstractmethod
    async def typing(self, destination: Destination, *, on: bool) -> None:
        """Show that an answer is being written; or, if it is not `on`, that it is not any more."""

    async def show_typing(self, place: LivePlace) -> None:
        """Show it."""
        await self.typing(await _place_of(self, place), on=True)

    async def end_typing(self, place: LivePlace) -> None:
        """End it."""
        await self.typing(await _place_of(self, place), on=False)


async def _place_of(channel: ChatChannel, place: LivePlace) -> Destination:
    return await channel.destination(place.identity, place.conversation_id, place.kind, place.reference)
