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

Listener = socket.socket
BACKLOG = 2048
GRACE_SECONDS = 10
_LIMITS = ServerLimits()
# The last line of a traceback that is logged elsewhere or only reports the shutdown.
_REPORTED = re.compile(r"(CancelledError|^frontdesk\.errors[.\w]+: .*)\n\Z", re.MULTILINE)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `PortTakenError` if the port is in use."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CommandError(f"--host: {host!r} is not an address of this machine: {_reason(error)}") from None
    # Prefer the IPv4 address of `localhost`, which every client tries.
    family, kind, protocol, _, address = min(addresses, key=lambda candidate: candidate[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Only a listening socket reserves the port.
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(f"port {port} of {host} is taken; choose another with --port") from None
        raise CommandError(f"can't listen on port {port} of {host}: {_reason(error)}") from None
    return listener


class PortTakenError(CommandError):
    """Another program listens on the port."""


def base_url(listener: socket.socket) -> str:
    """Return the address for a client on this machine."""
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
    root_path: str = "",
    proxies: str | None = None,
) -> int:
    """Serve until a signal stops it; call `on_ready` when the host has started.

    `proxies` are the addresses whose headers say who calls, and `root_path` is what they have cut off the path.
    """
    set_up_logs(log_level)
    logging.getLogger("uvicorn.error").addFilter(_is_worth_logging)
    install()
    config = uvicorn.Config(
        host.app,
        log_config=None,
        access_log=log_level == "debug",
        lifespan="on",
        # Any client can send the headers of a proxy, and checks by address need that of the connection.
        proxy_headers=proxies is not None,
        forwarded_allow_ips=proxies,
        root_path=root_path,
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
    """Show the logs of the host and its server."""
    # The root logger stays as it is: the detailed logs of other libraries may contain messages of users.
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("frontdesk", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())


def new_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of the kind that the server uses."""
    make = uvicorn.Config(app="", log_config=None).get_loop_factory()
    return asyncio.new_event_loop() if make is None else make()


class _Server(Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], limits: ServerLimits) -> None:
        super().__init__(config, limits)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_ready()


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Tell whether a record is neither a cancellation at shutdown nor an error that the host has logged."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError) and not _REPORTED.search(record.getMessage())


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
