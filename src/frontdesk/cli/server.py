"""Binds a port and runs uvicorn on it."""

import asyncio
import errno
import logging
import os
import re
import socket
from collections.abc import Callable

import uvicorn

from frontdesk.cli.mistakes import CommandError
from frontdesk.host import AgentFrameworkHost
from frontdesk.host.server.server import Server
from frontdesk.kit.auth.redaction import install
from frontdesk.kit.http.server_limits import ServerLimits

BACKLOG = 2048
GRACE_SECONDS = 10
_LIMITS = ServerLimits()
# How a traceback ends that is no news.
_TOLD = re.compile(r"(CancelledError|^frontdesk\.errors\.\w+: .*)\n\Z", re.MULTILINE)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; `PortTakenError` if somebody else's does."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CommandError(f"--host: {host!r} is not an address of this machine: {_reason(error)}") from None
    # Of `localhost` the IPv4 address: it is the one that every client tries.
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    opened = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        # Only a listening socket keeps others from the port.
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(f"port {port} of {host} is taken; choose another with --port") from None
        raise CommandError(f"can't listen on port {port} of {host}: {_reason(error)}") from None
    return opened


class PortTakenError(CommandError):
    """Another program listens on the port."""


def base_url(listener: socket.socket) -> str:
    """The address to type into a client on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = "127.0.0.1" if listener.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    host: AgentFrameworkHost,
    listener: socket.socket,
    *,
    on_ready: Callable[[], None],
    log_level: str,
    grace_seconds: int = GRACE_SECONDS,
    limits: ServerLimits = _LIMITS,
) -> int:
    """Serves until it is told to stop; `on_ready` runs when the host has started."""
    set_up_logs(log_level)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    install()
    config = uvicorn.Config(
        host.app,
        log_config=None,
        access_log=log_level == "debug",
        lifespan="on",
        # Anybody can send the headers of a proxy, and who is asked by address must be who has connected.
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=grace_seconds,
    )
    try:
        _Server(config, on_ready, limits).run(sockets=[listener])
    except KeyboardInterrupt:
        return 0
    except SystemExit:
        raise CommandError("the host did not start; the log above says why") from None
    return 0


def set_up_logs(level: str) -> None:
    """Shows what is logged of the host and its server."""
    # The root logger stays as it is: what other libraries log in detail may hold what people wrote.
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("frontdesk", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())


def new_loop() -> asyncio.AbstractEventLoop:
    """The loop that a server would have, where there is none."""
    make = uvicorn.Config(app="", log_config=None).get_loop_factory()
    return asyncio.new_event_loop() if make is None else make()


class _Server(Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], limits: ServerLimits) -> None:
        super().__init__(config, limits)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_ready()


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record says more than that the end of the server has cut something off, or what the host has told."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError) and not _TOLD.search(record.getMessage())


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
