"""Platforms for one test."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from frontdesk.testing.messages import MessagePlatform, message_platform


@asynccontextmanager
async def new_platform(*options: str) -> AsyncIterator[MessagePlatform]:
    """A platform with an empty log."""
    with tempfile.TemporaryDirectory() as place:
        async with message_platform(Path(place) / "accepted.jsonl", *options) as platform:
            yield platform
