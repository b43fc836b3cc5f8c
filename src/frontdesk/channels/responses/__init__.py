"""The Responses door: clients of the OpenAI Responses API work here by changing their base URL."""

from frontdesk.channels.responses.channel import ResponsesChannel

__all__ = ["ResponsesChannel"]
