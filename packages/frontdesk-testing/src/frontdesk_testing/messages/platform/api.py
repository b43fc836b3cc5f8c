"""The platform over HTTP: the calls of a bot under `/bot`, and those of a test under `/control`."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from frontdesk_testing.messages.platform.control import ACTIONS, QUESTIONS, Platform
from frontdesk_testing.messages.platform.faults import STATUS, Fault
from frontdesk_testing.messages.platform.http import Call, Reply
from frontdesk_testing.messages.platform.records import RefusedError
from frontdesk_testing.messages.wire import (
    AnswerClick,
    Commands,
    Delete,
    Edit,
    Me,
    Private,
    Problem,
    Refusal,
    Send,
    Typing,
    Webhook,
)

_MAX_WAIT_SECONDS = 30.0
_encoder = msgspec.json.Encoder()
_send = msgspec.json.Decoder(Send)
_MESSAGES: dict[str, str] = {
    "blocked": "The user has blocked this bot.",
    "not_found": "There is no such chat.",
    "bad_request": "The message can't be understood.",
    "flood": "Too many messages.",
    "error": "Something went wrong.",
    "unavailable": "Try again later.",
}


class Api:
    """Answers every call."""

    def __init__(self, platform: Platform, token: str) -> None:
        self._platform = platform
        self._world = platform.world
        self._accepts = platform.bot
        self._authorization = f"Bearer {token}".encode()
        self._passing: dict[str, asyncio.Event] = {}
        self._bot: dict[str, Callable[[Call], Awaitable[Any]]] = {
            "send": self._send,
            "edit": self._edit,
            "delete": self._delete,
            "typing": self._set_typing,
            "answer": self._answer,
            "private": self._private,
            "commands": self._commands,
            "webhook": self._webhook,
            "events": self._events,
            "sent": self._get_sent,
            "me": self._me,
        }

    async def __call__(self, call: Call) -> Reply | None:
        try:
            if call.path == "/bot/send":
                return await self._call("send", call)
            if call.path.startswith("/bot/"):
                return await self._call(call.path.removeprefix("/bot/"), call)
            return 200, _encoder.encode(await self._control(call))
        except RefusedError as error:
            return error.status, _encoder.encode(Refusal(error=error.problem))
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            return 400, _encoder.encode(Refusal(error=Problem(code="bad_request", message=str(error))))

    async def _call(self, method: str, call: Call) -> Reply | None:
        if not hmac.compare_digest(call.headers.get(b"authorization", b""), self._authorization):
            raise RefusedError(401, "unauthorized", "The token is wrong.")
        handler = self._bot.get(method)
        if handler is None:
            raise RefusedError(404, "method_not_found", "There is no such method.")
        fault = self._platform.faults.strike(method, self._chat(method, call))
        if fault is None:
            return 200, _encoder.encode(await handler(call))
        self._world.change()
        return await self._fail(fault, handler, call, self._chat(method, call))

    def _chat(self, method: str, call: Call) -> str:
        """Return the chat of a call. Only called if a fault depends on it."""
        if not self._platform.faults.counts() or method not in ("send", "edit", "delete", "typing"):
            return ""
        asked = _send.decode(call.body)
        return self._world.direct(asked.user_id) if asked.user_id else asked.chat_id

    async def _fail(
        self, fault: Fault, handler: Callable[[Call], Awaitable[Any]], call: Call, chat_id: str
    ) -> Reply | None:
        kind = fault.kind
        if kind in STATUS:
            wait = fault.retry_after if fault.retry_after is not None else 1.0 if kind == "flood" else None
            problem = Problem(code=kind, message=_MESSAGES[kind], retry_after=wait, scope=fault.scope)
            return STATUS[kind], _encoder.encode(Refusal(error=problem))
        if kind in ("timeout_before", "cut_before"):
            return await self._hold(call, fault.seconds if kind == "timeout_before" else 0)
        if kind in ("timeout_after", "cut_after"):
            await handler(call)
            return await self._hold(call, fault.seconds if kind == "timeout_after" else 0)
        if kind == "slow":
            await asyncio.sleep(fault.seconds)
        elif call.path == "/bot/events":
            return 200, _encoder.encode({"events": (await handler(call))["events"][::-1]})
        else:
            await self._overtaken(f"edit {fault.behind}" if fault.behind else chat_id, fault.seconds)
        return 200, _encoder.encode(await handler(call))

    async def _hold(self, call: Call, seconds: float) -> None:
        """Block a call until its client disconnects, then close the connection."""
        if seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(call.gone.wait(), seconds)

    async def _overtaken(self, name: str, seconds: float) -> None:
        """Wait for another message in the chat, or for the given edit."""
        passed = self._passing.setdefault(name, asyncio.Event())
        with suppress(TimeoutError):
            await asyncio.wait_for(passed.wait(), seconds)

    async def _send(self, call: Call) -> Any:
        sent = await self._accepts.send(_send.decode(call.body))
        if self._passing and (passed := self._passing.pop(sent.chat_id, None)) is not None:
            passed.set()
        if self._world.settings.receipts and not sent.duplicate:
            self._platform.webhooks.deliver(self._world.report(sent.chat_id, sent.message_id, "delivered", ""))
        return sent

    async def _edit(self, call: Call) -> Any:
        edit = msgspec.json.decode(call.body, type=Edit)
        edited = await self._accepts.edit(edit)
        if (passed := self._passing.pop(f"edit {edit.text}", None)) is not None:
            passed.set()
        return edited

    async def _delete(self, call: Call) -> Any:
        await self._accepts.delete(msgspec.json.decode(call.body, type=Delete))
        return {}

    async def _set_typing(self, call: Call) -> Any:
        await self._accepts.set_typing(msgspec.json.decode(call.body, type=Typing))
        return {}

    async def _answer(self, call: Call) -> Any:
        await self._accepts.answer(msgspec.json.decode(call.body, type=AnswerClick))
        return {}

    async def _private(self, call: Call) -> Any:
        await self._accepts.show_privately(msgspec.json.decode(call.body, type=Private))
        return {}

    async def _commands(self, call: Call) -> Any:
        await self._accepts.publish(msgspec.json.decode(call.body, type=Commands))
        return {}

    async def _webhook(self, call: Call) -> Any:
        self._platform.webhooks.use(msgspec.json.decode(call.body, type=Webhook))
        return {}

    async def _me(self, call: Call) -> Any:
        settings = self._world.settings
        return Me(user_id=self._world.me.user_id, handle=settings.handle, text_limit=settings.text_limit)

    async def _get_sent(self, call: Call) -> Any:
        return self._accepts.get_sent(call.query.get("idempotency_key", ""))

    async def _events(self, call: Call) -> Any:
        world, offset = self._world, int(call.query.get("offset", "0"))
        limit, wait = int(call.query.get("limit", "100")), float(call.query.get("timeout", "0"))
        world.confirm(offset)
        until = world.now() + min(wait, _MAX_WAIT_SECONDS)
        while True:
            seen = world.changes
            events = [] if world.settings.hold else world.list_unconfirmed(offset, limit)
            left = until - world.now()
            if events or left <= 0 or call.gone.is_set():
                return {"events": events}
            await world.wait_for_change(seen, left)

    async def _control(self, call: Call) -> Any:
        name = call.path.removeprefix("/control/")
        if call.method == "GET" and name in QUESTIONS:
            return await QUESTIONS[name](self._platform, call.query)
        if call.method == "POST" and name in ACTIONS:
            return await ACTIONS[name](self._platform, msgspec.json.decode(call.body or b"{}"))
        raise RefusedError(404, "not_found", "There is nothing here.")
