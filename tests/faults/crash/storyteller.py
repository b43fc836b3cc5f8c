"""A host that tells long stories, in a process of its own.

Asked for `40`, it tells forty words, a moment apart; asked for `40 stop`, it makes a file `stop-reached` beside SIGNS
in the middle, and waits for a file `stop`. It says its port on its output when it is ready.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn

from frontdesk import AgentFrameworkHost
from frontdesk.channels.a2a import A2AChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.databases import short_lease

A_MOMENT = 0.002


def tell(count: int) -> str:
    """The whole story."""
    return "".join(f"word{number} " for number in range(count))


async def wait_for_sign(sign: Path) -> None:
    """Waits for a file that a test makes."""
    while not await asyncio.to_thread(sign.exists):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def main(kind: str, place: str, signs: str, lease: str, wait: str) -> None:
    """Serves until it is killed."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    async def story(text: str) -> AsyncIterator[str]:
        count, _, sign = text.partition(" ")
        for number in range(int(count)):
            yield f"word{number} "
            await asyncio.sleep(A_MOMENT)
            if sign and number == int(count) // 2:
                Path(signs).with_name(f"{sign}-reached").touch()
                await wait_for_sign(Path(signs).with_name(sign))

    async def ready() -> None:
        print(port, flush=True)

    where: dict[str, Any] = {"state_dir": place} if kind == "sqlite" else {"store": short_lease(place, float(lease))}
    host = AgentFrameworkHost(
        story,
        channels=[InvocationsChannel(), ResponsesChannel(), A2AChannel()],
        max_background_runs=2,
        shutdown_grace_seconds=0,
        on_startup=[ready],
        **where,
    )
    uvicorn.Server(uvicorn.Config(host.app, log_level="critical", timeout_keep_alive=300)).run(sockets=[listener])
