"""Runs the platform until it is stopped."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from frontdesk_testing.messages.platform.api import Api
from frontdesk_testing.messages.platform.control import Platform
from frontdesk_testing.messages.platform.http import Connection
from frontdesk_testing.messages.platform.journal import Journal
from frontdesk_testing.messages.platform.records import Settings

TOKEN = "a-token-of-the-fake-platform"  # noqa: S105 - it opens nothing but a fake


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m frontdesk_testing.messages", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the first line of the output names it")
    parser.add_argument("--log", type=Path, required=True, help="the file that gets a line for all that was accepted")
    parser.add_argument("--token", default=TOKEN, help="what a bot has to show")
    parser.add_argument("--text-limit", type=int, default=Settings().text_limit, help="characters of a message")
    parser.add_argument("--no-dedupe", action="store_true", help="accept the same idempotency key again")
    parser.add_argument("--no-fsync", action="store_true", help="leave it to the system when the log is written")
    parser.add_argument("--with-parent", action="store_true", help="end when the standard input is closed")
    given = parser.parse_args(arguments)
    settings = Settings(text_limit=given.text_limit, dedupe=not given.no_dedupe)
    platform = Platform(Journal(given.log, sync=not given.no_fsync), settings)
    serve = _serve(platform, given.port, given.token, with_parent=given.with_parent)
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve)
    else:
        uvloop.run(serve)


class _Parent(asyncio.Protocol):
    """The parent process. This process ends with it."""

    def __init__(self, ended: asyncio.Event) -> None:
        self._ended = ended

    def eof_received(self) -> None:
        self._ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()


async def _serve(platform: Platform, port: int, token: str, *, with_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    api = Api(platform, token)
    server = await loop.create_server(lambda: Connection(api), "127.0.0.1", port)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    if with_parent:
        await loop.connect_read_pipe(lambda: _Parent(stopped), sys.stdin)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await stopped.wait()
    server.close()
    await platform.webhooks.close()
