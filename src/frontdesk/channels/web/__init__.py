"""The web chat channel: a page at `/chat` where visitors chat with the agent."""

from frontdesk.channels.web.channel import WebChatChannel
from frontdesk.channels.web.theme import WebTheme

__all__ = ["WebChatChannel", "WebTheme"]
