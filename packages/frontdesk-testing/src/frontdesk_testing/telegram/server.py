"""The fake as a server on the loopback address, and its test driver."""

import asyncio
import contextlib
import socket
import warnings
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frontdesk_testing.telegram.api import BotApi, BotCall
from frontdesk_testing.telegram.app import ABORT, BotApp
from frontdesk_testing.telegram.clock import MovableClock
from frontdesk_testing.telegram.errors import ApiError
from frontdesk_testing.telegram.faults import Fault, Faults, Hold
from frontdesk_testing.telegram.flood import FloodLimits
from frontdesk_testing.telegram.groups import Groups
from frontdesk_testing.telegram.world import World

TOKEN = "700000001:a-token-of-the-fake-telegram"  # noqa: S105 - it opens nothing but a fake


class FakeTelegram(Groups):
    """A Bot API with one bot, people who act on request, and faults. See `fake_telegram`."""

    def __init__(
        self,
        *,
        token: str = TOKEN,
        name: str = "The desk",
        username: str = "frontdesk_bot",
        privacy: bool = True,
        topics: bool = False,
        flood: FloodLimits | None = None,
        clock: MovableClock | None = None,
    ) -> None:
        self.clock = clock or MovableClock()
        world = World(self.clock, flood)
        super().__init__(world, world.add_bot(name, username, token=token, privacy=privacy, topics=topics))
        self.api = BotApi(world)
        self.faults = Faults()
        self.url = ""
        """The address of the server; bots call `{url}/bot{token}/{method}`."""

    @property
    def token(self) -> str:
        """Return the token of the first bot."""
        return self.bot.token

    @property
    def calls(self) -> list[BotCall]:
        """Return every call of a bot, in the order in which they came."""
        return self.api.calls

    def list_calls(self, method: str) -> list[BotCall]:
        """Return the calls of one method that had a result."""
        return [call for call in self.calls if call.method == method and call.error is None]

    def calls_of(self, method: str) -> list[BotCall]:
        """Deprecated: `list_calls`."""
        warnings.warn("calls_of is deprecated. Use list_calls.", DeprecationWarning, stacklevel=2)
        return self.list_calls(method)

    async def until(self, condition: Callable[[], Any], *, within: float = 60.0) -> None:
        """Wait until a condition holds. It is checked after every change on the platform."""
        await self.world.until(condition, within=within)

    def fail_next(self, method: str, code: int, description: str, *, times: int = 1, **parameters: int) -> None:
        """Answer the next calls of a method (`*`: of any) with an error. `parameters` may be `retry_after`."""
        self.faults.add(Fault(method, times, error=ApiError(code, description, **parameters)))

    def drop_next(self, method: str, *, acted: bool, times: int = 1) -> None:
        """Close the connection of the next calls without an answer, before or after they were acted on."""
        self.faults.add(Fault(method, times, drop_before=not acted, drop_after=acted))

    def hold_next(self, method: str) -> Hold:
        """Keep the next call of a method waiting, before it is acted on, until it is released."""
        hold = Hold()
        self.faults.add(Fault(method, hold=hold))
        return hold

    def app(self, more: Sequence[BaseRoute] = ()) -> Starlette:
        """Return the Bot API as an ASGI application. `more` are routes before its own."""
        return Starlette(routes=[*more, *BotApp(self.api, self.faults).routes()])

    async def close(self) -> None:
        """End deliveries and polls."""
        await self.world.webhooks.close()
        for bot in self.world.bots.values():
            bot.updates.close()
        self.world.closed = True
        self.world.change()


@contextlib.asynccontextmanager
async def fake_telegram(telegram: FakeTelegram | None = None) -> AsyncGenerator[FakeTelegram]:
    """Serve a fake on a free port of the loopback address, in the loop of the test."""
    telegram = telegram or FakeTelegram()
    async with serve_on(telegram.app(), 0) as url:
        telegram.url = url
        try:
            yield telegram
        finally:
            await telegram.close()


@contextlib.asynccontextmanager
async def serve_on(app: Starlette, port: int) -> AsyncGenerator[str]:
    """Serve an application on a port of the loopback address. Yield its URL."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    config = uvicorn.Config(
        app, http=_Protocol, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.started_event.wait()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stopping.set()
        await task
        listener.close()


class _Protocol(HttpToolsProtocol):
    """HTTP, with a way for the application to close the connection."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"close": self.transport.abort}}


class _Server(uvicorn.Server):
    """Uvicorn, with events where it has flags, and without its signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.started_event = asyncio.Event()
        self.stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self.started_event.set()
        await self.stopping.wait()
