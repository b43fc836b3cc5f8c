"""Sends updates to the page: over WebSocket, by server-sent events, or as poll responses."""

import asyncio
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec
from starlette.types import Scope

from frontdesk.asgi.messages import send_json
from frontdesk.auth.verifier import Allow, HttpVerifier
from frontdesk.channels.web.config import WebChatConfig
from frontdesk.channels.web.mailbox import Chat, Head, Mailbox, MessageRef, as_shown, wait_for
from frontdesk.channels.web.pages import DATA_HEADERS
from frontdesk.channels.web.parse import number_in
from frontdesk.channels.web.wire import StoredMessage
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_within
from frontdesk.errors import ConflictError, RequestError
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.lasting import keep_open
from frontdesk.http.limits import Counter, HttpLimits
from frontdesk.http.server import ServerStop, server_stop
from frontdesk.http.sockets import POLICY, Socket
from frontdesk.http.sse import DEFAULT_TIMES, EventStream, encode_event
from frontdesk.identifiers import digest

_UNKNOWN = -1
_DIGITS = 12
_MAX_SHOWN = 50
"""The number of live messages that a poll can name."""


_NUMBER = re.compile(r"[0-9]{1,15}")


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """One chunk of the feed: events, and the cursor to continue from."""

    cursor: int
    events: list[dict[str, Any]]
    box: str
    """The mailbox in which the cursor counts."""
    shows: str = ""
    """The live messages that a page shows after this frame. Its next poll sends them back."""


class _Shown(NamedTuple):
    epoch: int
    length: int
    notes: str
    """A digest of the tools and citations."""


class Feed:
    """The feed of one page. Each read returns new data."""

    def __init__(
        self,
        mailbox: Mailbox,
        visitor: str,
        cursor: int,
        now: Callable[[], float],
        *,
        box: str | None = None,
        shows: str = "",
        stop: ServerStop | None = None,
    ) -> None:
        """Read from a cursor. A cursor of another `box` is ignored."""
        self._mailbox = mailbox
        self.box = parse_box(visitor)
        self._visitor = visitor
        self.cursor = cursor if box in (None, self.box) else _UNKNOWN
        """The number of the last change that was returned."""
        self._live = _parse_shown(visitor, shows)
        self._now = now
        self.stop = stop or ServerStop()
        """The end of the server, with which the feed ends."""

    async def read(self) -> Frame | None:
        head = await self._mailbox.head(self._visitor)
        changes = head.since(self.cursor)
        if changes is None:
            self.cursor, self._live = head.change, {}
            return Frame(head.change, [{"type": "reset"}], self.box)
        events = [chat_event(head, change.chat, self._now()) for change in changes if not change.message]
        changed = {MessageRef(self._visitor, change.chat, change.message) for change in changes if change.message}
        live = [MessageRef(self._visitor, *place) for place in head.live]
        for place in sorted({*changed, *live}):
            events += await self._message_events(place, changed=place in changed)
        is_new = bool(events) or head.change != self.cursor
        self.cursor = head.change
        return Frame(head.change, events, self.box) if is_new else None

    async def _message_events(self, place: MessageRef, *, changed: bool) -> list[dict[str, Any]]:
        stored = await self._mailbox.peek(place)
        if stored is None:
            return []
        shown = self._live.get(place)
        if stored.state != "live":
            self._live.pop(place, None)
            return [await self._whole(place, stored)] if changed or shown is not None else []
        notes = digest(msgspec.json.encode((stored.tools, stored.citations)).decode())[:_DIGITS]
        self._live[place] = _Shown(stored.epoch, stored.length, notes)
        if shown is None or shown.epoch != stored.epoch or shown.length > stored.length:
            return [await self._whole(place, stored)]
        events: list[dict[str, Any]] = []
        where = {"chat": place.chat, "number": place.number, "epoch": stored.epoch}
        if shown.length < stored.length:
            text = await self._mailbox.text(place, stored, shown.length)
            delta = {"from": shown.length, "text": text, "length": stored.length}
            events.append({"type": "delta", **where, **delta})
        if shown.notes != notes:
            tools, citations = msgspec.to_builtins((stored.tools, stored.citations))
            events.append({"type": "notes", **where, "tools": tools, "citations": citations})
        return events

    async def _whole(self, place: MessageRef, stored: StoredMessage) -> dict[str, Any]:
        message = as_shown(stored, await self._mailbox.text(place, stored, 0))
        return {"type": "message", "chat": place.chat, "message": msgspec.to_builtins(message)}

    def shows(self) -> str:
        """Return the live messages displayed by a page, for its next poll."""
        latest = list(self._live.items())[-_MAX_SHOWN:]
        return ",".join(
            f"{place.chat}.{place.number}.{shown.epoch}.{shown.length}.{shown.notes}" for place, shown in latest
        )

    async def has_live(self) -> bool:
        """Return True if a message is being written and nothing else is new."""
        head = await self._mailbox.head(self._visitor)
        return bool(head.live) and head.change == self.cursor

    def idle(self) -> Frame:
        return Frame(self.cursor, [], self.box)

    async def wait(self, look_seconds: float, most_seconds: float) -> Frame | None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + most_seconds
        with self._mailbox.listen(self._visitor) as event, self.stop.wake_on_stop(event):
            while True:
                frame = await self.read()
                if frame is not None or clock() >= deadline or self.stop.has_begun:
                    return frame
                await wait_for(event, min(look_seconds, deadline - clock()))


