"""Asks a human before a tool runs. The script stands in for a model that calls the tool when it hears "pay"."""

import json

from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient


@tool(approval_mode="always_require")
def pay(amount: int) -> str:
    """Pays the bill."""
    return f"Paid {amount} euros."


def reply(messages):
    last = messages[-1]
    results = [str(content.result) for content in last.contents if content.type == "function_result"]
    if results:
        return results[0]
    if "pay" in last.text:
        return [Content.from_function_call("call-1", "pay", arguments=json.dumps({"amount": 120}))]
    return "Say “pay” when you want to leave."


agent = Agent(client=ScriptedChatClient(reply), name="Cashier", tools=[pay])
host = AgentFrameworkHost(target=agent, channels=[InvocationsChannel()])
