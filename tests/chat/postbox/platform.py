"""Postbox itself: a made-up chat platform in the loop of a test."""

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
import msgspec

from frontdesk.chat.messages import Button
from frontdesk_testing import ChatFile, ChatPerson, ShownMessage
from frontdesk_testing.chat_platform import PushFailure
from frontdesk_testing.messages.platform.http import Call, Connection, Reply

TOKEN, SECRET = "a token of postbox", "a secret of postbox"
LONGEST = 1_000
_AGAIN = 0.02
STATUS = {"limited": 429, "unavailable": 503, "refused": 403}


class Postbox:
    """People, chats and the bot's messages, with an HTTP API for the bot."""

    mention = "@porter"

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._webhook = ""
        self._people: list[ChatPerson] = []
        self._groups = 0
        self._bodies: dict[str, bytes] = {}
        self.clicks: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        self._messages: dict[str, tuple[str, ShownMessage]] = {}
        self._keys: dict[str, str] = {}
        self._failures: list[PushFailure] = []
        self._away = 0
        self._changed = asyncio.Condition()
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self.url = ""
        self.menu: dict[str, str] = {}
        self.typing: list[str] = []

    async def listen(self, url: str) -> None:
        self._webhook = url

    async def person(self, name: str) -> ChatPerson:
        number = len(self._people)
        person = ChatPerson(id=f"u-{number}", name=name, chat_id=f"d-{number}")
        self._people.append(person)
        return person

    async def group(self, *people: ChatPerson) -> str:
        self._groups += 1
        return f"g-{self._groups}"

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
        sent: list[dict[str, Any]] = []
        for file in files:
            self._files[f"f-{len(self._files)}"] = file.data
            sent.append({"id": f"f-{len(self._files) - 1}", "type": file.media_type, "size": len(file.data)})
        fields = {"text": text, "thread": thread_id, "album": album, "files": sent, "to_bot": self.mention in text}
        return self._happened("message", who, chat_id, **fields)

    async def press(self, who: ChatPerson, message: ShownMessage, data: str, *, chat_id: str = "") -> str:
        return self._happened("click", who, chat_id, data=data, message=message.message_id, click=True)

    def _happened(self, kind: str, who: ChatPerson, chat_id: str, **fields: Any) -> str:
        event_id = f"e-{len(self._bodies)}"
        if fields.get("click"):
            fields["click"] = event_id
        self._bodies[event_id] = _event(event_id, kind, who, chat_id, **fields)
        self._queue.put_nowait(event_id)
        return event_id

    def event(self, who: ChatPerson, text: str) -> bytes:
        return _event("e-made-up", "message", who, "", text=text)

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        signed = str(int(at)).encode() + b"." + body
        mark = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        return {"postbox-time": str(int(at)), "postbox-signature": mark}

    async def repeat(self, event_id: str) -> None:
        await self._deliver(event_id)

    async def deliver_events(self) -> None:
        """Send events to the webhook, in their order."""
        while True:
            await self._deliver(await self._queue.get())

    async def _deliver(self, event_id: str) -> None:
        body = self._bodies[event_id]
        while True:
            headers = {"content-type": "application/json", **self.signed(body, at=time.time())}
            try:
                if (await self._http.post(self._webhook, content=body, headers=headers)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(_AGAIN)

    async def shown(self, chat_id: str) -> list[ShownMessage]:
        return [message for place, message in self._messages.values() if place == chat_id]

    async def notice(self, event_id: str) -> str:
        return self.clicks.get(event_id, "")

    async def fail(self, failure: PushFailure, *, times: int = 1) -> None:
        self._failures.extend(failure for _ in range(times))

    async def go_away(self, *, times: int) -> None:
        self._away = times

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with self._changed:
            while not await condition():
                await self._changed.wait()

    async def answer(self, call: Call) -> Reply | None:
        """Answer a call of the bot."""
        if self._away:
            self._away -= 1
            return 503, b"{}"
        if call.headers.get(b"authorization") != f"Bearer {TOKEN}".encode():
            return 401, b"{}"
        _, kind, name = call.path.rpartition("/files/")
        if kind:
            return (200, self._files[name]) if name in self._files else (404, b"{}")
        method = call.path.rpartition("/")[2]
        failure = self._failures.pop(0) if method == "send" and self._failures else None
        if failure in STATUS:
            return STATUS[failure], b'{"retry_after": 0.01}'
        status, made = getattr(self, f"_on_{method}")(msgspec.json.decode(call.body))
        async with self._changed:
            self._changed.notify_all()
        return None if failure == "lost" else (status, msgspec.json.encode(made))

    def _on_me(self, body: Any) -> tuple[int, Any]:
        return 200, {"id": "bot", "name": "porter"}

    def _on_open(self, body: Any) -> tuple[int, Any]:
        return 200, {"id": next(person.chat_id for person in self._people if person.id == body["user"])}

    def _on_typing(self, body: Any) -> tuple[int, Any]:
        self.typing.append(body["chat"])
        return 200, {}

    def _on_commands(self, body: Any) -> tuple[int, Any]:
        self.menu = body
        return 200, {}

    def _on_answer(self, body: Any) -> tuple[int, Any]:
        self.clicks[body["click"]] = body["text"]
        return 200, {}

    def _on_send(self, body: Any) -> tuple[int, Any]:
        if body["key"] in self._keys:
            return 200, {"id": self._keys[body["key"]]}
        if not self._is_allowed(body):
            return 400, {}
        message_id = f"m-{len(self._messages)}"
        self._keys[body["key"]] = message_id
        message = ShownMessage(
            message_id=message_id, thread_id=body["thread"], reply_to=body["reply_to"], **_visible(body)
        )
        self._messages[message_id] = (body["chat"], message)
        return 200, {"id": message_id}

    def _on_edit(self, body: Any) -> tuple[int, Any]:
        if body["id"] not in self._messages:
            return 410, {}
        chat, before = self._messages[body["id"]]
        after = msgspec.structs.replace(before, **_visible(body))
        if after == before:
            return 304, {}
        self._messages[body["id"]] = (chat, after)
        return 200, {}

    def _on_delete(self, body: Any) -> tuple[int, Any]:
        return (200, {}) if self._messages.pop(body["id"], None) else (410, {})

    def _is_allowed(self, body: Any) -> bool:
        seen = body["text"].strip() or body["files"]
        return bool(seen) and len(body["text"].encode("utf-16-le")) // 2 <= LONGEST


def _visible(body: Any) -> dict[str, Any]:
    return {
        "text": body["text"],
        "buttons": tuple(Button(**button) for button in body["buttons"]),
        "files": tuple(
            ChatFile(media_type=file["type"], data=base64.b64decode(file["data"]), name=file["name"])
            for file in body["files"]
        ),
    }


def _event(event_id: str, kind: str, who: ChatPerson, chat_id: str, **fields: Any) -> bytes:
    user = {"id": who.id, "name": who.name}
    place = {"chat": chat_id or who.chat_id, "group": bool(chat_id) and chat_id != who.chat_id}
    about = {"id": event_id, "at": time.time(), "kind": kind, "message": f"of {event_id}", **place, "user": user}
    return msgspec.json.encode({**about, **fields})


P = TypeVar("P", bound=Postbox)


@asynccontextmanager
async def postbox(kind: type[P] = Postbox) -> AsyncIterator[P]:
    """Start the platform."""
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        platform = kind(http)
        server = await asyncio.get_running_loop().create_server(lambda: Connection(platform.answer), "127.0.0.1", 0)
        platform.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api"
        delivering = asyncio.create_task(platform.deliver_events())
        try:
            yield platform
        finally:
            delivering.cancel()
            server.close()
