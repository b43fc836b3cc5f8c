"""Runs the fake, with its page, until it is stopped."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from frontdesk_testing.telegram.flood import FloodLimits
from frontdesk_testing.telegram.page.routes import PeoplePage
from frontdesk_testing.telegram.server import TOKEN, FakeTelegram, serve_on


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m frontdesk_testing.telegram", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the first line of the output names it")
    parser.add_argument("--token", default=TOKEN, help="the token of the bot")
    parser.add_argument("--username", default="frontdesk_bot", help="the username of the bot")
    parser.add_argument("--person", action="append", help="a person who is there from the start; may be repeated")
    parser.add_argument("--no-privacy", action="store_true", help="let the bot see everything in groups")
    parser.add_argument("--topics", action="store_true", help="give private chats topics")
    parser.add_argument("--no-flood-control", action="store_true", help="let the bot send as fast as it can")
    parser.add_argument("--with-parent", action="store_true", help="end when the standard input is closed")
    asyncio.run(_serve(parser.parse_args(arguments)))


async def _serve(given: argparse.Namespace) -> None:
    telegram = FakeTelegram(
        token=given.token,
        username=given.username,
        privacy=not given.no_privacy,
        topics=given.topics,
        flood=None if given.no_flood_control else FloodLimits(),
    )
    for name in given.person or ["Ann"]:
        telegram.private(telegram.user(name))
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    if given.with_parent:
        await loop.connect_read_pipe(lambda: _Parent(stopped), sys.stdin)
    async with serve_on(telegram.app(PeoplePage(telegram).routes()), given.port) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await stopped.wait()
        await telegram.close()


class _Parent(asyncio.Protocol):
    """The parent process. This process ends with it."""

    def __init__(self, ended: asyncio.Event) -> None:
        self._ended = ended

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
