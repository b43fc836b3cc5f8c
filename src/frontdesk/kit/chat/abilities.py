"""Optional abilities of a platform: a channel names an ability as a base class, and supplies its methods."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence

from frontdesk.kit.chat.commands import Menu
from frontdesk.kit.chat.messages import Card, Destination, InboundFile, OutboundMessage


class EditsMessages(ABC):
    """A platform on which messages that were sent can be changed and removed."""

    push_edits = True

    @abstractmethod
    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        """Change a message of ours; one without a text only loses its buttons.

        A platform's "not modified" is a `PushNotModifiedError`, "not found" and "too old" are a `PushNotEditableError`.
        """

    @abstractmethod
    async def delete(self, message_id: str, destination: Destination) -> None:
        """Remove a message of ours; one that is not there is a `PushNotEditableError`."""


class AnswersClicks(ABC):
    """A platform that shows a short text to the person who has pressed a button."""

    acknowledge_clicks_after: float | None = None
    """After how many seconds a click that still waits for its turn is acknowledged, on a platform that takes an answer
    for a while only; its outcome is then shown in the chat alone. `None` never does that."""

    @abstractmethod
    async def answer_click(self, callback_id: str, text: str) -> None:
        """Show a text to the person who pressed; an empty one only ends the waiting sign on the button."""


class Whispers(ABC):
    """A platform that gives a token with an event, with which something can be shown to its sender alone."""

    @abstractmethod
    async def whisper(self, token: str, text: str) -> None:
        """Show a text to the sender of an event alone."""


class PublishesMenus(ABC):
    """A platform that has menus of commands."""

    @abstractmethod
    async def publish(self, menu: Menu) -> None:
        """Set a menu: of everywhere, or of one scope and language."""


class RegistersWebhooks(ABC):
    """A platform that is told by the bot itself where to send events."""

    @abstractmethod
    async def register(self, url: str) -> None:
        """Set the address to which events are sent."""


class AnswersHandshakes(ABC):
    """A platform that asks a webhook with a GET request whether it is the right one."""

    @abstractmethod
    def handshake(self, query: Mapping[str, str]) -> bytes:
        """Return the answer, as plain text, or raise an `UnauthenticatedError`; nothing was verified before."""


class PollsEvents(ABC):
    """A platform whose events can be fetched."""

    @abstractmethod
    async def poll(self, offset: int) -> Sequence[tuple[int, bytes]]:
        """Wait for events from a number on, and return them with their numbers; this confirms all before it."""


class KeepsConnection(ABC):
    """A platform that sends its events over a connection, which one process over all replicas keeps open."""

    @abstractmethod
    async def listen(self, take: Callable[[bytes], Awaitable[None]]) -> None:
        """Open a connection, by a `PlatformSocket`, and hand each event on until it ends; then it is opened again.

        An event is acknowledged only once `take` has returned. What `take` raises must end the connection, so that the
        platform sends again what was not acknowledged.
        """


class FetchesFiles(ABC):
    """A platform whose files are not in its events."""

    @abstractmethod
    async def fetch(self, file: InboundFile, max_bytes: int) -> bytes:
        """Fetch a file, from the platform's own servers or through the guarded client; a `PushError` if that fails.

        One that is larger than `max_bytes` is a `FileTooLargeError`.
        """


class RepliesInResponses(ABC):
    """A platform that takes answers in the response to an event."""

    @abstractmethod
    def response(self, messages: Sequence[tuple[OutboundMessage, Destination, str]]) -> bytes:
        """Return the body of the response to an event, with messages, their places and keys."""

    @abstractmethod
    def card_response(self, card: Card) -> bytes:
        """Return the body of the response to a click that expects a card."""
