"""The page and its JSON routes under `/people`."""

import asyncio
import contextlib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from frontdesk_testing.telegram.errors import ApiError
from frontdesk_testing.telegram.files import MEDIA_KINDS, Upload
from frontdesk_testing.telegram.page.bodies import (
    Act,
    Advance,
    Change,
    Fail,
    NewGroup,
    NewTopic,
    NewUser,
    Press,
    Say,
)
from frontdesk_testing.telegram.records import Chat, Json, Message, User
from frontdesk_testing.telegram.server import FakeTelegram

MAX_WAIT_SECONDS = 25.0
_FILES = {
    "": ("page.html", "text/html"),
    "page.css": ("page.css", "text/css"),
    "page.js": ("page.js", "text/javascript"),
}
_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src data:; frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
}


class PeoplePage:
    """Acts for the current viewer of the page."""

    def __init__(self, telegram: FakeTelegram) -> None:
        self._telegram = telegram
        self._actions: dict[str, tuple[Any, Callable[[Any], Any]]] = {
            "user": (NewUser, self._add_user),
            "group": (NewGroup, self._add_group),
            "topic": (NewTopic, self._add_topic),
            "say": (Say, self._say),
            "press": (Press, self._press),
            "change": (Change, self._change),
            "act": (Act, self._act),
            "fail": (Fail, self._fail),
            "advance": (Advance, self._advance),
        }

    def routes(self) -> list[BaseRoute]:
        """Return the routes, which come before those of the Bot API."""
        shown: list[BaseRoute] = [Route(f"/{path}", _static(*file)) for path, file in _FILES.items()]
        state = Route("/people/state", self.state, methods=["GET"])
        return [*shown, state, Route("/people/{action}", self.act, methods=["POST"])]

    async def state(self, request: Request) -> Response:
        """Return the visible state, once it has changed."""
        query = request.query_params
        try:
            after, chat_id, user_id = (int(query.get(name, "-1")) for name in ("after", "chat", "user"))
        except ValueError:
            return _json({"error": "after, chat and user are numbers"}, 400)
        world = self._telegram.world
        with contextlib.suppress(TimeoutError):
            await world.until(lambda: world.changes > after or world.closed, within=MAX_WAIT_SECONDS)
        return _json(self._render(chat_id, user_id))

    async def act(self, request: Request) -> Response:
        """Execute an action of the page."""
        kind, action = self._actions.get(request.path_params["action"], (None, None))
        # Another site's page can't send this type without asking first, and nobody answers it.
        if request.headers.get("content-type") != "application/json" or action is None:
            return _json({"error": "there is no such action, or the body is not JSON"}, 404)
        try:
            return _json(action(msgspec.json.decode(await request.body(), type=kind)))
        except (msgspec.MsgspecError, ValueError, KeyError, ApiError) as error:
            return _json({"error": str(error)}, 400)

    def _user(self, user_id: int) -> User:
        return self._telegram.world.users[user_id]

    def _chat(self, chat_id: int) -> Chat:
        telegram = self._telegram
        if chat_id > 0:
            return telegram.private(self._user(chat_id))
        return telegram.world.chats[chat_id]

    def _message(self, chat_id: int, message_id: int) -> Message:
        return self._chat(chat_id).messages[message_id]

    def _add_user(self, given: NewUser) -> Json:
        user = self._telegram.user(given.first_name, username=given.username, language_code=given.language_code)
        self._telegram.private(user)
        return user.as_json()

    def _add_group(self, given: NewGroup) -> Json:
        people = [self._user(user_id) for user_id in given.users]
        kind = "supergroup" if given.supergroup or given.forum else "group"
        return self._telegram.group(given.title, *people, kind=kind, forum=given.forum).as_json()

    def _add_topic(self, given: NewTopic) -> Json:
        return self._telegram.topic(self._chat(given.chat), given.name, by=self._user(given.user)).as_json()

    def _say(self, given: Say) -> Json:
        chat = self._chat(given.chat or given.user)
        reply = None if given.reply_to is None else chat.messages[given.reply_to]
        media = None
        if given.file is not None:
            if given.file.kind not in MEDIA_KINDS:
                raise ValueError(f"there is no media of the kind {given.file.kind}")
            media = (given.file.kind, Upload(given.file.content, given.file.name))
        elif not given.text.strip():
            raise ValueError("there is nothing to say")
        user = self._user(given.user)
        return self._telegram.say(user, given.text, chat, media=media, reply_to=reply, thread=given.thread).as_json()

    def _press(self, given: Press) -> Json:
        message = self._message(given.chat, given.message_id)
        return {"callback": self._telegram.press(self._user(given.user), message, given.button).id}

    def _change(self, given: Change) -> Json:
        message = self._message(given.chat, given.message_id)
        if message.sender.id != given.user:
            raise ValueError("this message is somebody else's")
        if given.text.strip():
            return self._telegram.edit(message, given.text).as_json()
        self._telegram.delete(message)
        return {}

    def _act(self, given: Act) -> Json:
        user, telegram = self._user(given.user), self._telegram
        if given.action == "start":
            return telegram.start(user, given.payload).as_json()
        if given.action == "stop":
            telegram.stop(user, thread=given.thread)
        elif given.action == "block":
            telegram.block(user)
        elif given.action == "unblock":
            telegram.unblock(user)
        else:
            raise ValueError(f"there is no action {given.action}")
        return {}

    def _fail(self, given: Fail) -> Json:
        more = {} if given.retry_after is None else {"retry_after": given.retry_after}
        self._telegram.fail_next(given.method, given.code, given.description, times=given.times, **more)
        return {}

    def _advance(self, given: Advance) -> Json:
        now = self._telegram.clock.advance(given.seconds)
        self._telegram.world.change()
        return {"now": now}

    def _render(self, chat_id: int, user_id: int) -> Json:
        telegram, world = self._telegram, self._telegram.world
        people = [user for user in world.users.values() if not user.is_bot]
        groups = [chat for chat in world.chats.values() if chat.migrated_to is None]
        mine = [chat for chat in groups if chat.get_status(user_id) not in ("left", "kicked")]
        body: Json = {"changes": world.changes, "bot": telegram.bot.as_json()}
        body["users"] = [user.as_json() for user in people]
        body["chats"] = [
            {**chat.as_json(), "topics": [topic.as_json() for topic in chat.topics.values()]}
            for chat in [*telegram.bot.private.values(), *mine]
            if chat.kind != "private" or chat.id == user_id
        ]
        if any(chat["id"] == chat_id for chat in body["chats"]):
            chat, user = self._chat(chat_id), world.users[user_id]
            body["transcript"] = msgspec.to_builtins(telegram.shown(chat))
            body["menu"] = telegram.menu(user, chat)
            body["blocked"] = user_id in telegram.bot.blocked_by
            body["answers"] = [
                {"id": callback.id, "text": callback.text, "alert": callback.alert}
                for callback in telegram.bot.callbacks.values()
                if callback.user.id == user_id and callback.text
            ]
        return body


def _static(name: str, media_type: str) -> Callable[[Request], Any]:
    async def show(request: Request) -> Response:
        content = await asyncio.to_thread((files("frontdesk_testing.telegram.page") / name).read_bytes)
        return Response(content, media_type=media_type, headers=_HEADERS)

    return show


def _json(body: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json", headers=_HEADERS)
