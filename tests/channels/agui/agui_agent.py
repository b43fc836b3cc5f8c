"""The agent that clients of AG-UI talk to."""

import json
from typing import Any

from agent_framework import Agent, Content, tool

from frontdesk import SharedState
from frontdesk.scripted import ScriptedChatClient


def build_agent() -> Any:
    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    @tool
    def add(step: str) -> str:
        """Adds."""
        with SharedState.current().edit() as state:
            state["steps"].append(step)
        return "added"

    def call(messages: Any, name: str, **arguments: Any) -> Content:
        call_id = f"{name}-{len(messages)}-{json.dumps(arguments)}"
        return Content.from_function_call(call_id, name, arguments=json.dumps(arguments))

    def reply(messages: Any) -> Any:
        last = messages[-1]
        results = [str(content.result) for content in last.contents if content.type == "function_result"]
        if results:
            return " ".join(results)
        calls: dict[str, list[Content]] = {
            "pay 5": [call(messages, "pay", amount=5)],
            "pay twice": [call(messages, "pay", amount=1), call(messages, "pay", amount=2)],
            "weather": [call(messages, "weather")],
            "step": [call(messages, "add", step="b")],
        }
        return calls.get(last.text) or f"{sum(message.role == 'user' for message in messages)} heard"

    return Agent(client=ScriptedChatClient(reply), name="Desk", tools=[pay, add])
