"""A chat that a shop shows in a bubble on its own pages."""

import os

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel


async def echo(text: str) -> str:
    return f"You asked: {text}"


# The pages of the shop have one line more:
#   <script src="https://desk.example/chat/embed.js" defer></script>
page = WebChatChannel(
    title="Ask the shop",
    embed_origins=[os.environ.get("SHOP", "https://shop.example")],
)
# Visitors come from other machines, without credentials.
host = AgentFrameworkHost(target=echo, channels=[InvocationsChannel(), page], allow_anonymous=True)
