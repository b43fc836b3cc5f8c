"""Serves an agent. A script stands in for the model, so that it needs no key; any chat client can take its place."""

from agent_framework import Agent

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient


def reply(messages):
    guest = [message.text for message in messages if message.role == "user"]
    return f"You said: {guest[-1]}. Before that, you said {len(guest) - 1} other things."


concierge = Agent(client=ScriptedChatClient(reply), name="Concierge", instructions="You welcome guests.")
host = AgentFrameworkHost(target=concierge, channels=[InvocationsChannel()])
