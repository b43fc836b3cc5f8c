"""Settings of the Telegram channel."""

import hmac
import re
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from frontdesk.channels.telegram.client import API_URL
from frontdesk.chat.config import ChatConfig, ChatSettings
from frontdesk.secret import Secret

MIN_SECRET_LENGTH, MAX_SECRET_LENGTH = 16, 256
MIN_TOKEN_LENGTH = 20
_TOKEN = re.compile(r"[0-9]++:[A-Za-z0-9_-]++")
_SECRET = re.compile(r"[A-Za-z0-9_-]++")
_PORTS = (None, 443, 80, 88, 8443)
_PURPOSE = b"frontdesk telegram webhook secret"
_MAX_POLL_SECONDS = 50.0


class TelegramSettings(ChatSettings, total=False):
    """The keyword arguments of `TelegramChannel` besides its tokens, name and path."""

    api_url: str
    call_timeout: float
    max_connections: int
    remove_webhook: bool
    link_previews: bool
    stop_button: str
    drafts: bool
    rich_messages: bool
    max_messages: int | None


@dataclass(frozen=True, kw_only=True)
class TelegramConfig(ChatConfig):
    positive: ClassVar[tuple[str, ...]] = (*ChatConfig.positive, "call_timeout")

    bot_token: Secret | None
    """The token that BotFather gave."""
    secret_token: Secret | None = None
    """The secret that the platform sends with every update of the webhook: 16 to 256 of A-Z, a-z, 0-9, _ and -. Without
    one it is derived from the token."""
    api_url: str = API_URL
    """The server of the Bot API; another one may be on this machine, and without TLS."""
    call_timeout: float = 10.0
    """The seconds that a call may take; after that nobody knows whether it arrived."""
    max_connections: int = 40
    """The most updates that the platform sends to the webhook at once, 1 to 100."""
    remove_webhook: bool = False
    """Whether a webhook that the bot still has is removed, so that its updates can be fetched."""
    link_previews: bool = False
    """Whether links are shown with a preview. The platform fetches a page for that as soon as an answer names it."""
    stop_button: str = "⏹"
    """The label of the button that stops an answer while it is written; none if it is empty."""
    drafts: bool = False
    """Whether answers in private chats are shown as drafts while they are written, which the platform can stop itself;
    otherwise as messages that are edited."""
    rich_messages: bool = False
    """Whether answers are sent as rich messages, with headings, lists and tables as the platform shows them; one that
    it refuses is sent as a text."""
    max_messages: int | None = None
    """The most messages of the text of an answer; a longer one is the first of them and a file with all of it."""

    def findings(self) -> list[str]:
        wrong = super().findings()
        token = "" if self.bot_token is None else self.bot_token.reveal()
        if len(token) < MIN_TOKEN_LENGTH or not _TOKEN.fullmatch(token):
            wrong.append("bot_token must be the token that BotFather gave, such as 123456:ABC-DEF...")
        if not self.api_url.startswith(("http://", "https://")):
            wrong.append("api_url must begin with http:// or https://")
        if not 1 <= self.max_connections <= 100:
            wrong.append("max_connections must be from 1 to 100")
        if self.max_messages is not None and self.max_messages < 1:
            wrong.append("max_messages must be at least 1")
        own = {"webhook": self._webhook_findings, "polling": self._list_polling_findings}
        return wrong + (own[self.transport]() if self.transport in own else [])

    def _webhook_findings(self) -> list[str]:
        wrong: list[str] = []
        secret = None if self.secret_token is None else self.secret_token.reveal()
        if secret is not None and not (
            MIN_SECRET_LENGTH <= len(secret) <= MAX_SECRET_LENGTH and _SECRET.fullmatch(secret)
        ):
            wrong.append(
                f"secret_token must have {MIN_SECRET_LENGTH} to {MAX_SECRET_LENGTH} of the characters "
                "A-Z, a-z, 0-9, _ and -: whoever knows it can send updates"
            )
        if self.remove_webhook:
            wrong.append("remove_webhook has no effect with transport='webhook'")
        if self.public_url is not None and self.api_url == API_URL and not _is_reachable(self.public_url):
            wrong.append(
                "public_url must be https, at port 443, 80, 88 or 8443: the platform sends updates to no other"
            )
        return wrong

    def _list_polling_findings(self) -> list[str]:
        wrong: list[str] = []
        if self.secret_token is not None:
            wrong.append("secret_token has no effect with transport='polling'")
        if self.poll_seconds > _MAX_POLL_SECONDS:
            wrong.append(f"poll_seconds must be {_MAX_POLL_SECONDS:g} at most")
        return wrong

    def webhook_secret(self) -> Secret | None:
        """Return the webhook secret: the configured one, or one derived from the token."""
        if self.secret_token is not None or self.bot_token is None:
            return self.secret_token
        return Secret(hmac.new(self.bot_token.reveal().encode(), _PURPOSE, "sha256").hexdigest())

    def warnings(self) -> list[str]:
        """Return warnings about suboptimal settings, one line each."""
        if self.transport == "webhook" and self.public_url is None:
            return ["without public_url the webhook is not registered: updates come only if setWebhook was called"]
        return []


def _is_reachable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and parts.port in _PORTS
    except ValueError:
        return False
