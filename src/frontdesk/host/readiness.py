"""Tells whether a host was started, and whether it can answer now."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import msgspec
from starlette.types import Receive, Scope, Send

from frontdesk.errors import FrontdeskError, UnavailableError
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.http.asgi import JSON, NO_RETRY, send_json
from frontdesk.loggers import host as log

_TIMEOUT = 2.0
"""The seconds within which a store that is up has answered."""
_MAX_AGE = 1.0
"""The seconds for which the answer of the store counts: anybody may ask whether the host is ready."""
_ERROR = UnavailableError("This host was never started.", code="not_started")
# For clients of every channel: those of the OpenAI APIs read the last two.
_FIELDS = {"code": _ERROR.code, "message": _ERROR.message, "type": "server_error", "param": None}
_BODY = msgspec.json.encode({"error": _FIELDS})
_ADVICE = (
    "a request came in, but this host was never started: an app that it is mounted in does not start it by itself; "
    "pass lifespan=host.lifespan to that app, or enter host.lifespan() in a lifespan of your own"
)


class Readiness:
    """The state of a host, from before its start to after its end."""

    def __init__(self, ask_store: Callable[[], Awaitable[object]]) -> None:
        """Make the state of a new host; `ask_store` raises an error while the store is down."""
        self._ask_store = ask_store
        self.was_started = False
        self.is_serving = False
        """Whether start-up is done, and shut-down has not begun."""
        self._is_running = False
        self._was_told = False
        self._asked: tuple[float, asyncio.Task[bool]] | None = None

    @contextmanager
    def running(self) -> Generator[None]:
        """Count the host as started for as long as the block lasts; once at a time."""
        if self._is_running:
            raise FrontdeskError("This host is running already: start it once, by its own app or by the one around it.")
        self.was_started = self._is_running = True
        self._asked = None
        try:
            yield
        finally:
            self._is_running = self.is_serving = False

    async def is_ready(self) -> bool:
        """Tell whether the host can answer: it serves, and its store answers."""
        return self.is_serving and await self._reaches_store()

    async def _reaches_store(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._asked is None or (self._asked[1].done() and now - self._asked[0] >= _MAX_AGE):
            self._asked = (now, spawn_clean(self._ask()))
        return await asyncio.shield(self._asked[1])

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._ask_store()
        except (FrontdeskError, OSError, TimeoutError) as error:
            log.warning("the host is not ready: its store does not answer (%r)", error)
            return False
        return True

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to a host that was never started."""
        if not self._was_told:
            self._was_told = True
            log.error(_ADVICE)
        if scope["type"] == "http":
            return await send_json(send, 503, _BODY, [NO_RETRY])
        await receive()
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            return await send({"type": "websocket.close", "code": 1013, "reason": "not_started"})
        headers = [JSON, (b"content-length", str(len(_BODY)).encode())]
        await send({"type": "websocket.http.response.start", "status": 503, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": _BODY})
