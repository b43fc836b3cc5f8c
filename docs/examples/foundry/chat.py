"""A chat channel under `/invocations`, the only path by which Foundry passes on what a webhook sends.

Telegram can't sign in to Foundry, so that a relay of yours takes its updates, checks their secret, and posts them to
the agent's endpoint. Foundry drops most headers, and passes on those that begin with `x-client-`: the relay sends the
secret once more in one of these.
"""

import hmac
import os
from pathlib import Path

from frontdesk import AgentFrameworkHost
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.errors import UnauthenticatedError

HEADER = b"x-client-telegram-secret"
SECRET = os.environ["TELEGRAM_SECRET"]


class RelayedTelegramChannel(TelegramChannel):
    """Telegram, by way of a relay and of Foundry."""

    webhook_path = "/"
    signature_headers = (HEADER,)

    async def verify(self, headers, body, now):
        """Refuse what does not come from the relay."""
        if not hmac.compare_digest(SECRET.encode(), headers.get(HEADER, b"")):
            raise UnauthenticatedError("The secret of the relay is wrong.")


async def concierge(text: str) -> str:
    return f"You said: {text}"


telegram = RelayedTelegramChannel(
    bot_token=os.environ["TELEGRAM_TOKEN"],
    secret_token=SECRET,
    path="/invocations",
    api_url=os.environ.get("TELEGRAM_URL", "https://api.telegram.org"),
)

# What waits to be sent waits for the next request when the sandbox sleeps. With a store and a runner on Postgres a
# `frontdesk worker` elsewhere sends it.
host = AgentFrameworkHost(
    target=concierge, channels=[telegram], state_dir=Path.home() / "state", allow_in_process_runner=True
)
