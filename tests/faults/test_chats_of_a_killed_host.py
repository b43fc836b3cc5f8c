"""A host is killed between an event and its answer: the event was kept, and is answered by the next one."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from frontdesk_testing.messages import MessagePlatform
from tests.testing.messages.starting import new_platform

HERE = Path(__file__)


@asynccontextmanager
async def _host(platform: MessagePlatform, state: Path, how: str) -> AsyncIterator[asyncio.StreamReader]:
    """A host that is killed at the end of the block; its output has what the agent heard."""
    command = [sys.executable, "-m", "tests.faults.chat_host", platform.url, platform.token, str(state), how]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=HERE.parents[2])
    try:
        assert process.stdout is not None
        yield process.stdout
    finally:
        process.kill()
        await process.wait()


async def test_an_acknowledged_event_is_answered_after_a_kill(tmp_path: Path) -> None:
    async with new_platform() as platform:
        ada = await platform.user("Ada")
        event = await platform.say(ada, "are you there?")
        async with _host(platform, tmp_path, "wait") as output:
            assert await output.readline() == b"are you there?\n"
            # The next poll confirms what was kept, and from then on it is the host's alone.
            await platform.wait_for_acknowledged(event)
        assert await platform.answers(ada.chat_id) == []
        async with _host(platform, tmp_path, "go") as output:
            assert await output.readline() == b"are you there?\n"
            await platform.say(ada, "good")
            answers = await platform.wait_for_answers(ada.chat_id, 2)
        assert [one.text for one in answers] == ["are you there?", "good"]
        assert [one.text for one in platform.log_on_disk() if one.method == "send"] == ["are you there?", "good"]
