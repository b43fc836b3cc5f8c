"""The base of all chat channels: a platform supplies a few methods, and the base does the rest."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import msgspec

from frontdesk.abc.channel import Channel
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.chat.config import ChatConfig
from frontdesk.kit.chat.markdown import Dialect, Plain, Unit
from frontdesk.kit.chat.messages import BotIdentity, Destination, Inbound, OutboundMessage
from frontdesk.kit.http.asgi import Headers


class ChatChannel(Channel):
    """Answers people on a platform: in direct chats, groups and threads, to messages, commands and buttons.

    A subclass supplies the abstract methods, and names the abilities of `kit/chat/abilities.py` and
    `kit/chat/live_channel.py` that its platform has as further base classes.
    """

    session_family: ClassVar[Literal["caller_supplied", "host_tracked"]] = "host_tracked"
    # It accepts only what the platform has signed.
    takes_http: ClassVar[bool] = False
    dialect: ClassVar[Dialect | None] = Plain()
    """How answers in Markdown are shown; `None` sends them as the agent wrote them."""
    text_limit: int = 4096
    """How long the text of one message may be."""
    text_unit: ClassVar[Unit] = "characters"
    """The unit in which the platform counts."""
    has_buttons: ClassVar[bool] = True
    """Whether the platform shows buttons; otherwise people answer questions with words."""
    webhook_path: ClassVar[str] = "/events"
    """The path below the channel's own to which the platform sends events."""
    signature_headers: ClassVar[tuple[bytes, ...]] = ()
    """The headers, in lower case, without which a request is refused before its body is read."""

    def __init__(self, config: ChatConfig, *, name: str, path: str) -> None:
        """Make a channel with the settings that all chat channels share."""
        self.name, self.path, self.chat_config = name, path, config
        self.allowlist, self.require_link = config.allowlist, config.require_link
        self.confidentiality_tier, self.link_commands = config.confidentiality_tier, config.link_commands
        self.conversation_scope, self.accept_in_group = config.conversation_scope, config.accept_in_group
        self.cancel_by, self.on_busy, self.gather_seconds = config.cancel_by, config.on_busy, config.gather_seconds
        self.event_limits, self.live, self.live_terms = config.event_limits, config.live, config.live_terms
        self.run_hook, self.response_hook = config.run_hook, config.response_hook
        self.stream_transform_hook = config.stream_transform_hook
        self.needs_seal_key = config.private_replies

    @abstractmethod
    async def connect(self) -> BotIdentity:
        """Ask the platform who we are; a `PushError` if it is away, and it is asked again."""

    @abstractmethod
    def verify(self, headers: Headers, body: bytes, now: float) -> None:
        """Refuse a body that the platform did not sign, or signed at another time, with an `UnauthenticatedError`."""

    @abstractmethod
    def read(self, event: bytes, bot: BotIdentity) -> Inbound | None:
        """Read an event; `None` if it is none of ours, an `InvalidRequestError` if it can't be understood. Pure."""

    @abstractmethod
    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str | None:
        """Send a message; return its id, by which it can be changed later, or raise a `PushError`.

        The key is the same however often the message is sent, for platforms that drop one that they have.
        """

    @abstractmethod
    async def direct(self, user_id: str) -> Destination:
        """Return the direct chat with a person."""

    def challenge(self, body: bytes) -> bytes | None:
        """Return the response to a signed challenge of the platform; `None` if a body is an event."""
        return None

    def events(self, body: bytes) -> Sequence[bytes]:
        """Return the events of a body, for a platform that sends several at once."""
        return (body,)

    def payload(self, event: bytes) -> Any:
        """Return an event as JSON for hooks and commands, without what is large or secret."""
        try:
            return msgspec.json.decode(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequestError(f"The event can't be understood: {error}.") from None

    async def close(self) -> None:
        """Close the connections to the platform."""
        return