def _parse_shown(visitor: str, text: str) -> dict[MessageRef, _Shown]:
    """Parse the live messages named by a poll. Unreadable entries are ignored, and their messages are sent whole."""
    shown: dict[MessageRef, _Shown] = {}
    for entry in text.split(",", _MAX_SHOWN)[:_MAX_SHOWN]:
        chat, *fields = entry.split(".")
        if len(fields) == 4 and all(_NUMBER.fullmatch(field) for field in fields[:3]):
            number, epoch, length = map(int, fields[:3])
            shown[MessageRef(visitor, chat, number)] = _Shown(epoch, length, fields[3])
    return shown


def parse_box(visitor: str) -> str:
    """Return the name of a visitor's mailbox. A page uses it to detect a change of mailbox."""
    return digest(f"box {visitor}")[:_DIGITS]


def chat_event(head: Head, chat_id: str, now: float) -> dict[str, Any]:
    """Return the current state of a conversation, or that it is gone."""
    chat = head.chat(chat_id)
    return {"type": "gone", "id": chat_id} if chat is None else {"type": "chat", "chat": render_chat(chat, now)}


def render_chat(chat: Chat, now: float) -> dict[str, Any]:
    """Return a conversation in display form. `busy` is the remaining seconds of an answer in progress."""
    shown: dict[str, Any] = {"id": chat.id, "title": chat.title, "at": chat.at, "last": chat.last}
    shown["busy"] = round(max(0.0, chat.busy_until - now), 3)
    if chat.base:
        shown |= {"base": chat.base, "shared": chat.shared, "born": chat.born}
    return {**shown, "archived": True} if chat.archived else shown


_LAST_EVENT = b"last-event-id"
_LIVE_POLL_SECONDS = 0.25
"""The seconds that a poll waits before it returns only what was added to a live message."""


