"""The test driver of the platform."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import httpx
import msgspec

from frontdesk.ids import RandomIds
from frontdesk_testing.messages.platform.faults import FaultKind
from frontdesk_testing.messages.platform.journal import Entry, read_journal
from frontdesk_testing.messages.platform.main import TOKEN
from frontdesk_testing.messages.platform.records import EventState, PrivateText, Said
from frontdesk_testing.messages.wire import Chat, Event, Media

T = TypeVar("T")
TIMEOUT_SECONDS = 20.0


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A user and their direct chat with the bot."""

    user_id: str
    name: str
    chat_id: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the platform."""

    changes: int
    accepted: int
    duplicates: int
    struck: tuple[int, ...]
    """The number of times that each fault has struck, in the order in which they were set."""
    webhook_verified: bool
    commands: tuple[dict[str, str], ...]
    clicks: dict[str, str]
    private: tuple[PrivateText, ...]


class MessagePlatform:
    """Acts for people on the platform, sets its faults, and reads its log."""

    def __init__(self, url: str, log_path: Path, http: httpx.AsyncClient, *, pid: int = 0, token: str = TOKEN) -> None:
        self.url = url
        self.pid = pid
        self.log_path = log_path
        self.token = token
        self.http = http

    async def user(self, name: str, *, user_id: str = "", locale: str = "") -> Person:
        """Add a user, with the language of their app."""
        return await self._post("users", Person, name=name, user_id=user_id, locale=locale)

    async def group(self, title: str, *people: Person, chat_id: str = "", admins: Sequence[Person] = ()) -> Chat:
        """Add a group of some people and the bot. Some of them may be its administrators."""
        members, leading = ([person.user_id for person in some] for some in (people, admins))
        return await self._post("groups", Chat, title=title, members=members, chat_id=chat_id, admins=leading)

    async def menu(self, scope: str = "", locale: str = "") -> dict[str, str]:
        """Return the descriptions of the commands in the menu of a scope and a language, by their names."""
        commands = await self._get("menu", list[dict[str, str]], scope=scope, locale=locale)
        return {command["name"]: command["description"] for command in commands}

    async def say(
        self,
        who: Person,
        text: str,
        *,
        chat_id: str = "",
        thread_id: str = "",
        reply_to: str = "",
        media: Sequence[Media] = (),
        album_id: str = "",
    ) -> Event:
        """Write as a person, by default in their direct chat. `@desk` in the text is a mention.

        A thread of a group begins with the first message that names it, and so does an album.
        """
        more = {
            "text": text,
            "thread_id": thread_id,
            "album_id": album_id,
            "reply_to": reply_to,
            "media": [msgspec.to_builtins(file) for file in media],
        }
        return await self._post("say", Event, user_id=who.user_id, chat_id=chat_id, **more)

    async def album(self, who: Person, media: Sequence[Media], *, text: str = "", chat_id: str = "") -> list[Event]:
        """Send an album as a person: a message for each picture or file, of which the first has the text."""
        album_id, texts = RandomIds().new("album"), [text, *[""] * len(media)]
        return [
            await self.say(who, said, chat_id=chat_id, media=[file], album_id=album_id)
            for file, said in zip(media, texts, strict=False)
        ]

    async def edit(self, who: Person, message_id: str, text: str, *, chat_id: str = "") -> Event:
        """Change a message as the person who wrote it."""
        fields = {"user_id": who.user_id, "chat_id": chat_id or who.chat_id, "message_id": message_id, "text": text}
        return await self._post("edit", Event, **fields)

    async def click(self, who: Person, said: Said, data: str, *, chat_id: str = "") -> Event:
        """Press a button under a message as a person. `data` may also be its label."""
        sent = next((button.data for button in said.buttons if button.text == data), data)
        fields = {"user_id": who.user_id, "chat_id": chat_id or who.chat_id, "message_id": said.message_id}
        return await self._post("click", Event, **fields, data=sent)

    async def report(
        self, chat_id: str, message_id: str, status: Literal["delivered", "failed"], *, reason: str = ""
    ) -> Event:
        """Send a delivery receipt for a message of the bot."""
        fields = {"chat_id": chat_id, "message_id": message_id, "status": status, "reason": reason}
        return await self._post("report", Event, **fields)

    async def fail(self, kind: FaultKind, **rule: Any) -> None:
        """Add a fault. See `Fault` for the fields of a rule."""
        await self._post("faults", Any, kind=kind, **rule)

    async def recover(self) -> None:
        """Remove all faults."""
        await self._post("faults/clear", Any)

    async def set(self, **settings: Any) -> None:
        """Change settings. See `Settings`."""
        await self._post("settings", Any, **settings)

    async def redeliver(self, event: Event) -> EventState:
        """Send an event to the webhook once more, with the same id."""
        return await self._post("redeliver", EventState, event_id=event.event_id)

    async def release(self, *events: Event) -> None:
        """Send the events that were held (`set(hold=True)`), in this order."""
        await self._post("release", Any, event_ids=[event.event_id for event in events])

    async def log(self, after: int = 0) -> list[Entry]:
        """Return the accepted messages, as reported by the platform."""
        return await self._get("log", list[Entry], after=after)

    def log_on_disk(self) -> list[Entry]:
        """Return the accepted messages from the disk."""
        return read_journal(self.log_path)

    async def chat(self, chat_id: str) -> list[Said]:
        """Return the messages of a chat."""
        return await self._get("chat", list[Said], chat_id=chat_id)

    async def answers(self, chat_id: str) -> list[Said]:
        """Return the messages of the bot in a chat."""
        return [message for message in await self.chat(chat_id) if message.user_id == "bot-1"]

    async def events(self) -> list[EventState]:
        """Return every event, and its state."""
        return await self._get("events", list[EventState])

    async def state(self) -> State:
        """Return the state of the platform."""
        return await self._get("state", State)

    async def wait_for_answers(self, chat_id: str, count: int = 1) -> list[Said]:
        """Wait for a number of the bot's messages in a chat, and return them."""
        messages: list[Said] = []

        async def enough() -> bool:
            messages[:] = await self.answers(chat_id)
            return len(messages) >= count

        await self.until(enough)
        return messages

    async def wait_for_acknowledged(self, *events: Event) -> None:
        """Wait until events were acknowledged."""
        wanted = {event.event_id for event in events}

        async def taken() -> bool:
            waiting = await self._get("events", list[EventState], open=1)
            return wanted.isdisjoint(state.event.event_id for state in waiting)

        await self.until(taken)

    async def wait_for_webhook(self) -> None:
        """Wait until the platform has verified the webhook."""

        async def verified() -> bool:
            return (await self.state()).webhook_verified

        await self.until(verified)

    async def until(self, condition: Callable[[], Any], *, within: float = TIMEOUT_SECONDS) -> None:
        """Wait until a condition holds. It is checked after every change on the platform."""
        async with asyncio.timeout(within):
            while True:
                changes = (await self.state()).changes
                if await condition():
                    return
                await self._get("changed", int, after=changes, seconds=within)

    async def _post(self, name: str, kind: Any, /, **fields: Any) -> Any:
        return _read(await self.http.post(f"{self.url}/control/{name}", json=fields), kind)

    async def _get(self, name: str, kind: type[T], /, **query: Any) -> T:
        return _read(await self.http.get(f"{self.url}/control/{name}", params=query), kind)


def _read(answer: httpx.Response, kind: Any) -> Any:
    if answer.status_code != 200:
        raise AssertionError(f"the platform answered {answer.status_code}: {answer.text}")
    return msgspec.json.decode(answer.content, type=kind)


@asynccontextmanager
async def message_platform(log_path: Path, *options: str) -> AsyncGenerator[MessagePlatform]:
    """Start the platform in a separate process, and stop it. `options` are those of the command line."""
    command = [sys.executable, "-m", "frontdesk_testing.messages", "--with-parent", "--log", str(log_path), *options]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        if process.stdout is None:
            raise RuntimeError("the platform has no output")
        url = (await process.stdout.readline()).decode().strip()
        if not url:
            raise RuntimeError("the platform did not start")
        async with httpx.AsyncClient(timeout=40, trust_env=False) as http:
            yield MessagePlatform(url, log_path, http, pid=process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
