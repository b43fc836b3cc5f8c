"""One path of a WebSocket channel: authenticates the handshake, enforces limits, closes the connection."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, Protocol, TypeVar

from starlette.types import Receive, Scope, Send

from frontdesk.asgi.messages import CONNECTION, JSON, BodyHold, collect_headers, error_headers, require_single
from frontdesk.auth.verifier import Allow, HttpVerifier
from frontdesk.concurrency.current import current_caller
from frontdesk.concurrency.tasks import current_task, spawn_within
from frontdesk.errors import (
    BodyTooLargeError,
    InternalError,
    RequestError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
)
from frontdesk.errors.sizes import format_size
from frontdesk.http.lasting import keep_open
from frontdesk.http.limits import Bucket, Limiter, RateLimit
from frontdesk.loggers import http as log
from frontdesk.models.identity import Caller

BYE = 1000
POLICY = 1008
TOO_LARGE = 1009
BROKEN = 1011
RESTART = 1012

MAX_REJECTED_MESSAGES = 20
"""The number of messages in a row that may come too fast before the connection is closed."""


T = TypeVar("T")


class SocketLimitsProtocol(Protocol):
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
    """The connection of a WebSocket, if the server supports the extension `frontdesk.connection`."""

    def set_message_limit(self, max_bytes: int, hold: BodyHold | None) -> None:
        """Set the maximum message size, and the caller to which incomplete messages are charged."""
        ...


class SocketGoneError(Exception):
    """The client has disconnected."""


class Socket:
    """One WebSocket connection, with limits on incoming messages."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        verifier: HttpVerifier,
        limits: SocketLimitsProtocol,
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
        """Authenticate the caller at the handshake, or reject it."""
        require_single(self.scope)
        self.caller = await self._guard(self._verifier.verify(self.scope, collect_headers(self.scope)))
        if self._limiter is not None:
            self._limiter.take(self.caller)
        await self._guard(allow(self.caller))

    async def check(self) -> None:
        """Check that the credentials of the handshake are still valid and still belong to its caller."""
        caller = await self._guard(self._verifier.recheck(self.scope, collect_headers(self.scope)))
        if caller.identity.key != self.caller.identity.key:
            raise UnauthenticatedError

    async def _guard(self, check: Awaitable[T]) -> T:
        try:
            return await check
        except RequestError:
            raise
        except Exception as error:
            log.error("failed to authenticate the caller of a WebSocket: path=%r", self.scope["path"], exc_info=error)
            raise InternalError from error

    async def receive(self) -> bytes:
        """Return the next message. Raises `SocketGoneError` at the end.

        Raises `BodyTooLargeError` for a message that is too large, `TooManyRequestsError` above the rate limit.
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
            raise TooManyRequestsError("Too many messages per second on this connection.", retry_after=wait)
        if self._limiter is not None:
            self._count(self._limiter)
        self._refused = 0
        if len(data) > self._limits.max_message_bytes:
            raise BodyTooLargeError(f"A message must not be larger than {format_size(self._limits.max_message_bytes)}.")
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
        self._reader = current_task()
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
        """Return True if the client continues to send after a rate limit error."""
        return self._refused > MAX_REJECTED_MESSAGES

    async def send(self, message: bytes) -> None:
        """Send a message. Waits for a slow reader up to the timeout."""
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
        limits: SocketLimitsProtocol,
        limiter: Limiter | None = None,
        *,
        allow: Allow,
        has_share: bool = False,
    ) -> None:
        """`draw` renders the body of a rejected handshake.

        With `has_share`, its connections count against a share of the server's connections, see `keep_open`.
        """
        self._allow = allow
        self._has_share = has_share
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
        with ExitStack() as open_connections:
            await self._call(scope, receive, send, socket, open_connections)

    async def _call(
        self, scope: Scope, receive: Receive, send: Send, socket: Socket, open_connections: ExitStack
    ) -> None:
        try:
            await socket.admit(self._allow)
            self._require_capacity(socket.caller)
            if self._has_share:
                open_connections.enter_context(keep_open(scope))
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
        self._set_message_limit(scope, socket.caller)
        try:
            with suppress(OSError):
                await send({"type": "websocket.accept"})
                await self._serve_guarded(socket)
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]

    def _require_capacity(self, caller: Caller) -> None:
        if self._open.total() >= self._limits.max_open:
            raise UnavailableError("Too many open connections.", retry_after=5)
        if self._open[caller.identity.key] >= self._limits.max_open_per_caller:
            raise TooManyRequestsError("You have too many open connections.", retry_after=5)

    def _set_message_limit(self, scope: Scope, caller: Caller) -> None:
        extensions: Mapping[str, Any] = scope.get("extensions") or {}
        connection: SocketConnection | None = extensions.get(CONNECTION)
        if connection is not None:
            hold = None if self._limiter is None else self._limiter.hold(caller)
            connection.set_message_limit(self._limits.max_message_bytes, hold)

    async def _deny(self, scope: Scope, send: Send, error: RequestError) -> None:
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": POLICY, "reason": error.code})
            return
        body = self._draw(error)
        headers = [JSON, (b"content-length", str(len(body)).encode()), *error_headers(error)]
        await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})

    async def _serve_guarded(self, socket: Socket) -> None:
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
            log.error("WebSocket failed: path=%r", socket.scope["path"], exc_info=error)
            await socket.close(BROKEN, "something went wrong on our side")


Work = Callable[[str | None, bytes], Awaitable[None]]
Broken = Callable[[str | None], Awaitable[None]]

MAX_LANES = 8
"""The number of lanes of one connection that may be at work."""
MAX_WAITING = 32
"""The number of messages of one connection that may wait for their turn."""


class Lanes:
    """Runs the messages of one connection in ordered lanes."""

    def __init__(self, work: Work, broken: Broken, *, most_bytes: int) -> None:
        """`broken` is called for a lane whose work failed. `most_bytes` limits the queued messages."""
        self._work = work
        self._broken = broken
        self._most_bytes = most_bytes
        self._queues: dict[str | None, deque[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    def works(self, lane: str | None) -> bool:
        return lane in self._queues

    def add(self, lane: str | None, message: bytes) -> None:
        """Append a message to the queue of its lane. Rejects it if too many are queued."""
        queue = self._queues.get(lane)
        if queue is None:
            if len(self._queues) >= MAX_LANES:
                raise TooManyRequestsError(f"A connection can have at most {MAX_LANES} lanes.", retry_after=1)
            queue = self._queues[lane] = deque()
            task = spawn_within(self._run(lane, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting = [queued for messages in self._queues.values() for queued in messages]
        if len(waiting) >= MAX_WAITING or sum(map(len, waiting)) + len(message) > self._most_bytes:
            raise TooManyRequestsError("Too many pending messages on this connection.", retry_after=1)
        queue.append(message)

    async def _run(self, lane: str | None, queue: deque[bytes]) -> None:
        try:
            while queue:
                await self._run_one(lane, queue.popleft())
        except SocketGoneError:
            # The code that reads from the connection sees it too, and ends the other lanes.
            return
        finally:
            del self._queues[lane]

    async def _run_one(self, lane: str | None, message: bytes) -> None:
        try:
            await self._work(lane, message)
        except SocketGoneError:
            raise
        except Exception as error:
            # No code awaits this task: the log has the reason, the client learns that there is one.
            log.error("WebSocket message failed", exc_info=error)
            await self._broken(lane)

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
