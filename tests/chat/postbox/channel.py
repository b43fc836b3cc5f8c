"""A channel for Postbox, a chat platform that sends signed events to a webhook and takes calls over HTTP."""

from typing import Any, Unpack

import msgspec

from frontdesk import PushNotEditableError, PushNotModifiedError, PushStoppedError, chat

SIGNATURE, TIME = b"postbox-signature", b"postbox-time"
ERRORS = {304: PushNotModifiedError, 409: PushStoppedError, 410: PushNotEditableError}


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
    id: str = ""
    name: str = ""


class PostboxChannel(chat.LiveAnswers, chat.TypingNotices, chat.AnswersClicks, chat.FetchesFiles, chat.PublishesMenus):
    """Answers people on Postbox."""

    dialect = chat.Mrkdwn()
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
        **settings: Unpack[chat.ChatSettings],
    ) -> None:
        super().__init__(name=name, path=path, **settings)
        self._secret = chat.Secret(secret)
        headers = {"authorization": chat.Secret(f"Bearer {token}"), "content-type": "application/json"}
        self._http = chat.PlatformHttp(url, headers=headers, allow_private=allow_private)

    async def connect(self) -> chat.BotIdentity:
        me = await self._call("me", {})
        return chat.BotIdentity(id=me.id, name=me.name)

    async def verify(self, headers: chat.Headers, body: bytes, now: float) -> None:
        time = headers.get(TIME, b"")
        chat.verify_hmac(self.list_secrets(self._secret), time + b"." + body, headers.get(SIGNATURE, b""))
        chat.verify_time(time, now)

    def read(self, event: bytes, bot: chat.BotIdentity, proof: chat.Proof | None) -> chat.InboundMessage | None:
        said = chat.decode_event(event, Event)
        if said.kind not in ("message", "edit", "click"):
            return None
        user, kind = said.user, "group" if said.group else "direct"
        files = (chat.InboundFile(file_id=f.id, media_type=f.type, name=f.name, size=f.size) for f in said.files)
        click = chat.Click(data=said.data, callback_id=said.click, message_id=said.message)
        return chat.InboundMessage(
            event_id=said.id,
            at=said.at,
            sender=chat.Sender(id=user.id, name=user.name, locale=user.language, is_bot=user.bot),
            place=chat.Destination(chat_id=said.chat, thread_id=said.thread, kind=kind),
            message_id=said.message,
            text=said.text.replace(f"@{bot.name}", "").strip() if said.to_bot else said.text,
            mentioned=said.to_bot,
            click=click if said.click else None,
            media=tuple(files),
            album=said.album,
            edited=said.kind == "edit",
        )

    async def send(self, message: chat.OutboundMessage, destination: chat.Destination, key: str) -> str:
        body = {**build_body(message), **_place(destination), "reply_to": message.reply_to, "key": key}
        return (await self._call("send", body)).id

    async def edit(self, message_id: str, message: chat.OutboundMessage, destination: chat.Destination) -> None:
        await self._call("edit", {**build_body(message), "id": message_id})

    async def delete(self, message_id: str, destination: chat.Destination) -> None:
        await self._call("delete", {"id": message_id})

    async def direct(self, user_id: str) -> chat.Destination:
        return chat.Destination(chat_id=(await self._call("open", {"user": user_id})).id)

    async def typing(self, destination: chat.Destination, *, on: bool) -> None:
        if on:
            await self._call("typing", _place(destination))

    async def answer_click(self, callback_id: str, text: str) -> None:
        await self._call("answer", {"click": callback_id, "text": text})

    async def publish(self, menu: chat.Menu) -> None:
        if menu.scope is None and menu.locale is None:
            await self._call("commands", {command.name: command.description for command in menu.commands})

    async def fetch(self, file: chat.InboundFile, max_bytes: int) -> bytes:
        return await self._http.download(f"files/{file.file_id}", max_bytes=max_bytes)

    async def close(self) -> None:
        await self._http.close()

    async def _call(self, method: str, body: Any) -> Made:
        response = await self._http.request("POST", method, content=msgspec.json.encode(body))
        return response.checked(ERRORS).json(Made)


def _place(destination: chat.Destination) -> dict[str, str]:
    return {"chat": destination.chat_id, "thread": destination.thread_id}


def build_body(message: chat.OutboundMessage) -> dict[str, Any]:
    files = [{"type": file.media_type, "name": file.name, "data": file.data} for file in message.media]
    buttons = [{"text": button.text, "data": button.data} for button in message.buttons]
    return {"text": message.text, "files": files, "buttons": buttons}
