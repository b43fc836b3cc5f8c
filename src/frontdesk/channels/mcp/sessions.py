"""Sessions of the older protocol era: each belongs to the caller that opened it, and their number is limited."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.streamable_http import StreamableHTTPServerTransport
from starlette.types import Message, Receive, Scope, Send

from frontdesk.asgi.messages import Who
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import InvalidRequestError, NotFoundError, TooManyRequestsError, UnavailableError

SESSION_HEADER = b"mcp-session-id"
_RETRY_SECONDS = 5.0


class Session:
    """An open session: its transport, its owner and the task that serves it."""

    def __init__(self, session_id: str, who: Who, idle_seconds: float) -> None:
        self.id = session_id
        self.who = who
        self.transport = StreamableHTTPServerTransport(mcp_session_id=session_id, idle_timeout=idle_seconds)
        self.task: asyncio.Task[None] | None = None
        self.is_ready = asyncio.Event()


class Sessions:
    """The open sessions of one channel in this process."""

    def __init__(
        self,
        server: Server[Any],
        new_id: Callable[[str], str],
        *,
        max_open: int,
        max_open_per_caller: int,
        idle_seconds: float,
    ) -> None:
        self._server = server
        self._new_id = new_id
        self._max_open, self._max_open_per_caller, self._idle_seconds = max_open, max_open_per_caller, idle_seconds
        self._open: dict[str, Session] = {}
        self._counts: Counter[Who] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    async def handle(self, scope: Scope, receive: Receive, send: Send, *, who: Who, opens: bool) -> None:
        """Answer a request of the older era. `opens` is true for the request that opens a session."""
        given = next((value for name, value in scope["headers"] if name == SESSION_HEADER), None)
        if given is not None:
            session = self._open.get(given.decode("latin-1"))
            # The session of another caller is not told from one that does not exist.
            if session is None or session.who != who:
                raise NotFoundError("Session not found. Initialize a new one.", code="session_not_found")
            await session.transport.handle_request(scope, receive, send)
            if session.transport.is_terminated:
                await self._close(session)
            return
        if not opens:
            raise InvalidRequestError("The header Mcp-Session-Id is missing. Send `initialize` first.")
        await self._begin(scope, receive, send, who)

    async def _begin(self, scope: Scope, receive: Receive, send: Send, who: Who) -> None:
        if len(self._open) >= self._max_open:
            raise UnavailableError("Too many open sessions.", retry_after=_RETRY_SECONDS)
        if self._counts[who] >= self._max_open_per_caller:
            raise TooManyRequestsError("You have too many open sessions.", retry_after=_RETRY_SECONDS)
        session = Session(self._new_id("mcps"), who, self._idle_seconds)
        self._open[session.id] = session
        self._counts[who] += 1
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            session.task = spawn_clean(self._serve(session))
            await session.is_ready.wait()
            await session.transport.handle_request(scope, receive, watch)
        finally:
            if not 200 <= status < 300:
                await self._close(session)

    async def _serve(self, session: Session) -> None:
        try:
            async with session.transport.connect() as (read_stream, write_stream):
                session.is_ready.set()
                with session.transport.idle_scope or anyio.CancelScope():
                    await serve_loop(self._server, read_stream, write_stream, lifespan_state={}, session_id=session.id)
        finally:
            session.is_ready.set()
            self._forget(session)

    def _forget(self, session: Session) -> None:
        if self._open.pop(session.id, None) is not None:
            self._counts[session.who] -= 1
            if not self._counts[session.who]:
                del self._counts[session.who]

    async def _close(self, session: Session) -> None:
        self._forget(session)
        if not session.transport.is_terminated:
            with anyio.CancelScope(shield=True):
                await session.transport.terminate()

    async def stop(self) -> None:
        """End all sessions."""
        tasks = [session.task for session in self._open.values()]
        await cancel_and_wait(*tasks, within=5.0)
