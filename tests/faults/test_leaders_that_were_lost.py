"""A leader that is killed, stopped or shut down is followed by another host, and never joined by one."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEASE = 2.0


@asynccontextmanager
async def host(postgres: str, *, lease: float = LEASE) -> AsyncIterator[Process]:
    """A host in a process of its own, ready to lead."""
    command = (sys.executable, "-m", "tests.faults.leading_host", postgres, str(lease))
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            process.send_signal(signal.SIGCONT)
        await process.wait()


async def line(process: Process) -> str:
    """The next thing that a host says."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def lead(process: Process) -> int:
    """Wait until a host leads; return its fence."""
    while not (said := await line(process)).startswith("leads"):
        assert said == "ready"
    return int(said.split()[1])


async def test_a_leader_that_was_killed_is_followed(postgres: str) -> None:
    async with host(postgres) as first:
        fence = await lead(first)
        async with host(postgres) as second:
            assert await line(second) == "ready"
            following = asyncio.create_task(lead(second))
            first.kill()
            await first.wait()
            assert await following == fence + 1


async def test_a_leader_that_stood_still_finds_its_body_cancelled(postgres: str) -> None:
    async with host(postgres) as first, host(postgres) as second:
        leading = {asyncio.create_task(lead(one)): one for one in (first, second)}
        done, waiting = await asyncio.wait(leading, return_when=asyncio.FIRST_COMPLETED)
        (led,), (following,) = done, waiting
        fence, leader = led.result(), leading[led]
        leader.send_signal(signal.SIGSTOP)
        assert await following == fence + 1
        leader.send_signal(signal.SIGCONT)
        while (said := await line(leader)) == "ready":
            pass
        assert said == "lost"


async def test_a_leader_that_shuts_down_hands_over_before_its_lease_ends(postgres: str) -> None:
    # With so long a lease, nobody leads again in this test unless it is released.
    async with host(postgres, lease=600.0) as first:
        fence = await lead(first)
        async with host(postgres, lease=600.0) as second:
            assert first.stdin is not None
            first.stdin.close()
            assert await lead(second) == fence + 1
            assert await first.wait() == 0
