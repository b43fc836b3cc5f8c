"""The fake Telegram, as the contract of chat channels drives it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from frontdesk.chat.messages import Button
from frontdesk_testing import ChatFile, ChatPerson, ShownMessage
from frontdesk_testing.chat_platform import PushFailure
from frontdesk_testing.telegram import FakeTelegram, Upload, fake_telegram
from frontdesk_testing.telegram.bots import Callback, Webhook
from frontdesk_testing.telegram.markup.entities import format_text
from frontdesk_testing.telegram.records import Chat, Message
from frontdesk_testing.telegram.updates import Pending

SECRET = "the-secret-of-the-webhook"
HEADER = "x-telegram-bot-api-secret-token"


class DrivenTelegram:
    """The fake in the loop of the test. Topics are made when they are first named."""

    mention = "@frontdesk_bot"

    def __init__(self, fake: FakeTelegram, http: httpx.AsyncClient) -> None:
        self.fake = fake
        self._http = http
        self._topics: dict[tuple[int, str], int] = {}
        self._events: dict[str, Pending] = {}
        self._clicks: dict[str, Callback] = {}

    async def listen(self, url: str) -> None:
        self.fake.world.webhooks.use(self.fake.bot, Webhook(url, SECRET))

    async def person(self, name: str) -> ChatPerson:
        user = self.fake.user(name)
        self.fake.private(user)
        return ChatPerson(id=str(user.id), name=name, chat_id=str(user.id))

    async def group(self, *people: ChatPerson) -> str:
        users = [self.fake.world.users[int(person.id)] for person in people]
        return str(self.fake.supergroup("Friends", *users, forum=True).id)

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
        chat, user = self._chat(chat_id or who.chat_id), self.fake.world.users[int(who.id)]
        media = [("document", Upload(file.data, file.name, file.media_type)) for file in files]
        thread = self._topic(chat, thread_id, user) if thread_id else None
        content = self.fake._content(format_text(text, None, None), media[0] if media else None)
        self.fake.post(user, content, chat, thread=thread, media_group_id=album)
        return self._note()

    async def press(self, who: ChatPerson, message: ShownMessage, data: str, *, chat_id: str = "") -> str:
        chat, user = self._chat(chat_id or who.chat_id), self.fake.world.users[int(who.id)]
        callback = Callback(str(self.fake.world.new_id("callback")), user, data, self.fake.clock.now())
        self.fake.bot.callbacks[callback.id] = callback
        pressed = chat.messages[int(message.message_id)].as_json()
        body = {"id": callback.id, "from": user.as_json(), "message": pressed, "data": data, "chat_instance": "1"}
        self.fake.bot.updates.add("callback_query", body, f"click:{user.id}")
        event_id = self._note()
        self._clicks[event_id] = callback
        return event_id

    def _note(self) -> str:
        update = self.fake.bot.updates.list_pending()[-1]
        self._events[str(update.update_id)] = update
        return str(update.update_id)

    async def repeat(self, event_id: str) -> None:
        update = self._events[event_id]
        await self.fake.world.until(lambda: update not in self.fake.bot.updates.list_pending())
        body, url = msgspec.json.encode(update.as_json()), self.fake.bot.webhook.url
        headers = {"content-type": "application/json", HEADER: SECRET}
        (await self._http.post(url, content=body, headers=headers)).raise_for_status()

    async def shown(self, chat_id: str) -> list[ShownMessage]:
        chat = self._chat(chat_id)
        own = [message for message in chat.messages.values() if message.sender is self.fake.bot.user]
        return [self._render(message) for message in own if not message.deleted]

    def _render(self, message: Message) -> ShownMessage:
        content = message.content
        rows: list[list[Any]] = (message.markup or {}).get("inline_keyboard", [])
        names = {number: name for (chat_id, name), number in self._topics.items() if chat_id == message.chat.id}
        media = content.get("document") or (content["photo"][-1] if "photo" in content else None)
        files: tuple[ChatFile, ...] = ()
        if media is not None:
            upload = self.fake.world.files.get_file(media["file_id"]).upload
            files = (ChatFile(media_type=upload.content_type, data=upload.content, name=upload.filename),)
        return ShownMessage(
            message_id=str(message.message_id),
            text=content.get("text") or content.get("caption") or "",
            thread_id=names.get(message.thread_id or 0, ""),
            buttons=tuple(Button(text=button["text"], data=button["callback_data"]) for row in rows for button in row),
            reply_to="" if message.reply_to is None else str(message.reply_to.message_id),
            files=files,
        )

    async def notice(self, event_id: str) -> str:
        return self._clicks[event_id].text

    async def fail(self, failure: PushFailure, *, times: int = 1) -> None:
        if failure == "lost":
            return self.fake.drop_next("sendMessage", acted=True, times=times)
        errors: dict[str, tuple[int, str, dict[str, int]]] = {
            "limited": (429, "Too Many Requests: retry after 0", {"retry_after": 0}),
            "unavailable": (502, "Bad Gateway", {}),
            "refused": (403, "Forbidden: bot was blocked by the user", {}),
        }
        code, description, parameters = errors[failure]
        self.fake.fail_next("sendMessage", code, description, times=times, **parameters)

    async def shut(self, who: ChatPerson, *, chat_id: str = "") -> None:
        user = self.fake.world.users[int(who.id)]
        if not chat_id:
            return self.fake.block(user)
        self.fake.kick(self._chat(chat_id), self.fake.bot.user, by=user)

    async def readmit(self, who: ChatPerson, *, chat_id: str = "") -> None:
        user = self.fake.world.users[int(who.id)]
        if not chat_id:
            return self.fake.unblock(user)
        self.fake.add_bot(self._chat(chat_id), self.fake.bot, by=user)

    async def go_away(self, *, times: int) -> None:
        self.fake.fail_next("*", 502, "Bad Gateway", times=times)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        world = self.fake.world
        while True:
            seen = world.changes
            if await condition():
                return
            await world.until(lambda before=seen: world.changes != before)

    def event(self, who: ChatPerson, text: str) -> bytes:
        person = {"id": int(who.id), "is_bot": False, "first_name": who.name}
        chat = {"id": int(who.id), "type": "private"}
        message = {"message_id": 1, "date": 1, "chat": chat, "from": person, "text": text}
        return msgspec.json.encode({"update_id": 1, "message": message})

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        return {HEADER: SECRET}

    def _chat(self, chat_id: str) -> Chat:
        number = int(chat_id)
        return self.fake.bot.private[number] if number in self.fake.bot.private else self.fake.world.chats[number]

    def _topic(self, chat: Chat, name: str, user: Any) -> int:
        if (chat.id, name) not in self._topics:
            self._topics[chat.id, name] = self.fake.topic(chat, name, by=user).thread_id
        return self._topics[chat.id, name]


@asynccontextmanager
async def drive_telegram() -> AsyncIterator[DrivenTelegram]:
    """Serve the fake in the loop of the test; its bot sees all that is said in groups."""
    async with fake_telegram(FakeTelegram(privacy=False)) as fake, httpx.AsyncClient(trust_env=False) as http:
        yield DrivenTelegram(fake, http)
