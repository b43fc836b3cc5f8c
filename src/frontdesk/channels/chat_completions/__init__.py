"""The Chat Completions door: `POST /v1/chat/completions`, the API that most clients speak."""

from frontdesk.channels.chat_completions.channel import ChatCompletionsChannel

__all__ = ["ChatCompletionsChannel"]
