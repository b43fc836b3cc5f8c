"""One path of a WebSocket channel: finds the caller at the handshake, keeps the limits, and closes the connection."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from starlette.types import Receive, Scope, Send

from frontdesk.data.identity import Caller
from frontdesk.errors import (
    BodyTooLargeError,
    InternalError,
    RequestError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
)
from frontdesk.kit.aio.current import current_caller
from frontdesk.kit.aio.tasks import present_task
from frontdesk.kit.auth.verifier import Allow, HttpVerifier
from frontdesk.kit.http.asgi import CONNECTION, JSON, error_headers, headers_of, need_single
from frontdesk.kit.http.body_budget import BodyHold
from frontdesk.kit.http.limits import Bucket, Limiter, RateLimit
from frontdesk.loggers import http as log

BYE = 1000
POLICY = 1008
TOO_LARGE = 1009
BROKEN = 1011
RESTART = 1012

STUBBORN = 20
"""The number of messages in a row that may come too fast before the connection is closed."""


T = TypeVar("T")


class Limits(Protocol):
    """Limits of the WebSockets of one path."""

    @property
    def max_open(self) -> int: ...

    @property
    def max_open_per_caller(self) -> int: ...

    @property
    def max_message_bytes(self) -> int: ...

    @property
    def messages_per_minute(self) -> int: ...

    @property
    def send_seconds(self) -> float: ...


class SocketConnection(Protocol):
    """The connection of a WebSocket, where the server offers the extension `frontdesk.connection`."""

    def bound(self, max_bytes: int, hold: BodyHold | None) -> None:
        """Set the largest message, and the caller for whom incomplete messages count."""
        ...


class SocketGoneError(Exception):
    """The client has left."""


class Socket:
    """One connection: messages in, within the limits, and messages out."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        verifier: HttpVerifier,
        limits: Limits,
        limiter: Limiter | None = None,
    ) -> None:
        self.scope = scope
        self.caller: Caller
        self._verifier = verifier
        self._limiter = limiter
        self._receive = receive
        self._send = send
        self._limits = limits
        self._clock = asyncio.get_running_loop().time
        self._rate = Bucket(RateLimit(limits.messages_per_minute), self._clock())
        self._refused = 0
        self._closed = False
        self._stuck = False
        self._reader: asyncio.Task[Any] | None = None

    async def admit(self, allow: Allow) -> None:
        """Find the caller at the handshake, or refuse them."""
        need_single(self.scope)
        self.caller = await self._checked(self._verifier.verify(self.scope, headers_of(self.scope)))
        if self._limiter is not None:
            self._limiter.take(self.caller)
        await self._checked(allow(self.caller))

    async def check(self) -> None:
        """Check again whether the credentials of the handshake are valid, and still those of its caller."""
        caller = await self._checked(self._verifier.recheck(self.scope, headers_of(self.scope)))
        if caller.identity.key != self.caller.identity.key:
            raise UnauthenticatedError

    async def _checked(self, check: Awaitable[T]) -> T:
        try:
            return await check
        except RequestError:
            raise
        except Exception as error:
            log.error("the caller of a connection at %r could not be authenticated", self.scope["path"], exc_info=error)
            raise InternalError from error

    async def receive(self) -> bytes:
        """Return the next message; `SocketGoneError` at the end.

        One that is too large is a `BodyTooLargeError`, one that comes too fast a `TooManyRequestsError`.
        """
        message = await self._next_message()
        if message["type"] != "websocket.receive":
            self._closed = True
            raise SocketGoneError
        text = message.get("text")
        data: bytes = message["bytes"] if text is None else text.encode(errors="surrogatepass")
        wait = self._rate.take(self._clock())
        if wait:
            self._refused += 1
            raise TooManyRequestsError("Messages come too fast on this connection.", retry_after=wait)
        if self._limiter is not None:
            self._count(self._limiter)
        self._refused = 0
        if len(data) > self._limits.max_message_bytes:
            raise BodyTooLargeError(f"A message must not be larger than {self._limits.max_message_bytes} bytes.")
        return data

    def _count(self, limiter: Limiter) -> None:
        try:
            limiter.take(self.caller)
        except TooManyRequestsError:
            self._refused += 1
            raise

    async def _next_message(self) -> Any:
        if self._stuck:
            raise SocketGoneError
        self._reader = present_task()
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if not self._stuck:
                raise
            self._reader.uncancel()
            raise SocketGoneError from None
        finally:
            self._reader = None

    @property
    def stubborn(self) -> bool:
        """Tell whether the client goes on sending although it was told that it is too fast."""
        return self._refused > STUBBORN

    async def send(self, message: bytes) -> None:
        """Send a message; wait while the reader is slow, up to the timeout."""
        if self._closed:
            raise SocketGoneError
        try:
            async with asyncio.timeout(self._limits.send_seconds):
                await self._send({"type": "websocket.send", "text": message.decode()})
        except TimeoutError:
            # Nothing more can be sent to it, not even a close frame, and it is not waited for any longer.
            self._closed = self._stuck = True
            if self._reader is not None:
                self._reader.cancel()
            raise SocketGoneError from None
        except OSError:
            # What a server raises for a client that has left, by the ASGI specification.
            self._closed = True
            raise SocketGoneError from None

    async def close(self, code: int, reason: str = "") -> None:
        """Close the connection."""
        if self._closed:
            return
        self._closed = True
        with suppress(OSError):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})


