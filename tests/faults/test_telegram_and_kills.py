"""A host on Telegram is killed in mid-answer: another goes on in the same message, and nothing is lost or doubled."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from frontdesk_testing.telegram import FakeTelegram, fake_telegram

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def _host(fake: FakeTelegram, state: Path, how: str) -> AsyncIterator[asyncio.StreamWriter]:
    """Run a host that is killed at the end of the block; one that waits says a word more for each line of its input."""
    command = [sys.executable, "-m", "tests.faults.telegram_host", fake.url, fake.token, str(state), how]
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, cwd=ROOT)
    try:
        assert process.stdin is not None
        yield process.stdin
    finally:
        process.kill()
        assert await process.wait() == -signal.SIGKILL


async def test_a_host_that_is_killed_in_mid_answer_is_followed_by_another(tmp_path: Path) -> None:
    async with fake_telegram() as fake:
        ada, bob = fake.user("Ada"), fake.user("Bob")
        async with _host(fake, tmp_path, "wait") as dictation:
            fake.say(ada, "one two three")
            await fake.until(lambda: fake.shown(fake.private(ada)).answers == ["one"])
            # A change of the message shows that its id was kept.
            dictation.write(b"\n")
            await fake.until(lambda: fake.shown(fake.private(ada)).answers == ["one two"])
        fake.say(ada, "four")
        fake.say(bob, "five")
        async with _host(fake, tmp_path, "go"):
            await fake.until(lambda: fake.shown(fake.private(ada)).answers == ["one two three", "four"])
            await fake.until(lambda: fake.shown(fake.private(bob)).answers == ["five"])
            fake.say(ada, "six")
            await fake.until(lambda: len(fake.shown(fake.private(ada)).answers) == 3)
        assert fake.shown(fake.private(ada)).answers == ["one two three", "four", "six"]
        assert fake.shown(fake.private(bob)).answers == ["five"]
        assert len(fake.list_calls("sendMessage")) == 4
