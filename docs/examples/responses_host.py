"""Three doors to one agent: two APIs of OpenAI's, and Invocations. A script stands in for the model."""

import json

from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient


@tool(approval_mode="always_require")
def pay(amount: int) -> str:
    """Pays the bill. It runs here, once a human has said yes."""
    return f"Paid {amount} euros."


def call(name, **arguments):
    return [Content.from_function_call(f"call-{name}", name, arguments=json.dumps(arguments))]


def reply(messages):
    last = messages[-1]
    results = [str(content.result) for content in last.contents if content.type == "function_result"]
    if results:
        return results[-1]
    if "pay" in last.text:
        return call("pay", amount=120)
    if "lamp" in last.text:
        # No tool of this agent's: a client may offer one of that name, and runs it itself.
        return call("switch_lamp", on=True)
    guest = [message.text for message in messages if message.role == "user"]
    return f"You said: {guest[-1]}. Before that, you said {len(guest) - 1} other things."


concierge = Agent(client=ScriptedChatClient(reply), name="Concierge", instructions="You welcome guests.", tools=[pay])
doors = [ResponsesChannel(), ChatCompletionsChannel(), InvocationsChannel()]
host = AgentFrameworkHost(target=concierge, channels=doors)
