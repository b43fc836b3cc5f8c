"""Uvicorn with limits on unauthenticated input, and a shutdown that clients cannot block."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import uvicorn

from frontdesk.errors import ChannelConfigurationError, FrontdeskError
from frontdesk.http.server import STATE_NAME, ServerStop
from frontdesk.http.server_limits import ServerLimits, count_allowed_connections
from frontdesk.loggers import host as log
from frontdesk.server.http_protocol import ConnectionGate
from frontdesk.server.socket_protocol import BoundedSocketProtocol
from frontdesk.server.unread import UnreadWatch, limit_unsent
from frontdesk.telemetry.redaction import install

_NOT_STARTED = 3
_ANSWER_SECONDS = 1.0
"""The seconds for which requests may send their answers once their runs were ended."""
_DEFAULTS = ServerLimits()


class Server(uvicorn.Server):
    """Serves an app until it is stopped.

    Without `limits`, the protocol is that of the configuration, and clients are not limited.
    """

    def __init__(self, config: uvicorn.Config, limits: ServerLimits | None = _DEFAULTS) -> None:
        # Otherwise a request can see the context variables of the one before it on the same connection, which behind a
        # proxy is another caller's.
        config.reset_contextvars = True
        # A few kilobytes that unpack to megabytes would be unpacked before they are counted, and before a stranger is
        # refused; messages that are sent would be packed on the event loop.
        config.ws_per_message_deflate = False
        super().__init__(config)
        self._stop = ServerStop()
        self._unread: UnreadWatch | None = None
        if limits is not None:
            config.http = _build_bounded(config, limits)
            if config.ws in ("auto", "websockets-sansio"):
                config.ws = BoundedSocketProtocol
            self._unread = UnreadWatch(self.server_state.connections, limits.send_seconds)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # The app gets this state when it starts, and each request has a copy of it in its scope.
        self.lifespan.state[STATE_NAME] = self._stop
        await super().startup(sockets)
        if self._unread is not None:
            for server in self.servers:
                for listener in server.sockets:
                    limit_unsent(listener)
            self._unread.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A WebSocket whose client has sent a close frame and does not read on makes uvicorn fail here, before it stops
        # the app: nothing would be drained or closed.
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            if getattr(connection, "scheme", "") in ("ws", "wss") and connection.transport.is_closing():
                connection.transport.abort()
        # Feeds that stay open end now: they would hold up the end for as long as the server waits for answers.
        self._stop.begin()
        # They are gone in the loop's next turn.
        await asyncio.sleep(0)
        try:
            await super().shutdown(sockets)
        finally:
            if self._unread is not None:
                self._unread.stop()

    async def _wait_tasks_to_complete(self) -> None:
        try:
            await super()._wait_tasks_to_complete()
        except asyncio.CancelledError:
            # The time is over, and the requests that are left are cancelled next. Their runs end before that, so that
            # clients get the ends that are recorded.
            if not self.force_exit:
                await self._end_requests()
            raise

    async def _end_requests(self) -> None:
        for call in self._stop.before_cancel:
            try:
                await call()
            except FrontdeskError as error:
                # The store may be away, and the server has to stop all the same.
                log.error("failed to end runs before the server stops", exc_info=error)
        if self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks), timeout=_ANSWER_SECONDS)


def _build_bounded(config: uvicorn.Config, limits: ServerLimits) -> Any:
    findings = limits.findings()
    http2 = getattr(config, "http2", False)
    if config.http not in ("auto", "httptools") or http2:
        findings.append(
            f"http={config.http!r}, http2={http2}: the limits hold for HTTP/1.1 by httptools only; leave both out, "
            "or write limits=None and set limits on the proxy in front"
        )
    if findings:
        raise ChannelConfigurationError(findings)
    most = count_allowed_connections(limits.max_connections, _max_open_files())
    if most < limits.max_connections:
        log.warning(
            "%d connections at once and not %d, since the process may not open more files; see `ulimit -n`",
            most,
            limits.max_connections,
        )
    return ConnectionGate(limits, most, config.timeout_keep_alive).protocol


def _max_open_files() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def run(app: Any, limits: ServerLimits | None = _DEFAULTS, **options: Any) -> None:
    """Run a server to its end, as `uvicorn.run` does."""
    server = Server(uvicorn.Config(app, **options), limits)
    # After the server has set its handlers up.
    install()
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        raise SystemExit(_NOT_STARTED)
