"""Platforms for one test."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from frontdesk_testing.messages import MessagePlatform
from frontdesk_testing.messages.platform.main import main
from tests.forked import fork


def run_platform(*arguments: str) -> None:
    """Run the platform with the arguments of its command line."""
    main(arguments)


@asynccontextmanager
async def fork_platform(log: Path, *options: str) -> AsyncIterator[MessagePlatform]:
    """Start a platform as `message_platform` does, without the time that its imports take."""
    process = await fork(f"{__name__}:run_platform", "--log", str(log), *options)
    try:
        url = (await process.stdout.readline()).decode().strip()
        assert url, "the platform did not start"
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
            yield MessagePlatform(url, log, http, pid=process.pid)
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def new_platform(*options: str) -> AsyncIterator[MessagePlatform]:
    """Start a platform with an empty log."""
    with tempfile.TemporaryDirectory() as place:
        async with fork_platform(Path(place) / "accepted.jsonl", *options) as platform:
            yield platform
