"""Telegram beside the Responses API: one person, one conversation, and answers that are shown at both.

frontdesk serve docs/examples/telegram_multicast.py:host

Write to the bot first, so that it may write to you. Then ask over HTTP: the answer comes back, and to Telegram as well.

curl -s localhost:8000/responses -H 'x-api-key: alice-key-for-the-laptop' \\
    -d '{"input": "hello", "hosting": {"show_on": "telegram"}}'
"""

import os
from dataclasses import replace

from agent_framework import Agent

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ChannelIdentity, ChannelRequest, ChannelSession, ResponseTarget
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.scripted import ScriptedChatClient

PEOPLE = {"alice": "alice", os.environ.get("TELEGRAM_USER_ID", "42"): "alice"}
"""Whose each API key and each Telegram account is."""


def resolve(identity: ChannelIdentity) -> str | None:
    return PEOPLE.get(identity.native_id)


def multicast(request: ChannelRequest, **_) -> ChannelRequest:
    """Join the person's conversation; show the question and the answer on another channel if the caller asks for it."""
    request = replace(request, session=ChannelSession(isolation_key=resolve(request.identity)))
    channel = request.attributes.get("hosting", {}).get("show_on")
    if channel is None:
        return request
    return replace(request, response_target=ResponseTarget.channels(["originating", channel], echo_input=True))


def answer(messages) -> str:
    said = [message.text for message in messages if message.role == "user"]
    return f"You said: {' / '.join(said)}"


keys = ApiKeyAuth({"alice": os.environ.get("ALICE_KEY", "alice-key-for-the-laptop")})
channels = [
    ResponsesChannel(auth=keys, run_hook=multicast),
    InvocationsChannel(auth=keys, run_hook=multicast, extra_fields="attributes"),
    TelegramChannel(
        bot_token=os.environ.get("BOT_TOKEN", "123456:a-token-that-opens-nothing-at-all"),
        api_url=os.environ.get("TELEGRAM_API_URL", "https://api.telegram.org"),
        transport="polling",
        live="off",
    ),
]
agent = Agent(client=ScriptedChatClient(answer), name="Concierge")
host = AgentFrameworkHost(target=agent, channels=channels, identity_resolver=resolve)

if __name__ == "__main__":
    host.serve()
