"""`frontdesk serve`: serves a host of the user until Ctrl-C."""

import gc
from argparse import Namespace

from frontdesk.cli.load import load_host
from frontdesk.cli.mistakes import CommandError, list_findings
from frontdesk.cli.report import describe
from frontdesk.cli.server import Listener, base_url, listen, serve
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host.config import bind_address
from frontdesk.kit.http.server_limits import ServerLimits

YOUNG_OBJECTS = 50_000


def run(arguments: Namespace) -> int:
    """Serve the host."""
    if arguments.reload:
        # Each process loads the host anew; this one only watches the files.
        from frontdesk.cli.reload import watch

        return watch(arguments, listen(*bind_address(arguments.host, arguments.port)))
    return serve_on(arguments)


def serve_on(arguments: Namespace, listener: Listener | None = None) -> int:
    """Load the host and serve it, on a socket that listens already or on a new one."""
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

    This affects the whole process, so only commands do it, which own their process.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
