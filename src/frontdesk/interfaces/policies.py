"""Settings that several kinds of channels share. Each group validates itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict, get_args

from frontdesk.interfaces.access import Allowlist, Inherit
from frontdesk.interfaces.chat import LiveMode
from frontdesk.interfaces.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.models.operations import EventLimits
from frontdesk.models.request import AcceptInGroup, CancelBy, ConversationScope, OnBusy


class AccessSettings(TypedDict, total=False):
    allowlist: Allowlist | Inherit | None
    require_link: bool
    confidentiality_tier: str | None


@dataclass(frozen=True, kw_only=True)
class AccessPolicy:
    """Who may use a channel, and how confidential its content is. The host validates it with its own rules."""

    allowlist: Allowlist | Inherit | None = "inherit"
    """The callers who may come in: as the host says, by a list or a rule of its own, or all whom it has verified."""
    require_link: bool = False
    """Whether an identity must also be linked."""
    confidentiality_tier: str | None = None
    """The confidentiality of the channel's content, in the operator's own words, for the host's `link_policy`."""


class HookSettings(TypedDict, total=False):
    run_hook: RunHook | None
    response_hook: ResponseHook | None
    stream_transform_hook: StreamTransformHook | None


@dataclass(frozen=True, kw_only=True)
class HookPolicy:
    """The operator's functions that change requests, results and updates."""

    run_hook: RunHook | None = None
    response_hook: ResponseHook | None = None
    stream_transform_hook: StreamTransformHook | None = None


class ChatPolicySettings(TypedDict, total=False):
    link_commands: Mapping[str, str | None]
    conversation_scope: ConversationScope
    accept_in_group: AcceptInGroup
    cancel_by: CancelBy
    on_busy: OnBusy
    gather_seconds: float
    album_seconds: float
    event_limits: EventLimits | None
    live: LiveMode


@dataclass(frozen=True, kw_only=True)
class ChatPolicy:
    """How a channel treats the messages of people."""

    link_commands: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Other names for the host's `link`, `connect`, `unlink` and `whoami`. `None` hides a command."""
    conversation_scope: ConversationScope = "per_user_per_conversation"
    """The session to which a message belongs."""
    accept_in_group: AcceptInGroup = "mention_only"
    """The messages of a group that are answered."""
    cancel_by: CancelBy = "sender"
    """The turns that a person can cancel where a group shares its session: their own, or those of anyone."""
    on_busy: OnBusy = "queue"
    """Whether a new message waits for the answer to the sender's last one, or cancels it and keeps its question."""
    gather_seconds: float = 0.0
    """The seconds for which the host waits for more messages of the sender, and answers them in one turn."""
    album_seconds: float = 0.0
    """The seconds for which the host waits for the rest of an album. 0 on a channel that does not know albums."""
    event_limits: EventLimits | None = None
    """The limits of what people may send. `None` is `EventLimits()`."""
    live: LiveMode = "auto"
    """Whether answers are shown while they are written, on a channel that can show them."""

    def findings(self) -> list[str]:
        """Return the validation findings, one line each."""
        wrong = [
            f"{name} must be {_either(allowed)}, not {given!r}"
            for name, allowed in _CHOICES.items()
            if (given := getattr(self, name)) not in allowed
        ]
        if self.cancel_by == "anyone" and self.conversation_scope != "per_conversation":
            wrong.append("cancel_by='anyone' has no effect without conversation_scope='per_conversation'")
        for name, seconds in (("gather_seconds", self.gather_seconds), ("album_seconds", self.album_seconds)):
            if seconds < 0:
                wrong.append(f"{name} must not be negative, and is {seconds!r}")
        limits: object = self.event_limits
        if isinstance(limits, EventLimits):
            wrong += [f"event_limits: {finding}" for finding in limits.findings()]
        elif limits is not None:
            wrong.append(f"event_limits: {limits!r} is not EventLimits(...)")
        return wrong


_CHOICES: dict[str, tuple[str, ...]] = {
    "conversation_scope": get_args(ConversationScope),
    "accept_in_group": get_args(AcceptInGroup),
    "cancel_by": get_args(CancelBy),
    "on_busy": get_args(OnBusy),
    "live": get_args(LiveMode),
}


def _either(allowed: tuple[str, ...]) -> str:
    *first, last = map(repr, allowed)
    return f"{', '.join(first)} or {last}"