Serve = Callable[[Socket], Awaitable[None]]
Draw = Callable[[RequestError], bytes]


class SocketEndpoint:
    """An ASGI app for the WebSockets of one path."""

    def __init__(
        self,
        verifier: HttpVerifier,
        draw: Draw,
        serve: Serve,
        limits: Limits,
        limiter: Limiter | None = None,
        *,
        allow: Allow,
    ) -> None:
        """Serve a path; `draw` renders the body of a refused handshake."""
        self._allow = allow
        self._verifier = verifier
        self._draw = draw
        self._serve = serve
        self._limits = limits
        self._limiter = limiter
        self._open: Counter[tuple[str, str]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        # Some servers pass on names as they came; code that looks for `origin` must find it in any case.
        scope["headers"] = [(name.lower(), value) for name, value in scope["headers"]]
        socket = Socket(scope, receive, send, self._verifier, self._limits, self._limiter)
        try:
            await socket.admit(self._allow)
            self._need_room(socket.caller)
        except RequestError as error:
            with suppress(OSError):
                await self._deny(scope, send, error)
            if CONNECTION not in (scope.get("extensions") or {}):
                # Uvicorn takes a handshake that was refused with a body for an unanswered one, and logs an error,
                # unless the connection has ended by then. The server of this host knows better.
                await receive()
                await asyncio.sleep(0)
            return
        key = socket.caller.identity.key
        current_caller.set(key)
        self._open[key] += 1
        self._bound(scope, socket.caller)
        try:
            with suppress(OSError):
                await send({"type": "websocket.accept"})
                await self._served(socket)
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]

    def _need_room(self, caller: Caller) -> None:
        if self._open.total() >= self._limits.max_open:
            raise UnavailableError("Too many connections are open.", retry_after=5)
        if self._open[caller.identity.key] >= self._limits.max_open_per_caller:
            raise TooManyRequestsError("Too many of your connections are open.", retry_after=5)

    def _bound(self, scope: Scope, caller: Caller) -> None:
        extensions: Mapping[str, Any] = scope.get("extensions") or {}
        connection: SocketConnection | None = extensions.get(CONNECTION)
        if connection is not None:
            hold = None if self._limiter is None else self._limiter.hold(caller)
            connection.bound(self._limits.max_message_bytes, hold)

    async def _deny(self, scope: Scope, send: Send, error: RequestError) -> None:
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": POLICY, "reason": error.code})
            return
        body = self._draw(error)
        headers = [JSON, (b"content-length", str(len(body)).encode()), *error_headers(error)]
        await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})

    async def _served(self, socket: Socket) -> None:
        try:
            await self._serve(socket)
            await socket.close(BYE)
        except SocketGoneError:
            return
        except asyncio.CancelledError:
            await socket.close(RESTART, "the server is stopping")
            raise
        except Exception as error:
            # The last handler, as for HTTP: the client gets an error, and the log has the rest.
            log.error("a connection at %r failed", socket.scope["path"], exc_info=error)
            await socket.close(BROKEN, "something went wrong on our side")
