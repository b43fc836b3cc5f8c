"""The settings of an operator."""

from dataclasses import dataclass
from typing import ClassVar

from frontdesk.chat.config import ChatConfig, ChatSettings
from frontdesk.interfaces.chat import LiveMode
from frontdesk.secret import Secret

MIN_SECRET_LENGTH = 16


class MessageSettings(ChatSettings, total=False):
    """The keyword arguments of `MessageChannel` besides its address, secrets, name and path."""

    signature_seconds: float
    call_timeout: float
    text_limit: int


@dataclass(frozen=True, kw_only=True)
class MessageConfig(ChatConfig):
    """The settings of the channel. `findings` validates them."""

    positive: ClassVar[tuple[str, ...]] = (*ChatConfig.positive, "signature_seconds", "call_timeout", "text_limit")

    platform_url: str
    token: Secret | None
    secret: Secret | None = None
    signature_seconds: float = 300.0
    call_timeout: float = 10.0
    text_limit: int = 4096
    live: LiveMode = "off"

    def findings(self) -> list[str]:
        """Return the configuration errors, one line each."""
        wrong: list[str] = []
        if not self.platform_url.startswith(("http://", "https://")):
            wrong.append("platform_url must begin with http:// or https://")
        if self.token is None:
            wrong.append("token must not be empty")
        if self.transport == "webhook" and (self.secret is None or len(self.secret.reveal()) < MIN_SECRET_LENGTH):
            wrong.append(f"secret must have {MIN_SECRET_LENGTH} characters at least: whoever knows it can send events")
        return wrong + super().findings()
