"""The base class of fake chat platforms: people, events that are repeated until acknowledged, and calls that fail."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

import httpx
import msgspec

from frontdesk.clock import SystemClock
from frontdesk_testing.chat_platform import ChatFile, ChatPerson, PushFailure, ShownMessage
from frontdesk_testing.messages.platform.http import Call, Connection, Reply

_RETRY_SECONDS = 0.02
_RECHECK_SECONDS = 0.1
"""A condition may depend on the host, which does not report its changes to the platform."""
_JSON = {"content-type": "application/json"}


EventType = Literal["message", "click", "invoke", "feedback", "opened", "closed"]


class PlatformEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A message, a click or an invoke, before it is encoded in the format of the platform."""

    event_id: str
    kind: EventType
    at: float
    sender: ChatPerson
    chat_id: str
    is_group: bool = False
    thread_id: str = ""
    message_id: str = ""
    """The id of the message, or of the message whose button was pressed."""
    text: str = ""
    mentions_bot: bool = False
    files: Mapping[str, ChatFile] = {}
    """The files by the ids under which `ChatPlatformBase.files` has them."""
    album: str = ""
    data: str = ""
    """The data of the button, or the name of the operation that is invoked."""


class PlatformCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the bot."""

    method: str
    path: str
    """The path below `ChatPlatformBase.url`, without a slash at its beginning."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class PlatformError(Exception):
    """The platform refuses a call with a status and a JSON body."""

    def __init__(self, status: int, body: Any = None) -> None:
        super().__init__(f"The platform answers {status}.")
        self.status = status
        self.body: Any = {} if body is None else body


class _ReplyLostError(Exception):
    """The call was accepted and its response is lost."""


