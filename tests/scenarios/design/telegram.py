"""The Telegram channel of the scenarios of the design, on a strict fake of its platform."""

from dataclasses import dataclass
from typing import Any

from frontdesk.channels.telegram import TelegramChannel
from frontdesk.interfaces.chat import PushTerms
from frontdesk_testing.telegram import FakeTelegram
from frontdesk_testing.telegram.records import Chat, User


def build_polling_chat(fake: FakeTelegram, **settings: Any) -> TelegramChannel:
    """Make the channel, which polls; other settings are its own."""
    given: dict[str, Any] = {"live": "off", "poll_seconds": 1.0, "push_terms": PushTerms(), **settings}
    return TelegramChannel(bot_token=fake.token, api_url=fake.url, transport="polling", **given)


@dataclass
class TelegramUser:
    """A person on Telegram."""

    fake: FakeTelegram
    user: User

    @classmethod
    def of(cls, fake: FakeTelegram, name: str, user_id: int) -> "TelegramUser":
        user = fake.user(name, user_id=user_id)
        fake.private(user)
        return cls(fake, user)

    def say(self, text: str, chat: Chat | None = None) -> None:
        self.fake.say(self.user, text, chat)

    def answers(self, chat: Chat | None = None) -> list[str]:
        """What the bot has said in a chat; in the private one, if none is given."""
        return self.fake.shown(chat or self.fake.private(self.user)).answers

    async def wait_for_answers(self, count: int, chat: Chat | None = None) -> list[str]:
        """The same, once there are so many answers."""
        await self.fake.until(lambda: len(self.answers(chat)) >= count)
        return self.answers(chat)

    async def is_told(self, text: str) -> None:
        """Waits until the last answer is a text."""
        await self.fake.until(lambda: self.answers()[-1:] == [text])
