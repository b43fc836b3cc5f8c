"""The contract of chat channels, asked of Telegram's."""

from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from frontdesk.channels.telegram import TelegramChannel
from frontdesk.testing import ChatContract, EchoAgent, FakePlatform
from tests.contracts.telegram_platform import HEADER, SECRET, DrivenTelegram, driven_telegram

LIMIT = 20_000


class TestTelegram(ChatContract):
    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return driven_telegram()

    def channel(self, platform: FakePlatform, **settings: Any) -> TelegramChannel:
        fake = cast(DrivenTelegram, platform).fake
        return TelegramChannel(bot_token=fake.token, secret_token=SECRET, api_url=fake.url, **settings)

    async def test_only_what_the_platform_has_signed_is_taken(self) -> None:
        """Ask what Telegram's webhook can be asked: its secret signs neither bodies nor times.

        A body that can't be read is acknowledged, because the platform would send it for a day.
        """
        agent = EchoAgent()
        async with self.chat(agent, max_body_bytes=LIMIT) as chat:
            eve = await chat.platform.person("Eve")
            body, large = chat.platform.event(eve, "let me in"), chat.platform.event(eve, "x" * (LIMIT + 1))

            async def post(content: bytes, **headers: str) -> int:
                sent = {"content-type": "application/json", **headers}
                return (await chat.client.http.post(chat.webhook, content=content, headers=sent)).status_code

            assert await post(body) == 401
            assert await post(body, **{HEADER: ""}) == 401
            assert await post(body, **{HEADER: "nonsense"}) == 401
            # A stranger's body is not even read.
            assert await post(large, **{HEADER: "nonsense"}) == 401
            assert await post(large, **{HEADER: SECRET}) == 413
            for text in (b"", b"{", b"[]", b"nonsense", b'{"id": 7}'):
                assert await post(text, **{HEADER: SECRET}) == 200, text
            assert agent.seen == []
            for _ in range(2):
                assert await post(body, **{HEADER: SECRET}) == 200
            assert await chat.pushed(eve) == ["let me in", "the last word"]
