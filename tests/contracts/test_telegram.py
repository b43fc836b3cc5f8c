"""The contract of chat channels, asked of Telegram's."""

from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from frontdesk.channels.telegram import TelegramChannel
from frontdesk_testing import ChatContract, FakePlatform
from tests.contracts.telegram_platform import SECRET, DrivenTelegram, drive_telegram


class TestTelegram(ChatContract):
    # Its secret signs neither bodies nor times. What can't be read is acknowledged: it would come for a day.
    signs_bodies = False
    signs_times = False
    unreadable_status = 200
    tells_membership = True

    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        return drive_telegram()

    def channel(self, platform: FakePlatform, **settings: Any) -> TelegramChannel:
        fake = cast(DrivenTelegram, platform).fake
        return TelegramChannel(bot_token=fake.token, secret_token=SECRET, api_url=fake.url, **settings)
