"""Tells a page what is new: on a WebSocket, by server-sent events, or as the answer to a poll."""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.types import Scope

from frontdesk.channels.web.client import Mailbox
from frontdesk.channels.web.config import WebChatConfig
from frontdesk.channels.web.feed import Feed
from frontdesk.channels.web.pages import DATA_HEADERS
from frontdesk.channels.web.parse import number_in
from frontdesk.errors import ConflictError, RequestError
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_within
from frontdesk.kit.auth.verifier import Allow, HttpVerifier
from frontdesk.kit.http.asgi import send_json
from frontdesk.kit.http.endpoint import HttpCall
from frontdesk.kit.http.limits import Counter, Limits
from frontdesk.kit.http.server_stop import server_stop
from frontdesk.kit.http.sockets import POLICY, Socket
from frontdesk.kit.http.sse import EventStream, encode_event

_LAST_EVENT = b"last-event-id"


class FeedServer:
    """Serves the feeds of all pages."""

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
        limits = Limits(max_running=config.feed.max_open, max_running_per_caller=config.feed.max_open_per_caller)
        self._open = Counter(limits, "Too many connections are open")

    async def _enter(self, call: HttpCall) -> None:
        """Let a visitor in, whose request stays open: it is counted apart, so that others find room beside it."""
        await self._allow(call.caller)
        self._open.begin(call.caller.identity.key)
        release, call.counter = call.hand_on(), self._open
        if release is not None:
            release()

    async def socket(self, socket: Socket) -> None:
        """Send what is new on a WebSocket, until the page leaves."""
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
            await stopped(sending)
            await stopped(leaving)

    async def _send_all(self, feed: Feed, socket: Socket) -> None:
        clock, pause = asyncio.get_running_loop().time, self._config.streams.keep_alive
        allowed_at = clock()
        while True:
            frame = await feed.wait(self._config.feed.look_seconds, pause)
            if clock() - allowed_at >= pause:
                await self._allow(socket.caller)
                allowed_at = clock()
            # An empty frame is sent too: so the page knows that it would hear what is new.
            await socket.check()
            await socket.send(msgspec.json.encode(frame or feed.idle()))

    async def events(self, call: HttpCall) -> None:
        """Send what is new as server-sent events, until the page leaves, or for a time: it comes back by itself.

        It ends when the server is to stop, which would wait for it; and a visitor is let in anew with each.
        """
        await self._enter(call)
        feed = self._feed(call.scope, call.caller.identity.native_id, call.headers.get(_LAST_EVENT))
        times = self._config.streams
        events = EventStream(call.send, keep_alive=times.keep_alive, send_seconds=times.send_seconds, reader=call)
        try:
            call.begun = True
            await events.start(DATA_HEADERS[1:])
            clock, limits = asyncio.get_running_loop().time, self._config.feed
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
        """Answer with what is new, once something is, or after a while with nothing."""
        await self._enter(call)
        feed = self._feed(call.scope, call.caller.identity.native_id)
        limits = self._config.feed
        frame = await feed.wait(limits.look_seconds, limits.poll_seconds) or feed.idle()
        if not await self._is_same(call):
            raise ConflictError("You have been linked or unlinked; ask again.", code="account_changed")
        await send_json(call.send, 200, msgspec.json.encode(frame), DATA_HEADERS)

    def _feed(self, scope: Scope, visitor: str, last_event: bytes | None = None) -> Feed:
        query = query_of(scope)
        if last_event is not None:
            query["after"] = last_event.decode("latin-1")
        after, box = number_in(query, "after") or 0, query.get("box")
        # The server closes WebSockets itself; a feed that ends would have nothing to wait for in between.
        stop = server_stop(scope) if scope["type"] == "http" else None
        return Feed(self._mailbox, visitor, after, self._now, box=box, stop=stop)

    async def _is_same(self, call: HttpCall) -> bool:
        """Tell whether a visitor was neither linked nor unlinked meanwhile; else the page has to ask anew."""
        return (await self._verifier.recheck(call.scope, call.headers)).identity.key == call.caller.identity.key


async def _read_all(socket: Socket) -> None:
    """Read what a page sends, which has no meaning, until it leaves."""
    while True:
        await socket.receive()


def query_of(scope: Scope) -> dict[str, Any]:
    """Return the query of a request; of a repeated name the last value."""
    given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return {name: values[-1] for name, values in given.items()}
