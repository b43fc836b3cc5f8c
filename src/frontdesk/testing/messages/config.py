"""The settings of an operator."""

from dataclasses import dataclass, field
from typing import Literal

from frontdesk.abc.live import LiveMode, LiveTerms
from frontdesk.kit.auth.secrets import Secret

HowEventsCome = Literal["webhook", "polling"]
OnEdit = Literal["ignore", "answer"]
SHORTEST_SECRET = 16
_POSITIVE = (
    "signature_seconds",
    "max_body_bytes",
    "body_timeout",
    "poll_seconds",
    "call_timeout",
    "reply_seconds",
    "text_limit",
    "token_seconds",
    "receipt_seconds",
)


@dataclass(frozen=True, kw_only=True)
class MessageConfig:
    """The settings of the channel; they check themselves."""

    platform_url: str
    token: Secret | None
    secret: Secret | None = None
    intake: HowEventsCome = "webhook"
    public_url: str | None = None
    signature_seconds: float = 300.0
    max_body_bytes: int = 2 * 1024 * 1024
    body_timeout: float = 10.0
    poll_seconds: float = 20.0
    call_timeout: float = 10.0
    reply_seconds: float = 5.0
    """For how long an event that expects a reply is kept waiting for it; what comes later is sent."""
    text_limit: int = 4096
    on_edit: OnEdit = "ignore"
    private_replies: bool = False
    """Whether the tokens of events are kept, to show something to their senders alone; the host needs a `seal_key`."""
    token_seconds: float = 900.0
    """For how long the platform takes a token."""
    receipt_seconds: float = 60.0
    """For how long a receipt for a message that nobody knows is refused, so that the platform sends it again."""
    live: LiveMode = "off"
    live_terms: LiveTerms = field(default_factory=LiveTerms)
    register_native_commands: bool = True
    """Whether the platform's menu is set at start; otherwise it stays as it is."""

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        wrong: list[str] = []
        if not self.platform_url.startswith(("http://", "https://")):
            wrong.append("platform_url must begin with http:// or https://")
        if self.token is None:
            wrong.append("token must not be empty")
        if self.intake not in ("webhook", "polling"):
            wrong.append(f"intake must be 'webhook' or 'polling', not {self.intake!r}")
        if self.intake == "webhook" and (self.secret is None or len(self.secret.reveal()) < SHORTEST_SECRET):
            wrong.append(f"secret must have {SHORTEST_SECRET} characters at least: whoever knows it can send events")
        if self.intake == "polling" and self.public_url is not None:
            wrong.append("public_url has no effect with intake='polling'")
        if self.on_edit not in ("ignore", "answer"):
            wrong.append(f"on_edit must be 'ignore' or 'answer', not {self.on_edit!r}")
        return wrong + [f"{name} must be positive" for name in _POSITIVE if getattr(self, name) <= 0]
