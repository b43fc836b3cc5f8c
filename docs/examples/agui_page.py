"""An agent inside a web application: the page shows its plan while it works, and asks before it books.

The page is `agui_page.html`: serve it with `python -m http.server 8080 --bind 127.0.0.1 --directory docs/examples`.
"""

import json

from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost, SharedState
from frontdesk.channels.agui import AGUIChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient


@tool
def add_step(step: str) -> str:
    """Add a step to the plan that the page shows."""
    with SharedState.current().edit() as state:
        state.setdefault("steps", []).append(step)
    return "added"


@tool(approval_mode="always_require")
def book(hotel: str) -> str:
    """Book a hotel."""
    return f"{hotel} is booked"


def reply(messages):
    last = messages[-1]
    results = [content.result for content in last.contents if content.type == "function_result"]
    if results == ["added"]:
        return "I have added the hotel to your plan. Shall I book it?"
    if results:
        return f"{results[0]}. Have a good trip!"
    if "book" in last.text.lower():
        return [
            Content.from_function_call(f"book-{len(messages)}", "book", arguments=json.dumps({"hotel": "The Grand"}))
        ]
    return [Content.from_function_call(f"add-{len(messages)}", "add_step", arguments=json.dumps({"step": "The Grand"}))]


agent = Agent(client=ScriptedChatClient(reply), name="Travel", tools=[add_step, book])
page = AGUIChannel(detached=True, allowed_origins=["http://127.0.0.1:8080"])
host = AgentFrameworkHost(agent, channels=[page, InvocationsChannel()])

if __name__ == "__main__":
    host.serve(port=8000)
