import json

from agent_framework import Agent, Content, tool

from frontdesk.scripted import ScriptedChatClient


@tool(approval_mode="never_require")
def find_order(order: int) -> str:
    """Find an order."""
    return f"Order {order}: two lamps, 120 euros, delivered yesterday."


@tool(approval_mode="always_require")
def refund(order: int, euros: int) -> str:
    """Refund an order."""
    return f"Refunded {euros} euros for order {order}."


def reply(messages):
    """Stand in for a model: return a text or a tool call."""
    last = messages[-1]
    results = [str(content.result) for content in last.contents if content.type == "function_result"]
    if results:
        return results[-1]
    if "refund" in last.text:
        return [Content.from_function_call("call-1", "refund", arguments=json.dumps({"order": 7, "euros": 120}))]
    if "order" in last.text:
        return [Content.from_function_call("call-2", "find_order", arguments=json.dumps({"order": 7}))]
    questions = [message.text for message in messages if message.role == "user"]
    return f"I find and refund orders. Questions so far: {len(questions)}."


agent = Agent(client=ScriptedChatClient(reply), name="Support", tools=[find_order, refund])