class FeedServer:
    def __init__(
        self,
        mailbox: Mailbox,
        config: WebChatConfig,
        now: Callable[[], float],
        allow: Allow,
        verifier: HttpVerifier,
    ) -> None:
        self._verifier = verifier
        self._mailbox, self._config, self._now = mailbox, config, now
        self._allow = allow
        feed = config.feed_limits
        limits = HttpLimits(max_running=feed.max_open, max_running_per_caller=feed.max_open_per_caller)
        self._open = Counter(limits, "Too many connections are open")

    async def _enter(self, call: HttpCall) -> None:
        """Admit a long-lived request of a visitor. The limit of other requests does not count it."""
        await self._allow(call.caller)
        self._open.begin(call.caller.identity.key)
        release, call.counter = call.detach(), self._open
        if release is not None:
            release()

    async def socket(self, socket: Socket) -> None:
        """Send feed events on a WebSocket until the page disconnects."""
        try:
            await self._serve_socket(socket)
        except RequestError as error:
            await socket.close(POLICY, error.code)

    async def _serve_socket(self, socket: Socket) -> None:
        feed = self._feed(socket.scope, socket.caller.identity.native_id)
        sending = spawn_within(self._send_all(feed, socket))
        leaving = spawn_within(_read_all(socket))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            for task in (leaving, sending):
                if task.done():
                    task.result()
        finally:
            await cancel_and_wait(sending)
            await cancel_and_wait(leaving)

    async def _send_all(self, feed: Feed, socket: Socket) -> None:
        clock, pause = asyncio.get_running_loop().time, DEFAULT_TIMES.keep_alive
        allowed_at = clock()
        while True:
            frame = await feed.wait(self._config.feed_limits.look_seconds, pause)
            if clock() - allowed_at >= pause:
                await self._allow(socket.caller)
                allowed_at = clock()
            # An empty frame is sent too: so the page knows that it would hear what is new.
            await socket.check()
            await socket.send(msgspec.json.encode(frame or feed.idle()))

    async def events(self, call: HttpCall) -> None:
        """Send feed events as server-sent events, until the page disconnects or a timeout. Pages reconnect.

        It ends when the server stops, which would otherwise wait for it. Each connection checks access again.
        """
        await self._enter(call)
        with keep_open(call.scope):
            await self._send_events(call)

    async def _send_events(self, call: HttpCall) -> None:
        feed = self._feed(call.scope, call.caller.identity.native_id, call.headers.get(_LAST_EVENT))
        times = DEFAULT_TIMES
        events = EventStream(call.send, keep_alive=times.keep_alive, send_seconds=times.send_seconds, reader=call)
        try:
            call.begun = True
            await events.start(DATA_HEADERS[1:])
            clock, limits = asyncio.get_running_loop().time, self._config.feed_limits
            deadline = clock() + limits.stream_seconds
            while (left := deadline - clock()) > 0 and not feed.stop.has_begun:
                frame = await feed.wait(limits.look_seconds, left)
                if not await self._is_same(call):
                    break
                if frame is not None:
                    await events.send(encode_event(b"frame", msgspec.json.encode(frame), frame.cursor))
            await events.end()
        finally:
            events.stop()

    async def poll(self, call: HttpCall) -> None:
        """Send new events as soon as there are any, or an empty response after a timeout."""
        await self._enter(call)
        feed = self._feed(call.scope, call.caller.identity.native_id)
        limits = self._config.feed_limits
        if await feed.has_live():
            # Otherwise a page would poll as often as an answer grows.
            await asyncio.sleep(_LIVE_POLL_SECONDS)
        with keep_open(call.scope):
            frame = await feed.wait(limits.look_seconds, limits.poll_seconds) or feed.idle()
        if not await self._is_same(call):
            raise ConflictError("Your account was linked or unlinked. Send the request again.", code="account_changed")
        frame = msgspec.structs.replace(frame, shows=feed.shows())
        await send_json(call.send, 200, msgspec.json.encode(frame), DATA_HEADERS)

    def _feed(self, scope: Scope, visitor: str, last_event: bytes | None = None) -> Feed:
        query = parse_query(scope)
        if last_event is not None:
            query["after"] = last_event.decode("latin-1")
        after, box = number_in(query, "after") or 0, query.get("box")
        # The server closes WebSockets itself; a feed that ends would have nothing to wait for in between.
        stop = server_stop(scope) if scope["type"] == "http" else None
        return Feed(self._mailbox, visitor, after, self._now, box=box, shows=query.get("shows", ""), stop=stop)

    async def _is_same(self, call: HttpCall) -> bool:
        """Return True if the visitor's links are unchanged. Otherwise the page must reload."""
        return (await self._verifier.recheck(call.scope, call.headers)).identity.key == call.caller.identity.key


async def _read_all(socket: Socket) -> None:
    """Read and discard messages of a page until it disconnects."""
    while True:
        await socket.receive()


def parse_query(scope: Scope) -> dict[str, Any]:
    """Return the query of a request. The last value of a repeated name is used."""
    given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return {name: values[-1] for name, values in given.items()}
