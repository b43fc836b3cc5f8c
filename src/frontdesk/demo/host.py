"""The demo's host: one agent, three tools, five channels; and a restaurant beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_framework import Agent

from frontdesk.abc.channel import Channel
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.demo.hotel import HOURS, PRICES, Hotel, tools_of
from frontdesk.demo.models import choose_client
from frontdesk.demo.restaurant import restaurant
from frontdesk.host import AgentFrameworkHost

INSTRUCTIONS = f"""\
You are the concierge of the Marmalade, a small hotel by the sea: warm, brief and a little old-fashioned.
Rooms and their price in euros a night: {", ".join(f"{kind} {price}" for kind, price in PRICES.items())}.
Use opening_hours for the hours of {", ".join(HOURS)}; calculate for every sum; book_room when a guest wants to book.
A person is asked before a booking is made, so call book_room without asking first."""

GREETING = "Good day. What can the Marmalade do for you?"
PROMPTS = (
    "When is breakfast?",
    "Book a sea view room for two nights",
    "Show me the view",
    "What is there to see nearby?",
    "Tell me the story of the house",
)


def build_host(
    client: Any = None, *, state_dir: str | Path | None = None, channels: Sequence[Channel] = ()
) -> AgentFrameworkHost:
    """Build the host of the hotel, with a given chat client or the one that fits the environment, and more channels."""
    agent = Agent(
        choose_client().client if client is None else client,
        INSTRUCTIONS,
        name="Concierge",
        description="The concierge of the Marmalade, a small hotel by the sea.",
        tools=tools_of(Hotel()),
    )
    page = WebChatChannel(title="The Marmalade", greeting=GREETING, prompts=PROMPTS, tools="full")
    doors = [
        page,
        InvocationsChannel(),
        ResponsesChannel(),
        ChatCompletionsChannel(),
        ConversationsChannel(),
        *channels,
    ]
    return AgentFrameworkHost(agent, channels=doors, state_dir=state_dir, contributions=[restaurant(state_dir)])
