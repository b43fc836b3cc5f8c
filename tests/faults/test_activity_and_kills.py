"""A host behind Bot Service is killed while it streams, sends or creates a chat. Nothing is lost or doubled."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from frontdesk_testing.activity import FakeActivity, Person, fake_activity

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def _host(fake: FakeActivity, state: Path, how: str) -> AsyncIterator[asyncio.StreamWriter]:
    """Run a host that is killed at the end of the block; one that waits says a word more for each line of its input."""
    command = [sys.executable, "-m", "tests.faults.activity_host", fake.url, str(state), how]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=ROOT)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        fake.webhook = (await process.stdout.readline()).decode().strip()
        yield process.stdin
    finally:
        process.kill()
        assert await process.wait() == -signal.SIGKILL


def _texts(person: Person) -> list[str]:
    return [message.text for message in person.chat.shown()]


def _whole(person: Person) -> list[str]:
    return [message.text for message in person.chat.shown() if not message.is_stream]


async def test_a_host_that_is_killed_while_it_streams_is_followed_by_another(tmp_path: Path) -> None:
    async with fake_activity() as fake:
        ada = fake.person("Ada")
        async with _host(fake, tmp_path, "wait") as dictation:
            fake.say(ada, "one two three")
            await fake.until(lambda: _texts(ada) == ["one"])
            dictation.write(b"\n")
            await fake.until(lambda: _texts(ada) == ["one two"])
        fake.say(ada, "four")
        async with _host(fake, tmp_path, "go"):
            await fake.until(lambda: _whole(ada) == ["one two three", "four"])
        assert next(iter(ada.chat.streams.values())).state == "final"
        assert len(ada.chat.messages) == 2


async def test_a_host_that_is_killed_before_its_message_is_acted_on_leaves_it_unknown(tmp_path: Path) -> None:
    async with fake_activity() as fake:
        ada = fake.person("Ada")
        async with _host(fake, tmp_path, "silent"):
            hold = fake.hold_next("POST")
            fake.say(ada, "one")
            await hold.reached.wait()
        hold.release()
        fake.say(ada, "two")
        async with _host(fake, tmp_path, "silent"):
            # The first message arrived after the host was killed. It is not sent again.
            await fake.until(lambda: _texts(ada) == ["one", "two"])
            fake.say(ada, "three")
            await fake.until(lambda: _texts(ada) == ["one", "two", "three"])


async def test_a_host_that_is_killed_while_it_stores_an_activity_gets_it_again(tmp_path: Path) -> None:
    async with fake_activity() as fake:
        ada = fake.person("Ada")
        async with _host(fake, tmp_path, "silent"):
            hold = fake.hold_next("KEYS")
            fake.say(ada, "one")
            await hold.reached.wait()
        hold.release()
        async with _host(fake, tmp_path, "silent"):
            await fake.until(lambda: _texts(ada) == ["one"])
            fake.say(ada, "two")
            await fake.until(lambda: _texts(ada) == ["one", "two"])
