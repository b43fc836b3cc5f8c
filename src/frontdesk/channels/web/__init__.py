"""The web chat: a page at `/chat`, on which visitors talk to the agent."""

from frontdesk.channels.web.channel import WebChatChannel
from frontdesk.channels.web.theme import WebTheme

__all__ = ["WebChatChannel", "WebTheme"]
