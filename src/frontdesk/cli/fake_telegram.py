"""A fake Telegram as a process of its own, with a page on which a person can write to the demo."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from frontdesk.channels.telegram import TelegramChannel
from frontdesk.cli.mistakes import CommandError

_TOKEN = "700000001:a-token-that-opens-nothing-but-a-fake"  # noqa: S105
_COMMAND = (sys.executable, "-m", "frontdesk.testing.telegram", "--with-parent", "--token", _TOKEN)


@contextmanager
def fake_telegram() -> Generator[str]:
    """Run the fake as long as the block; yield the URL of its page."""
    # A session of its own: Ctrl-C is for the demo, which closes the input of the fake when it has ended.
    process = subprocess.Popen(  # noqa: S603
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    with process:
        url = b"" if process.stdout is None else process.stdout.readline().strip()
        if not url:
            raise CommandError("the fake Telegram does not start")
        try:
            yield url.decode()
        finally:
            if process.stdin is not None:
                process.stdin.close()


def channel_on(url: str) -> TelegramChannel:
    """Return the channel of the bot on a fake."""
    return TelegramChannel(bot_token=_TOKEN, api_url=url, transport="polling")
