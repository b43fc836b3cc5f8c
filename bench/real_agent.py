"""The framework's own `Agent`, over a client that always says the same."""

from __future__ import annotations

from collections.abc import Sequence

from agent_framework import Agent, Message

try:
    from frontdesk.scripted import ScriptedChatClient
except ModuleNotFoundError:
    # A checkout before 0.2, which `--against` compares with.
    from frontdesk.testing.agents import ScriptedChatClient  # pyright: ignore[reportMissingImports]

ANSWER = "Hello, this is the answer."


def build_agent(*, tools: bool) -> Agent:
    """Without tools, the client's loop around function calls is off: it copies the whole history, whoever hosts it."""

    def reply(messages: Sequence[Message]) -> str:
        # It takes note of all that it sees; over thousands of turns that would be most of the server's memory.
        client.seen.clear()
        client.options.clear()
        return ANSWER

    client = ScriptedChatClient(reply)
    client.function_invocation_configuration["enabled"] = tools
    return Agent(client, "You are brief.", name="real", tools=[tell_time] if tools else None)


def tell_time(place: str) -> str:
    """Tells what time it is somewhere."""
    return f"It is noon in {place}."
