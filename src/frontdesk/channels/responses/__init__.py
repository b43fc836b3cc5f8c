"""The Responses door: clients of the OpenAI Responses API work here by changing their base URL."""

from frontdesk.channels.responses.channel import ResponsesChannel
from frontdesk.channels.responses.config import SocketLimits

__all__ = ["ResponsesChannel", "SocketLimits"]
