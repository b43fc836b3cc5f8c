"""Profile 2, link first: on the chat, people come in once they have linked it with their account at work."""

import os

from frontdesk import AgentFrameworkHost, AuthPolicy, OneTimeCodeIdentityLinker
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.testing.messages import MessageChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"message {len(messages)}"


# The chat apps of the testing kit stand in for real ones: start each with `python -m frontdesk.testing.messages`.
work = MessageChannel(
    name="work",
    path="/work",
    platform_url=os.environ.get("WORK_URL", "http://127.0.0.1:8901"),
    token=os.environ.get("BOT_TOKEN", "the-token-of-the-bot"),
    intake="polling",
)
chat = MessageChannel(
    name="chat",
    path="/chat",
    platform_url=os.environ.get("CHAT_URL", "http://127.0.0.1:8902"),
    token=os.environ.get("BOT_TOKEN", "the-token-of-the-bot"),
    intake="polling",
    allowlist=AuthPolicy.require_link(),
)
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel(), work, chat], linker=OneTimeCodeIdentityLinker())
