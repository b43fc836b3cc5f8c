"""The Chat Completions channel: `POST /v1/chat/completions`, supported by most clients."""

from frontdesk.channels.chat_completions.channel import ChatCompletionsChannel

__all__ = ["ChatCompletionsChannel"]
