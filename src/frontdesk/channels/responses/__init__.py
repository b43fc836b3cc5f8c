"""The Responses channel: serves clients of the OpenAI Responses API with only a changed base URL."""

from frontdesk.channels.responses.channel import ResponsesChannel
from frontdesk.channels.responses.config import SocketLimits

__all__ = ["ResponsesChannel", "SocketLimits"]
