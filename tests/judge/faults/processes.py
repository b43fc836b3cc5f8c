"""Kills, and processes that stand still."""

import asyncio
import signal
from contextlib import suppress
from random import Random

from tests.judge.court import Court
from tests.judge.site import Process

LEASE = 3.0
"""For how many seconds the leases of the hosts are good: whoever stands still for longer has lost them."""


async def start_again(process: Process) -> None:
    """Start a process. If another fault keeps it from starting, the supervisor starts it once more."""
    with suppress(RuntimeError, TimeoutError):
        await process.start()


async def kill(court: Court, rng: Random) -> None:
    """End a process at once, and start it again."""
    process = rng.choice(court.site.processes)
    async with process.changing:
        with court.disturb():
            court.note_kill()
            await process.kill()
            await asyncio.sleep(rng.random() * 0.5)
            await start_again(process)


async def stop(court: Court, rng: Random) -> None:
    """Have a process stand still, for a moment or for longer than its leases."""
    process = rng.choice(court.site.processes)
    seconds = rng.choice((0.3, 1.0, 4.5))
    with court.disturb():
        if seconds > LEASE:
            court.note_kill()
            court.ledger.pauses += 1
        process.send(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        process.send(signal.SIGCONT)
