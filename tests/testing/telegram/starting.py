"""A fake for one test, and a bot that calls it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from frontdesk_testing.telegram import FakeTelegram, fake_telegram
from frontdesk_testing.telegram.schema.values import check_value

TYPES = {"getUpdates": "Array of Update", "getChat": "ChatFullInfo", "getChatMember": "ChatMember", "getMe": "User"}
TYPES |= {"getWebhookInfo": "WebhookInfo", "getFile": "File", "createForumTopic": "ForumTopic"}
TYPES |= {"getChatAdministrators": "Array of ChatMember", "getMyCommands": "Array of BotCommand"}
TYPES |= {"sendMediaGroup": "Array of Message"}
"""The types of the results of methods that return neither a message nor a plain value."""


class BotClient:
    """Calls the Bot API, and checks that every result is of its type."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url = url
        self.http = http

    async def ask(self, method: str, **parameters: Any) -> Any:
        """Return the whole answer of a call in JSON."""
        return (await self.http.post(f"{self.url}/{method}", json=parameters)).json()

    async def call(self, method: str, **parameters: Any) -> Any:
        """Return the result of a call."""
        answer = await self.ask(method, **parameters)
        assert answer["ok"], answer
        check_result(method, answer["result"])
        return answer["result"]

    async def read_refusal(self, method: str, **parameters: Any) -> str:
        """Return the description of the error that a call gets."""
        answer = await self.ask(method, **parameters)
        assert not answer["ok"], answer
        check_value("ResponseParameters", answer.get("parameters", {}))
        return answer["description"]

    async def updates(self, **parameters: Any) -> list[Any]:
        """Return the updates that wait, and confirm them."""
        updates = await self.call("getUpdates", **parameters)
        if updates:
            await self.call("getUpdates", offset=updates[-1]["update_id"] + 1, limit=1)
        return updates


def check_result(method: str, result: Any) -> None:
    """Check the result of a method against the schema."""
    if method in TYPES:
        check_value(TYPES[method], result)
    elif isinstance(result, dict):
        check_value("Message", result)


@asynccontextmanager
async def bot_at(telegram: FakeTelegram, token: str = "") -> AsyncIterator[BotClient]:
    """Make a client for a bot of a fake that is served."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        yield BotClient(f"{telegram.url}/bot{token or telegram.token}", http)


@asynccontextmanager
async def telegram_and_bot(telegram: FakeTelegram | None = None) -> AsyncIterator[tuple[FakeTelegram, BotClient]]:
    """Serve a fake, and make a client for its bot."""
    async with fake_telegram(telegram) as served, bot_at(served) as bot:
        yield served, bot
