"""The page's own API as the contract of chat channels drives it: the mailbox of the host is the platform."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from frontdesk.channels.web import WebChatChannel
from frontdesk.chat.messages import Button
from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.interfaces.chat import PushPart
from frontdesk_testing import ChatFile, ChatPerson, ShownMessage
from frontdesk_testing.chat_platform import PushFailure

ORIGIN = "http://127.0.0.1"
# The name of a cookie has the name of the host in it: the same for all hosts of a test, on whichever port.
HOST = {"host": "127.0.0.1", "origin": ORIGIN}
_ERRORS: dict[PushFailure, Callable[[], PushError]] = {
    "limited": lambda: PushLimitedError("too fast", retry_after=0.0),
    "unavailable": lambda: PushError("away"),
    "refused": lambda: PushRefusedError("never"),
    "lost": lambda: PushUnknownError("no answer"),
}


class FailingWebChat(WebChatChannel):
    """The channel, whose mailbox fails when the platform of the test says so."""

    webhook_path = "/api/conversations/main/messages"

    def __init__(self, platform: "DrivenPage", *, max_body_bytes: int | None = None, **settings: Any) -> None:
        sizes = {} if max_body_bytes is None else {"max_files": 0, "max_text": (max_body_bytes - 4_096) // 6}
        super().__init__(**sizes, **settings)
        self.connected = asyncio.Event()
        self.connected.set()
        self._platform = platform

    async def push_part(self, part: PushPart) -> str | None:
        failure = self._platform.next_failure()
        if failure is None:
            return await super().push_part(part)
        if failure == "lost":
            await super().push_part(part)
        raise _ERRORS[failure]()


class DrivenPage:
    """People with browsers. Each gets a cookie when they first come to the page."""

    mention = ""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._page = ""
        self._cookies: dict[str, str] = {}
        self._events: dict[str, Callable[[], Awaitable[httpx.Response]]] = {}
        self._failures: list[PushFailure] = []
        self._cursors: dict[str, int] = {}

    def next_failure(self) -> PushFailure | None:
        return self._failures.pop(0) if self._failures else None

    async def listen(self, url: str) -> None:
        self._page = url.removesuffix(FailingWebChat.webhook_path)
        for person in self._cookies:
            await self._load_page(person)

    async def person(self, name: str) -> ChatPerson:
        person = ChatPerson(id=f"p{len(self._cookies)}", name=name, chat_id=f"p{len(self._cookies)}")
        self._cookies[person.id] = ""
        if self._page:
            await self._load_page(person.id)
        return person

    async def _load_page(self, person: str) -> None:
        """Load the page, for who has not yet done so."""
        if not self._cookies[person]:
            loaded = await self._http.get(self._page, headers=HOST)
            # Each has a browser of their own.
            self._http.cookies.clear()
            self._cookies[person] = loaded.headers["set-cookie"].partition(";")[0]

    async def _call(self, person: str, method: str, path: str, body: Any = None) -> httpx.Response:
        headers = {**HOST, "cookie": self._cookies[person]}
        return await self._http.request(method, f"{self._page}/api/{path}", json=body, headers=headers)

    async def group(self, *people: ChatPerson) -> str:
        raise NotImplementedError("the page has no groups")

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
        sent = [
            {"media_type": file.media_type, "data": base64.b64encode(file.data).decode(), "name": file.name}
            for file in files
        ]
        return await self._post(who, {"text": text, "files": sent})

    async def _post(self, who: ChatPerson, body: dict[str, Any]) -> str:
        event_id = f"e{len(self._events)}"
        body = {"client_id": event_id, **body}
        return await self._act(event_id, lambda: self._call(who.id, "POST", "conversations/main/messages", body))

    async def _act(self, event_id: str, act: Callable[[], Awaitable[httpx.Response]]) -> str:
        self._events[event_id] = act
        await act()
        return event_id

    async def press(self, who: ChatPerson, message: ShownMessage, data: str, *, chat_id: str = "") -> str:
        answer, _, approval = data.partition(":")
        if answer not in ("ok", "no"):
            return await self._post(who, {"choice": data})
        path = f"approvals/{quote(approval, safe='')}"

        async def decide() -> httpx.Response:
            shown = await self._call(who.id, "GET", path)
            digest = shown.json()["digest"] if shown.status_code == 200 else ""
            return await self._call(who.id, "POST", path, {"approved": answer == "ok", "digest": digest})

        return await self._act(f"e{len(self._events)}", decide)

    async def repeat(self, event_id: str) -> None:
        await self._events[event_id]()

    async def shown(self, chat_id: str) -> list[ShownMessage]:
        answer = await self._call(chat_id, "GET", "conversations/main/messages")
        messages = [message for message in answer.json()["messages"] if message.get("role") != "user"]
        return [await self._render(chat_id, message) for message in messages]

    async def _render(self, person: str, message: dict[str, Any]) -> ShownMessage:
        text, question = message.get("text", ""), message.get("question")
        buttons = [Button(text=button["text"], data=button["data"]) for button in message.get("buttons", ())]
        if question is not None:
            text = f"May I use {question['tool']}? {question.get('outcome', '')}".strip()
            names = () if question.get("outcome") else (("Approve", "ok"), ("Reject", "no"))
            buttons = [Button(text=name, data=f"{answer}:{question['approval_id']}") for name, answer in names]
        files = [await self._file(person, file) for file in message.get("files", ())]
        return ShownMessage(message_id=str(message["number"]), text=text, buttons=tuple(buttons), files=tuple(files))

    async def _file(self, person: str, file: dict[str, Any]) -> ChatFile:
        data = (await self._call(person, "GET", f"files/{file['id']}")).content
        return ChatFile(media_type=file["media_type"], data=data, name=file.get("name", ""))

    async def notice(self, event_id: str) -> str:
        return ""

    async def fail(self, failure: PushFailure, *, times: int = 1) -> None:
        self._failures.extend(failure for _ in range(times))

    async def go_away(self, *, times: int) -> None:
        await self.fail("unavailable", times=times)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        while not await condition():
            polls = [asyncio.ensure_future(self._poll(person)) for person in self._cookies]
            await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
            for poll in polls:
                poll.cancel()
            await asyncio.gather(*polls, return_exceptions=True)

    async def _poll(self, person: str) -> None:
        frame = await self._call(person, "GET", f"poll?after={self._cursors.get(person, 0)}")
        self._cursors[person] = frame.json()["cursor"]

    def event(self, who: ChatPerson, text: str) -> bytes:
        return msgspec.json.encode({"client_id": "unsent", "text": text})

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        return {"origin": ORIGIN, "cookie": next(iter(self._cookies.values())), "host": "127.0.0.1"}


@asynccontextmanager
async def drive_page() -> AsyncIterator[DrivenPage]:
    """Open browsers, in the loop of the test."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        yield DrivenPage(http)
