"""Asks a host by its socket."""

import asyncio
from pathlib import Path
from typing import Any

from frontdesk import OperatorClient


async def call(path: Path, what: str, **given: Any) -> Any:
    """What a client is answered, in a thread of its own."""

    def ask() -> Any:
        with OperatorClient(path) as host:
            return host.call(what, given)

    return await asyncio.to_thread(ask)
