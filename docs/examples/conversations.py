"""Conversations that callers make and name. The target tells what it has heard."""

from agent_framework import Message

from frontdesk import AgentFrameworkHost
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel


async def tell(messages: list[Message]) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"I heard: {', '.join(message.text for message in messages if message.role == 'user')}."


host = AgentFrameworkHost(tell, channels=[ResponsesChannel(), ConversationsChannel(), InvocationsChannel()])
