"""Settings that all chat channels share."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from frontdesk.chat.media import MediaLimits
from frontdesk.interfaces.channel import ChannelCommand
from frontdesk.interfaces.chat import LiveTerms, PushTerms
from frontdesk.interfaces.hooks import FeedbackHook
from frontdesk.interfaces.policies import (
    AccessPolicy,
    AccessSettings,
    ChatPolicy,
    ChatPolicySettings,
    HookPolicy,
    HookSettings,
)
from frontdesk.models.delivery import DestinationKind
from frontdesk.secret import Secret

Transport = Literal["webhook", "polling", "connection"]
OnEdit = Literal["ignore", "answer"]
_CHOICES: dict[str, tuple[str, ...]] = {
    "transport": ("webhook", "polling", "connection"),
    "on_edit": ("ignore", "answer"),
}


class ChatSettings(AccessSettings, HookSettings, ChatPolicySettings, total=False):
    """The keyword arguments of every chat channel."""

    transport: Transport
    public_url: str | None
    on_edit: OnEdit
    max_body_bytes: int
    body_timeout: float
    poll_seconds: float
    reply_seconds: float
    private_replies: bool
    token_seconds: float
    receipt_seconds: float
    register_native_commands: bool
    greet_groups: bool
    media: MediaLimits
    live_terms: LiveTerms
    commands: Sequence[ChannelCommand]
    push_terms: PushTerms | None
    feedback_hook: FeedbackHook | None
    scopes: Collection[DestinationKind]
    previous_secrets: Sequence[str | Secret]


@dataclass(frozen=True, kw_only=True)
class ChatConfig(AccessPolicy, HookPolicy, ChatPolicy):
    """The values of `ChatSettings`. A subclass adds the settings of a platform."""

    positive: ClassVar[tuple[str, ...]] = (
        "max_body_bytes",
        "body_timeout",
        "poll_seconds",
        "reply_seconds",
        "token_seconds",
        "receipt_seconds",
    )
    """The names of the settings that must be above 0; a subclass adds its own."""

    transport: Transport = "webhook"
    """Whether the platform sends events to a webhook, they are fetched, or they come over a connection."""
    public_url: str | None = None
    """The URL at which the platform reaches the host; the webhook is registered there at the start."""
    on_edit: OnEdit = "ignore"
    """The effect of an edited message: none, or the same as a new message."""
    max_body_bytes: int = 2 * 1024 * 1024
    body_timeout: float = 10.0
    poll_seconds: float = 20.0
    """The seconds that the platform may wait with its answer to a poll until something happens."""
    reply_seconds: float = 5.0
    """For how long an event that expects a reply is kept waiting for it; what comes later is sent."""
    private_replies: bool = False
    """Whether the tokens of events are kept, to show something to their senders alone; the host needs a `seal_key`."""
    token_seconds: float = 900.0
    """For how long the platform takes a token."""
    receipt_seconds: float = 60.0
    """For how long a receipt for a message that nobody knows is refused, so that the platform sends it again."""
    register_native_commands: bool = True
    """Whether the platform's menu is set at start; otherwise it stays as it is."""
    greet_groups: bool = False
    """Whether the bot says hello, with its commands, in a group that it is added to."""
    media: MediaLimits = field(default_factory=MediaLimits)
    """The limits of files: their number and their size."""

    album_seconds: float = 1.0
    live_terms: LiveTerms = field(default_factory=LiveTerms)
    commands: Sequence[ChannelCommand] = ()
    """Commands beside the usual ones; one of the same name takes the place of a usual one."""
    push_terms: PushTerms | None = None
    """The pace of sending. `None` is that of the channel's class."""
    feedback_hook: FeedbackHook | None = None
    """Receives what people think of answers, on a platform with such buttons or reactions."""
    scopes: Collection[DestinationKind] = ("direct", "group")
    """The chats whose events are read. Two channels of one bot can so have settings and tiers of their own."""
    previous_secrets: Sequence[str | Secret] = ()
    """Signing secrets that are accepted beside the present one while it is rotated."""

    def __post_init__(self) -> None:
        if not isinstance(self.previous_secrets, (str, Secret)):
            # No representation of the settings shows them.
            kept = tuple(
                Secret(given) if given and isinstance(given, str) else given for given in self.previous_secrets
            )
            object.__setattr__(self, "previous_secrets", kept)

    def findings(self) -> list[str]:
        """Return the configuration errors, one line each. Settings common to all channels are checked by the host."""
        wrong = [
            f"{name} must be {' or '.join(map(repr, allowed))}, not {getattr(self, name)!r}"
            for name, allowed in _CHOICES.items()
            if getattr(self, name) not in allowed
        ]
        if self.public_url is not None and not self.public_url.startswith(("http://", "https://")):
            wrong.append("public_url must begin with http:// or https://")
        if self.transport in ("polling", "connection") and self.public_url is not None:
            wrong.append(f"public_url has no effect with transport={self.transport!r}")
        wrong += [f"{name} must be positive" for name in self.positive if getattr(self, name) <= 0]
        kinds, scopes = get_args(DestinationKind), self.scopes
        if isinstance(scopes, str) or not scopes or not set(scopes) <= set(kinds):
            wrong.append(f"scopes must be one or both of {' and '.join(map(repr, kinds))}, not {scopes!r}")
        elif self.greet_groups and "group" not in scopes:
            wrong.append("greet_groups has no effect without 'group' in scopes")
        if isinstance(self.previous_secrets, (str, Secret)) or not all(self.previous_secrets):
            wrong.append("previous_secrets must be a list of secrets that are not empty")
        return wrong + self.media.findings()
