"""The WebSocket client of channels for their platform's gateway."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from frontdesk.errors import PushError, PushRefusedError
from frontdesk.loggers import runs as log
from frontdesk.outbound.network import resolve
from frontdesk.outbound.platform_hosts import Origin, PlatformHosts, Resolve
from frontdesk.secret import Secret, reveal

if TYPE_CHECKING:
    import ssl

    from websockets.asyncio.client import ClientConnection

STEADY_SECONDS = 60.0
"""After how long a connection counts as good, so that the pause after it is the first one again."""
_CLOSE_SECONDS = 1.0
_MAX_WAITING = 16
# The library logs URLs and frames; a URL may hold a ticket.
_silent = logging.Logger("frontdesk.silent", level=logging.CRITICAL + 1)


class SocketClosedError(PushError):
    """The connection to the platform has ended."""

    code = "socket_closed"

    def __init__(self, close_code: int | None) -> None:
        """Store the platform's close code, or `None` if the connection broke off."""
        super().__init__(f"The connection to the platform has ended, with code {close_code}.")
        self.close_code = close_code


class PlatformConnection:
    def __init__(self, socket: "ClientConnection") -> None:
        self._socket = socket

    async def receive(self) -> str | bytes:
        """Wait for the next message. Raise `SocketClosedError` if the connection has ended."""
        return await self._guard(self._socket.recv())

    async def send(self, message: str | bytes) -> None:
        await self._guard(self._socket.send(message))

    async def close(self, code: int = 1000) -> None:
        """Close the connection, with a code that the platform may act on."""
        await self._socket.close(code)

    async def _guard(self, call: Awaitable[Any]) -> Any:
        from websockets.exceptions import ConnectionClosed

        try:
            return await call
        except ConnectionClosed as closed:
            raise SocketClosedError(None if closed.rcvd is None else closed.rcvd.code) from None


class PlatformSocket:
    """WebSocket client for the gateways of one platform. For `servers` see `PlatformHosts`.

    A frame over `max_bytes` ends the connection. The platform is pinged every `ping_seconds`. If it does not answer
    within the same time, the connection has ended. `first_pause` and `longest_pause` are seconds between connections.
    Compression is off, because a small frame could expand to a very large one.
    """

    def __init__(
        self,
        servers: Collection[str],
        *,
        headers: Mapping[str, str | Secret] | None = None,
        max_bytes: int = 1024 * 1024,
        ping_seconds: float = 20.0,
        timeout: float = 10.0,
        first_pause: float = 0.5,
        longest_pause: float = 60.0,
        allow_private: bool = False,
        ssl_context: "ssl.SSLContext | None" = None,
        resolve: Resolve = resolve,
    ) -> None:
        self.hosts = PlatformHosts(servers, allow_private=allow_private, resolve=resolve)
        self._headers = dict(headers or {})
        self._max_bytes = max_bytes
        self._ping_seconds = ping_seconds
        self._timeout = timeout
        self._first_pause, self._longest_pause = first_pause, longest_pause
        self._ssl = ssl_context

    @asynccontextmanager
    async def connect(self, url: str | Secret) -> AsyncGenerator[PlatformConnection]:
        """Open a connection for the block."""
        whole = reveal(url)
        origin = self.hosts.get_origin(whole)
        socket = await self._open_any(whole, origin)
        try:
            yield PlatformConnection(socket)
        finally:
            await socket.close()

    async def run(
        self,
        url: Callable[[], Awaitable[str | Secret]],
        serve: Callable[[PlatformConnection], Awaitable[None]],
    ) -> None:
        """Keep a connection open until cancelled. Each connection is served and, after a pause, followed by the next.

        `url` is called before each connection, because many platforms issue a new one. `serve` may return or raise a
        `PushError` to get a new connection. A `permanent` error is raised. The pause doubles with each connection that
        lasted less than a minute. `retry_after` replaces the pause.
        """
        loop, pause = asyncio.get_running_loop(), self._first_pause
        while True:
            began, asked = loop.time(), None
            try:
                async with self.connect(await url()) as connection:
                    began = loop.time()
                    await serve(connection)
            except PushError as error:
                if error.permanent:
                    raise
                asked = error.retry_after
                log.warning("reconnecting to the platform: %s", error)
            if loop.time() - began >= STEADY_SECONDS:
                pause = self._first_pause
            await asyncio.sleep(pause if asked is None else asked)
            pause = min(pause * 2, self._longest_pause)

    async def _open_any(self, url: str, origin: Origin) -> "ClientConnection":
        addresses = await self.hosts.addresses(origin)
        for address in addresses:
            try:
                socket = await self._open(url, origin, address)
            except OSError as error:
                if address == addresses[-1]:
                    self.hosts.forget(origin)
                    raise _unreachable(error) from None
            else:
                self.hosts.prefer(origin, address)
                return socket
        raise PushError("The platform's host has no address.", code="unreachable")

    async def _open(self, url: str, origin: Origin, address: str) -> "ClientConnection":
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidStatus

        class Opening(connect):
            def process_redirect(self, exc: Exception) -> Exception | str:
                return exc

        secure: dict[str, Any] = {"ssl": self._ssl or True, "server_hostname": origin.host} if origin.secure else {}
        try:
            return await Opening(
                url,
                additional_headers={name: reveal(value) for name, value in self._headers.items()},
                user_agent_header="frontdesk",
                compression=None,
                proxy=None,
                open_timeout=self._timeout,
                close_timeout=_CLOSE_SECONDS,
                ping_interval=self._ping_seconds,
                ping_timeout=self._ping_seconds,
                max_size=self._max_bytes,
                max_queue=_MAX_WAITING,
                logger=_silent,
                host=address,
                port=origin.port,
                **secure,
            )
        except InvalidStatus as refused:
            raise _refusal(refused.response.status_code) from None
        except InvalidHandshake as error:
            raise _unreachable(error) from None


def _refusal(status: int) -> PushError:
    message, code = f"The platform's gateway answered {status}.", f"status_{status}"
    refused = 300 <= status <= 499 and status not in (408, 429)
    return PushRefusedError(message, code=code) if refused else PushError(message, code=code)


def _unreachable(error: Exception) -> PushError:
    return PushError(f"The platform can't be reached: {type(error).__name__}.", code="unreachable")