class ChatPlatformBase(ABC):
    """A `FakePlatform` with a real HTTP server. A subclass has the formats of the platform.

    class MyPlatform(ChatPlatformBase):
        def encode(self, event): ...
        def signed(self, body, *, at): ...
        def answer(self, call): ...

    async with MyPlatform() as platform:
        channel = MyChannel(url=platform.url)
    """

    mention = "@bot"
    base_path: ClassVar[str] = ""
    """The path that all calls have before their own."""
    failure_statuses: ClassVar[Mapping[PushFailure, int]] = {"limited": 429, "unavailable": 503, "refused": 403}
    """The statuses of the calls that `fail` makes fail. A lost one has none."""
    missing_status: ClassVar[int] = 404
    """The status of a call about a message that does not exist."""

    def __init__(self) -> None:
        self.url = ""
        """The URL that the channel calls, once the platform has started."""
        self.people: dict[str, ChatPerson] = {}
        self.files: dict[str, ChatFile] = {}
        self.messages: dict[str, ShownMessage] = {}
        """The messages of the bot, as they are shown now."""
        self.bodies: dict[str, bytes] = {}
        """The encoded events by their ids, in their order."""
        self.notices: dict[str, str] = {}
        """The texts shown to the people who pressed a button, by the ids of the events."""
        self._chats: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._groups = 0
        self._failures: list[PushFailure] = []
        self._away = 0
        self._changed = asyncio.Event()
        self._webhook: asyncio.Future[str] | None = None
        self._unsent: asyncio.Queue[str] = asyncio.Queue()
        self._error: Exception | None = None

    @abstractmethod
    def encode(self, event: PlatformEvent) -> bytes:
        """Return the body of an event."""

    @abstractmethod
    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        """Return the headers with which the platform sends a body at a time."""

    @abstractmethod
    def answer(self, call: PlatformCall) -> Any:
        """Return the JSON or the bytes with which a call of the bot is answered. Raise `PlatformError` to refuse it."""

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._webhook = loop.create_future()
        self._http = httpx.AsyncClient(timeout=60, trust_env=False)
        self._server = await loop.create_server(lambda: Connection(self._reply), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self.base_path}"
        self._sender = asyncio.create_task(self.deliver_events())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sender.cancel()
        with suppress(asyncio.CancelledError):
            await self._sender
        self._server.close()
        await self._http.aclose()
        if error is None and self._error is not None:
            raise self._error

    async def listen(self, url: str) -> None:
        """Send events to the webhook of a host from now on."""
        if self._webhook is None or self._webhook.done():
            self._webhook = asyncio.get_running_loop().create_future()
        self._webhook.set_result(url)

    async def person(self, name: str) -> ChatPerson:
        number = len(self.people)
        person = self.people[f"u-{number}"] = ChatPerson(id=f"u-{number}", name=name, chat_id=f"d-{number}")
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
        attached = {f"f-{number}": file for number, file in enumerate(files, len(self.files))}
        self.files |= attached
        event = self._build("message", who, chat_id, thread_id=thread_id, text=text, files=attached, album=album)
        return self._queue(event)

    async def press(self, who: ChatPerson, message: ShownMessage, data: str, *, chat_id: str = "") -> str:
        event = self._build("click", who, chat_id, thread_id=message.thread_id, data=data)
        return self._queue(msgspec.structs.replace(event, message_id=message.message_id))

    async def invoke(self, who: ChatPerson, name: str) -> tuple[int, bytes]:
        event = msgspec.structs.replace(self._build("invoke", who, "", data=name), event_id=f"invoke of {name}")
        response = await self._post(self.encode(event))
        return response.status_code, response.content

    async def rate(self, who: ChatPerson, message: ShownMessage, value: str, *, chat_id: str = "") -> str:
        event = self._build("feedback", who, chat_id, thread_id=message.thread_id, data=value)
        return self._queue(msgspec.structs.replace(event, message_id=message.message_id))

    async def open(self, who: ChatPerson) -> str:
        return self._queue(self._build("opened", who, ""))

    async def close(self, who: ChatPerson) -> str:
        return self._queue(self._build("closed", who, ""))

    def event(self, who: ChatPerson, text: str) -> bytes:
        event = self._build("message", who, "", text=text)
        return self.encode(msgspec.structs.replace(event, event_id="e-not-sent"))

    def _build(self, kind: EventType, who: ChatPerson, chat_id: str, text: str = "", **fields: Any) -> PlatformEvent:
        event_id, chat_id = f"e-{len(self.bodies)}", chat_id or who.chat_id
        return PlatformEvent(
            event_id=event_id,
            kind=kind,
            at=SystemClock().now(),
            sender=who,
            chat_id=chat_id,
            is_group=chat_id != who.chat_id,
            message_id=f"message of {event_id}",
            text=text,
            mentions_bot=self.mention in text,
            **fields,
        )

    def _queue(self, event: PlatformEvent) -> str:
        self.bodies[event.event_id] = self.encode(event)
        self._unsent.put_nowait(event.event_id)
        self.change()
        return event.event_id

    async def deliver_events(self) -> None:
        """Send the events to the webhook, each until it is acknowledged. Override it where the bot fetches them."""
        while True:
            await self.repeat(await self._unsent.get())

    async def repeat(self, event_id: str) -> None:
        body = self.bodies[event_id]
        while True:
            with suppress(httpx.TransportError):
                if (await self._post(body)).is_success:
                    return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _post(self, body: bytes) -> httpx.Response:
        """Send a body to the webhook, once it is known."""
        assert self._webhook is not None, "the platform was not started"
        url = await asyncio.shield(self._webhook)
        headers = {**_JSON, **self.signed(body, at=SystemClock().now())}
        return await self._http.post(url, content=body, headers=headers)

    async def shown(self, chat_id: str) -> list[ShownMessage]:
        return [message for message_id, message in self.messages.items() if self._chats[message_id] == chat_id]

    async def notice(self, event_id: str) -> str:
        return self.notices.get(event_id, "")

    async def fail(self, failure: PushFailure, *, times: int = 1) -> None:
        self._failures.extend(failure for _ in range(times))

    async def go_away(self, *, times: int) -> None:
        self._away = times

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        while True:
            changed = self._changed
            if self._error is not None:
                raise self._error
            if await condition():
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _RECHECK_SECONDS)

    def change(self) -> None:
        """Let `until` check its condition again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def add_message(self, chat_id: str, *, key: str = "", **fields: Any) -> str:
        """Show a message with the fields of `ShownMessage` and return its id: the same id for a key that is known.

        The failures that `fail` has set happen here.
        """
        failure = self._failures.pop(0) if self._failures else None
        if failure is not None and failure in self.failure_statuses:
            raise PlatformError(self.failure_statuses[failure], {"retry_after": 0.01})
        message_id = self._keys.get(key) if key else None
        if message_id is None:
            message_id = f"m-{len(self._chats)}"
            self.messages[message_id] = ShownMessage(message_id=message_id, **fields)
            self._chats[message_id] = chat_id
            if key:
                self._keys[key] = message_id
        if failure == "lost":
            raise _ReplyLostError
        return message_id

    def edit_message(self, message_id: str, **fields: Any) -> bool:
        """Change fields of a message. Return False if it has these values already."""
        before = self._require(message_id)
        self.messages[message_id] = after = msgspec.structs.replace(before, **fields)
        return after != before

    def delete_message(self, message_id: str) -> None:
        self._require(message_id)
        del self.messages[message_id]

    def _require(self, message_id: str) -> ShownMessage:
        if message_id not in self.messages:
            raise PlatformError(self.missing_status)
        return self.messages[message_id]

    async def _reply(self, call: Call) -> Reply | None:
        if self._away:
            self._away -= 1
            return 503, b"{}"
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers.items()}
        path = call.path.removeprefix(self.base_path).removeprefix("/")
        try:
            made = self.answer(
                PlatformCall(method=call.method, path=path, query=call.query, headers=headers, body=call.body)
            )
            return 200, made if isinstance(made, bytes) else msgspec.json.encode(made)
        except PlatformError as error:
            return error.status, msgspec.json.encode(error.body)
        except _ReplyLostError:
            return None
        except Exception as error:
            # Otherwise a fake that fails would look like a platform that is away.
            self._error = self._error or error
            raise
        finally:
            self.change()
