"""Optional abilities of platforms. A channel declares an ability as a base class and implements its methods."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence

from frontdesk.chat.commands import Menu
from frontdesk.chat.messages import Card, Destination, InboundFile, Invoke, InvokeAnswer, OutboundMessage
from frontdesk.errors import RequestError
from frontdesk.interfaces.abilities import Abilities
from frontdesk.models.identity import Caller

chat_ability = Abilities()


@chat_ability
class EditsMessages(ABC):
    push_edits = True

    @abstractmethod
    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        """Edit the text and the buttons of one of our messages. There is always a text.

        "Not modified" raises `PushNotModifiedError`. "Not found" and "too old" raise `PushNotEditableError`.
        """

    @abstractmethod
    async def delete(self, message_id: str, destination: Destination) -> None:
        """Delete one of our messages. A missing one raises `PushNotEditableError`."""


@chat_ability
class RemovesButtons(ABC):
    """A platform that can remove the buttons of a message and keep its text."""

    @abstractmethod
    async def remove_buttons(self, message_id: str, destination: Destination) -> None:
        """Remove only the buttons of one of our messages. Errors are those of `EditsMessages.edit`."""


@chat_ability
class AnswersClicks(ABC):
    """A platform that can display a short text to the person who clicked a button."""

    acknowledge_clicks_after: float | None = None
    """After how many seconds a click that still waits for its turn is acknowledged, on a platform that takes an answer
    for a while only; its outcome is then shown in the chat alone. `None` never does that."""

    @abstractmethod
    async def answer_click(self, callback_id: str, text: str) -> None:
        """Show a text to the person who clicked. An empty text only ends the loading indicator of the button."""


@chat_ability
class SendsEphemeral(ABC):
    """A platform whose events contain a token for ephemeral messages to the sender."""

    @abstractmethod
    async def whisper(self, token: str, text: str) -> None:
        """Send an ephemeral message to the sender of an event."""


@chat_ability
class PublishesMenus(ABC):
    """A platform with command menus."""

    @abstractmethod
    async def publish(self, menu: Menu) -> None:
        """Set a menu, either the default one or one of a scope and language."""


@chat_ability
class RegistersWebhooks(ABC):
    """A platform on which the bot registers its own webhook."""

    @abstractmethod
    async def register(self, url: str) -> None:
        """Set the webhook URL."""


@chat_ability
class AnswersHandshakes(ABC):
    """A platform that verifies a webhook by a GET request."""

    @abstractmethod
    def handshake(self, query: Mapping[str, str]) -> bytes:
        """Return the plain text response, or raise `UnauthenticatedError`. The request was not verified before."""


@chat_ability
class PollsEvents(ABC):
    """A platform that supports polling for events."""

    @abstractmethod
    async def poll(self, offset: int) -> Sequence[tuple[int, bytes]]:
        """Wait for events from an offset on and return them with their numbers. This confirms all events before it."""


@chat_ability
class UsesGateway(ABC):
    @abstractmethod
    async def listen(self, take: Callable[[bytes], Awaitable[None]]) -> None:
        """Open a connection, by a `PlatformSocket`, and pass on each event until it ends. Then it is opened again.

        An event is acknowledged only once `take` has returned. Errors of `take` must end the connection, so that the
        platform sends unacknowledged events again.
        """


@chat_ability
class FetchesFiles(ABC):
    """A platform whose events do not contain the files."""

    @abstractmethod
    async def fetch(self, file: InboundFile, max_bytes: int) -> bytes:
        """Fetch a file, from the platform's own servers or through the guarded client. Raise `PushError` on failure.

        Raise `FileTooLargeError` for a file larger than `max_bytes`.
        """


@chat_ability
class RepliesSynchronously(ABC):
    """A platform that accepts answers in the response to an event."""

    @abstractmethod
    def response(self, messages: Sequence[tuple[OutboundMessage, Destination, str]]) -> bytes:
        """Return the response body for messages with their destinations and keys."""

    @abstractmethod
    def card_response(self, card: Card) -> bytes:
        """Return the response body with a card, for clicks that expect one."""


@chat_ability
class AnswersAtOnce(ABC):
    """A platform with events whose HTTP response is the answer (`Invoke`). The platform may send them repeatedly."""

    @abstractmethod
    async def answer_now(self, invoke: Invoke, caller: Caller) -> InvokeAnswer | None:
        """Return the response to an event of a verified person who may use the channel. None is a 501.

        Nothing is stored before or after it. A `RequestError` is answered like any other.
        """

    def refuse_now(self, invoke: Invoke, error: RequestError) -> InvokeAnswer | None:
        """Return the response to a person without access. None is the channel's usual error response."""
        return None
