"""Settings of the web chat channel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import get_args

from frontdesk.auth.verifier import origin_findings
from frontdesk.channels.web.theme import WebTheme
from frontdesk.http.limits import DEFAULT_LIMITS, HttpLimits, limit_findings
from frontdesk.http.sse import DEFAULT_TIMES
from frontdesk.interfaces.access import Allowlist, Inherit
from frontdesk.interfaces.channel import ChannelCommand
from frontdesk.interfaces.chat import LiveMode, LiveTerms, ToolDetail
from frontdesk.interfaces.policies import HookPolicy, HookSettings
from frontdesk.models.operations import EventLimits
from frontdesk.models.request import OnBusy

LIVE_TERMS = LiveTerms(interval=0.15)
"""The pace at which an unfinished answer is stored, and so shown, unless the operator sets something else."""


@dataclass(frozen=True, kw_only=True)
class FeedLimits:
    max_open: int = 2_000
    """The number of WebSockets of all visitors; and of server-sent events and polls together, as many again."""
    max_open_per_caller: int = 20
    """The number of tabs that one visitor can have open, counted likewise."""
    max_message_bytes: int = 1_024
    """A page says nothing on its connection, so that a small message is large enough."""
    messages_per_minute: int = 60
    send_seconds: float = DEFAULT_TIMES.send_seconds
    look_seconds: float = 2.0
    """The seconds after which a connection looks for what another process has written."""
    poll_seconds: float = 20.0
    """The seconds for which a poll waits until there is something new."""
    stream_seconds: float = 120.0
    """The seconds after which a stream of server-sent events ends; the page opens another one."""

    def findings(self) -> list[str]:
        return [f"feed: {name} must be positive" for name, value in vars(self).items() if value <= 0]


@dataclass(frozen=True, kw_only=True)
class WebLook:
    """The appearance of the page, and the sites that may embed it."""

    theme: WebTheme = field(default_factory=WebTheme)
    embed_origins: tuple[str, ...] = ()
    """The origins of the sites that may show the page in a frame."""

    def findings(self) -> list[str]:
        return self.theme.findings() + origin_findings(self.embed_origins, setting="embed_origins", strict=True)


class WebChatSettings(HookSettings, total=False):
    """The keyword arguments of `WebChatChannel` besides its name and path."""

    title: str
    greeting: str
    prompts: Sequence[str]
    theme: WebTheme | None
    embed_origins: Sequence[str]
    allowlist: Allowlist | Inherit | None
    confidentiality_tier: str | None
    link_commands: Mapping[str, str | None] | None
    commands: Sequence[ChannelCommand]
    on_busy: OnBusy
    event_limits: EventLimits | None
    live: LiveMode
    live_terms: LiveTerms | None
    tools: ToolDetail
    keep_days: float
    max_text: int
    max_conversations: int
    max_files: int
    max_file_bytes: int
    body_timeout: float
    limits: HttpLimits | None
    feed: FeedLimits | None


@dataclass(frozen=True, kw_only=True)
class WebChatConfig(HookPolicy):
    """The values of `WebChatSettings`."""

    title: str = "Chat"
    """The name at the top of the page."""
    greeting: str = ""
    """A sentence above an empty conversation."""
    prompts: Sequence[str] = ()
    """Things to ask first, each a button in an empty conversation."""
    theme: WebTheme | None = None
    embed_origins: Sequence[str] = ()
    """The origins of the sites that may show the page in a frame."""
    allowlist: Allowlist | Inherit | None = "inherit"
    confidentiality_tier: str | None = None
    link_commands: Mapping[str, str | None] | None = None
    commands: Sequence[ChannelCommand] = ()
    on_busy: OnBusy = "queue"
    event_limits: EventLimits | None = None
    live: LiveMode = "auto"
    live_terms: LiveTerms | None = None
    """The pace at which an unfinished answer is stored and shown. `None` is `LIVE_TERMS`."""
    keep_days: float = 90.0
    """The days for which a message is kept on the page after it was last changed."""
    max_text: int = 32_000
    """The largest number of characters of a message that a visitor sends."""
    max_conversations: int = 100
    """The number of conversations that one visitor can have."""
    max_files: int = 5
    """The number of files that a visitor can send with a message; 0 takes none."""
    max_file_bytes: int = 10 * 1024 * 1024
    """The bytes of all files of a message together."""
    body_timeout: float = 30.0
    limits: HttpLimits | None = DEFAULT_LIMITS
    feed: FeedLimits | None = None
    """The limits of open pages. `None` is `FeedLimits()`."""
    tools: ToolDetail = "names"
    """The part that is shown of the tools that an answer uses."""

    @cached_property
    def look(self) -> WebLook:
        return WebLook(theme=self.theme or WebTheme(), embed_origins=tuple(self.embed_origins))

    @cached_property
    def feed_limits(self) -> FeedLimits:
        return self.feed or FeedLimits()

    def findings(self) -> list[str]:
        names = ("keep_days", "max_text", "max_conversations", "max_file_bytes", "body_timeout")
        wrong = [f"{name} must be positive" for name in names if getattr(self, name) <= 0]
        if self.max_conversations > _MAX_CONVERSATIONS:
            wrong.append(f"max_conversations must be {_MAX_CONVERSATIONS} at most")
        if self.max_files < 0:
            wrong.append("max_files must not be negative")
        if not self.title.strip():
            wrong.append("title must not be empty")
        if self.tools not in get_args(ToolDetail):
            wrong.append(f"tools must be one of {', '.join(get_args(ToolDetail))}, not {self.tools!r}")
        wrong += [f"prompts: {prompt!r} is empty" for prompt in self.prompts if not prompt.strip()]
        wrong += self.look.findings() + self.feed_limits.findings()
        return wrong + limit_findings(self.limits)


_MAX_CONVERSATIONS = 100
"""The number of conversations whose list fits into one stored value."""
