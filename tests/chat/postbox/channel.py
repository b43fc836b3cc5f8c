"""A channel for Postbox, a chat platform that sends signed events to a webhook and takes calls over HTTP."""

import hashlib
import hmac
from typing import Any, TypeVar

import msgspec

from frontdesk import (
    FileTooLargeError,
    InvalidRequestError,
    PushNotEditableError,
    PushNotModifiedError,
    UnauthenticatedError,
)
from frontdesk.chat import (
    AnswersClicks,
    BotIdentity,
    ChatConfig,
    Click,
    Destination,
    FetchesFiles,
    Headers,
    InboundFile,
    InboundMessage,
    LiveAnswers,
    Menu,
    Mrkdwn,
    OutboundMessage,
    PlatformHttp,
    PlatformResponse,
    PublishesMenus,
    Secret,
    Sender,
    TypingNotices,
    push_error_from,
)

T = TypeVar("T")
SIGNATURE, TIME = b"postbox-signature", b"postbox-time"
WINDOW = 300


class User(msgspec.Struct):
    id: str
    name: str
    language: str = ""
    bot: bool = False


class Attachment(msgspec.Struct):
    id: str
    type: str
    size: int
    name: str = ""


class Event(msgspec.Struct):
    id: str
    at: float
    kind: str
    chat: str
    user: User
    group: bool = False
    thread: str = ""
    message: str = ""
    text: str = ""
    to_bot: bool = False
    files: tuple[Attachment, ...] = ()
    album: str = ""
    data: str = ""
    click: str = ""


class Made(msgspec.Struct):
    id: str
    name: str = ""


class PostboxChannel(LiveAnswers, TypingNotices, AnswersClicks, FetchesFiles, PublishesMenus):
    """Answers people on Postbox."""

    dialect = Mrkdwn()
    text_limit = 1_000
    text_unit = "utf16"
    signature_headers = (SIGNATURE, TIME)
    # Postbox drops a message whose key it knows.
    push_is_idempotent = True

    def __init__(
        self,
        *,
        url: str,
        token: str,
        secret: str,
        name: str = "postbox",
        path: str = "/postbox",
        allow_private: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(ChatConfig(**settings), name=name, path=path)
        self._secret = Secret(secret)
        headers = {"authorization": Secret(f"Bearer {token}"), "content-type": "application/json"}
        self._http = PlatformHttp(url, headers=headers, allow_private=allow_private)

    async def connect(self) -> BotIdentity:
        me = await self._call("me", {}, Made)
        return BotIdentity(id=me.id, name=me.name)

    def verify(self, headers: Headers, body: bytes, now: float) -> None:
        time, given = headers.get(TIME, b""), headers.get(SIGNATURE, b"")
        expected = hmac.new(self._secret.reveal().encode(), time + b"." + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected.encode(), given):
            raise UnauthenticatedError("The signature of the event is wrong.")
        if not time.isdigit() or len(time) > 12 or abs(now - int(time)) > WINDOW:
            raise UnauthenticatedError("The event was signed at another time.")

    def read(self, event: bytes, bot: BotIdentity) -> InboundMessage | None:
        try:
            said = msgspec.json.decode(event, type=Event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequestError(f"The event can't be understood: {error}.") from None
        if said.kind not in ("message", "edit", "click"):
            return None
        user = said.user
        files = (
            InboundFile(file_id=file.id, media_type=file.type, name=file.name, size=file.size) for file in said.files
        )
        return InboundMessage(
            event_id=said.id,
            at=said.at,
            sender=Sender(id=user.id, name=user.name, locale=user.language, is_bot=user.bot),
            place=Destination(chat_id=said.chat, thread_id=said.thread, kind="group" if said.group else "direct"),
            message_id=said.message,
            text=said.text.replace(f"@{bot.name}", "").strip() if said.to_bot else said.text,
            mentioned=said.to_bot,
            click=Click(data=said.data, callback_id=said.click, message_id=said.message) if said.click else None,
            media=tuple(files),
            album=said.album,
            edited=said.kind == "edit",
        )

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str:
        body = {**_shown(message), **_place(destination), "reply_to": message.reply_to, "key": key}
        return (await self._call("send", body, Made)).id

    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        await self._call("edit", {**_shown(message), "id": message_id}, Any)

    async def delete(self, message_id: str, destination: Destination) -> None:
        await self._call("delete", {"id": message_id}, Any)

    async def direct(self, user_id: str) -> Destination:
        return Destination(chat_id=(await self._call("open", {"user": user_id}, Made)).id)

    async def typing(self, destination: Destination, *, on: bool) -> None:
        if on:
            await self._call("typing", _place(destination), Any)

    async def answer_click(self, callback_id: str, text: str) -> None:
        await self._call("answer", {"click": callback_id, "text": text}, Any)

    async def publish(self, menu: Menu) -> None:
        if menu.scope is None and menu.locale is None:
            commands = {command.name: command.description for command in menu.commands}
            await self._call("commands", commands, Any)

    async def fetch(self, file: InboundFile, max_bytes: int) -> bytes:
        response = await self._http.request("GET", f"files/{file.file_id}", max_bytes=max_bytes + 1)
        if len(response.body) > max_bytes:
            raise FileTooLargeError(max_bytes)
        return _accepted(response).body

    async def close(self) -> None:
        await self._http.close()

    async def _call(self, method: str, body: Any, kind: type[T] | Any) -> T:
        response = await self._http.request("POST", method, content=msgspec.json.encode(body))
        return _accepted(response).json(kind)


def _accepted(response: PlatformResponse) -> PlatformResponse:
    if response.ok:
        return response
    if response.status == 304:
        raise PushNotModifiedError("The message has this text already.")
    if response.status == 410:
        raise PushNotEditableError("The message is gone.")
    raise push_error_from(response)


def _place(destination: Destination) -> dict[str, str]:
    return {"chat": destination.chat_id, "thread": destination.thread_id}


def _shown(message: OutboundMessage) -> dict[str, Any]:
    files = [{"type": file.media_type, "name": file.name, "data": file.data} for file in message.media]
    buttons = [{"text": button.text, "data": button.data} for button in message.buttons]
    return {"text": message.text, "files": files, "buttons": buttons}
