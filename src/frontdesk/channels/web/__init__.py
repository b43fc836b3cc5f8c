"""The web chat: a page at `/chat`, on which visitors talk to the agent."""

from frontdesk.channels.web.channel import WebChatChannel

__all__ = ["WebChatChannel"]
