"""Serves an agent as a tool for MCP clients. Booking a table needs the approval of the person who asks."""

from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.mcp import MCPChannel
from frontdesk.scripted import ScriptedChatClient


@tool(approval_mode="always_require")
def book_table(guests: int) -> str:
    """Book a table in the restaurant."""
    return f"A table for {guests} is booked."


def answer(messages):
    """Stand in for a model: book when asked to, and otherwise repeat the message."""
    last = messages[-1]
    if last.role == "tool":
        return "Done. See you tonight."
    if "table" in last.text:
        return [Content.from_function_call("call_1", "book_table", arguments='{"guests": 2}')]
    return f"You said: {last.text}"


agent = Agent(ScriptedChatClient(answer), name="Concierge", description="Answers guests.", tools=[book_table])
host = AgentFrameworkHost(target=agent, channels=[MCPChannel(), InvocationsChannel()])
