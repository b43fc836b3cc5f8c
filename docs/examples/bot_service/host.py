"""A bot behind Azure Bot Service: Web Chat, Direct Line, Slack and every other channel of the Bot resource.

python -m frontdesk_testing.activity          # a stand-in for Bot Service; it prints the settings
frontdesk serve docs/examples/bot_service/host.py:host
"""

import os
from collections.abc import Sequence

from agent_framework import Agent, Message

from frontdesk import AgentFrameworkHost
from frontdesk.channels.activity import ActivityChannel, ClientSecret
from frontdesk.scripted import ScriptedChatClient


def reply(messages: Sequence[Message]) -> str:
    return f"You said: {messages[-1].text}."


agent = Agent(client=ScriptedChatClient(reply), name="Concierge")
bot = ActivityChannel(
    app_id=os.environ.get("BOT_APP_ID", "11111111-2222-4333-8444-555555555555"),
    credential=ClientSecret(os.environ.get("BOT_SECRET", "the-client-secret-of-the-fake-bot")),
    connector_url=os.environ.get("BOT_CONNECTOR_URL"),
    allowlist=None,
)
host = AgentFrameworkHost(agent, channels=[bot], state_dir="state")
