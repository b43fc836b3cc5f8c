"""`frontdesk serve`: serves a host until Ctrl-C."""

import asyncio
import errno
import gc
import logging
import os
import re
import socket
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial

import uvicorn

from frontdesk.cli.check import describe
from frontdesk.cli.load import load_host
from frontdesk.cli.terminal import CommandError, list_findings
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host import AgentFrameworkHost
from frontdesk.host.config import bind_address
from frontdesk.http.server_limits import ServerLimits
from frontdesk.secret import redact
from frontdesk.server.uvicorn_server import Server
from frontdesk.telemetry.redaction import install

Listener = socket.socket
BACKLOG = 2048
GRACE_SECONDS = 10
_LIMITS = ServerLimits()
# The last line of a traceback that is logged elsewhere or only reports the shutdown.
_REPORTED = re.compile(r"(CancelledError|^frontdesk(\.\w+)+Error: .*)\n\Z", re.MULTILINE)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `PortTakenError` if the port is in use."""
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
            raise PortTakenError(f"port {port} of {host} is in use. Choose another with --port") from None
        raise CommandError(f"can't listen on port {port} of {host}: {_reason(error)}") from None
    return listener


class PortTakenError(CommandError):
    """Another program listens on the port."""


def base_url(listener: socket.socket) -> str:
    """Return the URL for a client on this machine."""
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
    """Serve until a signal stops it. Call `on_ready` when the host has started.

    `proxies` are the addresses whose forwarding headers are trusted. `root_path` is the prefix that they have stripped
    from the path.
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
        raise CommandError("the host did not start. See the log above for the reason") from None
    return 0


def set_up_logs(level: str) -> None:
    # The root logger stays as it is: the detailed logs of other libraries may contain messages of users.
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("frontdesk", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())


def new_loop() -> asyncio.AbstractEventLoop:
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
    """Return False for cancellations at shutdown and for errors that the host has already logged."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError) and not _REPORTED.search(record.getMessage())


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


YOUNG_OBJECTS = 50_000


def run(arguments: Namespace) -> int:
    if arguments.reload:
        # Each process loads the host anew; this one only watches the files.
        return watch(arguments, listen(*bind_address(arguments.host, arguments.port)))
    return serve_on(arguments)


def serve_on(arguments: Namespace, listener: Listener | None = None) -> int:
    """Load the host and serve it, on a given listening socket or on a new one."""
    try:
        host = load_host(arguments.reference, arguments.state_dir)
        address, port = bind_address(arguments.host, arguments.port)
        host.check_bind(address)
    except ChannelConfigurationError as error:
        raise CommandError(list_findings(str(arguments.reference), error.findings)) from None
    limits = _limits(arguments)
    listener = listener or listen(address, port)
    base = base_url(listener)

    def ready() -> None:
        spare_the_collector()
        lines = [f"{host.target.name} is served at {base}", *describe(host, base)]
        print(*lines, f"  health: {base}/healthz and {base}/readyz", "Ctrl-C stops it.", sep="\n", flush=True)

    return serve(
        host,
        listener,
        on_ready=ready,
        log_level=arguments.log_level,
        limits=limits,
        root_path=arguments.root_path or "",
        proxies=arguments.proxy,
    )


def _limits(arguments: Namespace) -> ServerLimits:
    limits = ServerLimits(
        max_connections=arguments.max_connections,
        max_url_bytes=arguments.max_url_bytes,
        max_head_bytes=arguments.max_head_bytes,
        max_header_bytes=min(ServerLimits.max_header_bytes, arguments.max_head_bytes),
        head_seconds=arguments.head_seconds,
        send_seconds=arguments.send_seconds,
    )
    if findings := limits.findings():
        raise CommandError(list_findings("frontdesk serve", findings))
    return limits


def spare_the_collector() -> None:
    """Exclude all loaded objects from garbage collection, and collect less often.

    This affects the whole process. Only commands, which own their process, may call it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


def watch(arguments: Namespace, listener: Listener) -> int:
    """Serve until a signal stops it, restarting on code changes. The port stays open so that no caller is refused."""
    # Only a reload needs the watcher of Uvicorn.
    from uvicorn.supervisors import ChangeReload

    set_up_logs(arguments.log_level)
    config = uvicorn.Config("", log_config=None, reload=True)
    ChangeReload(config, target=partial(serve_once, arguments), sockets=[listener]).run()
    return 0


def serve_once(arguments: Namespace, sockets: list[Listener] | None = None) -> None:
    """Serve in a subprocess until the code changes. Errors in the code are printed, then it waits for a change."""
    try:
        serve_on(arguments, sockets[0] if sockets else None)
    except CommandError as error:
        print(f"frontdesk: {redact(str(error))}", file=sys.stderr, flush=True)
