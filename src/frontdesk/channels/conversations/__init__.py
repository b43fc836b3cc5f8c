"""The Conversations door: conversations that callers make, and that responses can belong to."""

from frontdesk.channels.conversations.channel import ConversationsChannel

__all__ = ["ConversationsChannel"]
