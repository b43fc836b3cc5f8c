"""The Conversations channel: conversations that callers create, and that responses can belong to."""

from frontdesk.channels.conversations.channel import ConversationsChannel

__all__ = ["ConversationsChannel"]
