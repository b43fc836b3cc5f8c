"""The platform of the message channel, as the contract of chat channels drives it."""

import base64
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec

from frontdesk.chat.messages import Button
from frontdesk_testing import ChatFile, ChatPerson, ShownMessage
from frontdesk_testing.chat_platform import PushFailure
from frontdesk_testing.messages import MessagePlatform, Person
from frontdesk_testing.messages.platform.api import Api
from frontdesk_testing.messages.platform.control import Platform
from frontdesk_testing.messages.platform.http import Connection
from frontdesk_testing.messages.platform.journal import Journal
from frontdesk_testing.messages.platform.main import TOKEN
from frontdesk_testing.messages.platform.records import Said, Settings
from frontdesk_testing.messages.verify import signature
from frontdesk_testing.messages.wire import Chat, Event, Media, MessageIn, User

SECRET = "the secret of the webhook"
FAULTS = {
    "limited": {"kind": "flood", "retry_after": 0.01},
    "unavailable": {"kind": "unavailable"},
    "refused": {"kind": "blocked"},
    "lost": {"kind": "cut_after"},
}


class DrivenPlatform:
    """The platform in the loop of the test."""

    mention = "@desk"

    def __init__(self, driver: MessagePlatform) -> None:
        self._driver = driver
        self.url, self.token = driver.url, driver.token
        self._events: dict[str, Event] = {}

    async def listen(self, url: str) -> None:
        bearer = {"authorization": f"Bearer {self.token}"}
        body = {"url": url, "secret": SECRET}
        (await self._driver.http.post(f"{self.url}/bot/webhook", json=body, headers=bearer)).raise_for_status()
        await self._driver.wait_for_webhook()

    async def person(self, name: str) -> ChatPerson:
        person = await self._driver.user(name)
        return ChatPerson(id=person.user_id, name=name, chat_id=person.chat_id)

    async def group(self, *people: ChatPerson) -> str:
        return (await self._driver.group("Friends", *map(_person, people))).chat_id

    async def say(
        self,
        who: ChatPerson,
        text: str,
        *,
        chat_id: str = "",
        thread_id: str = "",
        files: Sequence[ChatFile] = (),
        album: str = "",
    ) -> str:
        media = [
            Media(media_type=file.media_type, data=base64.b64encode(file.data).decode(), name=file.name)
            for file in files
        ]
        places = {"chat_id": chat_id, "thread_id": thread_id, "album_id": album}
        event = await self._driver.say(_person(who), text, media=media, **places)
        return self._note(event)

    async def press(self, who: ChatPerson, message: ShownMessage, data: str, *, chat_id: str = "") -> str:
        said = Said(message_id=message.message_id, user_id="bot-1")
        return self._note(await self._driver.click(_person(who), said, data, chat_id=chat_id))

    def _note(self, event: Event) -> str:
        self._events[event.event_id] = event
        return event.event_id

    async def repeat(self, event_id: str) -> None:
        await self._driver.wait_for_acknowledged(self._events[event_id])
        await self._driver.redeliver(self._events[event_id])
        await self._driver.wait_for_acknowledged(self._events[event_id])

    async def shown(self, chat_id: str) -> list[ShownMessage]:
        return [
            ShownMessage(
                message_id=said.message_id,
                text=said.text,
                thread_id=said.thread_id,
                buttons=tuple(Button(text=button.text, data=button.data) for button in said.buttons),
                reply_to=said.reply_to,
                files=tuple(
                    ChatFile(media_type=media.media_type, data=base64.b64decode(media.data), name=media.name)
                    for media in said.media
                ),
            )
            for said in await self._driver.answers(chat_id)
        ]

    async def notice(self, event_id: str) -> str:
        click = self._events[event_id].click
        return "" if click is None else (await self._driver.state()).clicks[click.callback_id]

    async def fail(self, failure: PushFailure, *, times: int = 1) -> None:
        await self._driver.fail(**{"method": "send", "times": times, **FAULTS[failure]})

    async def go_away(self, *, times: int) -> None:
        await self._driver.fail("unavailable", times=times)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        await self._driver.until(condition)

    def event(self, who: ChatPerson, text: str) -> bytes:
        event = Event(
            event_id="e-made-up",
            number=1,
            type="message",
            at=1.0,
            chat=Chat(chat_id=who.chat_id, kind="direct"),
            sender=User(user_id=who.id, name=who.name),
            message=MessageIn(message_id="m-made-up", text=text),
        )
        return msgspec.json.encode(event)

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        timestamp = str(int(at))
        return {"x-message-timestamp": timestamp, "x-message-signature": signature(SECRET, timestamp, body)}


def _person(who: ChatPerson) -> Person:
    return Person(user_id=who.id, name=who.name, chat_id=who.chat_id)


@asynccontextmanager
async def drive_platform() -> AsyncIterator[DrivenPlatform]:
    """Start the platform in the loop of the test, which costs no process."""
    import asyncio

    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "accepted.jsonl"
        platform = Platform(Journal(log, sync=False), Settings(retry_seconds=0.05))
        api = Api(platform, TOKEN)
        server = await asyncio.get_running_loop().create_server(lambda: Connection(api), "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
            yield DrivenPlatform(MessagePlatform(url, log, http))
        server.close()
        await platform.webhooks.close()
