"""A host on the fake platform in a process of its own; it polls, so it needs no port."""

import asyncio
import sys
from collections.abc import AsyncIterator

from agent_framework import AgentResponseUpdate

from frontdesk import AgentFrameworkHost
from frontdesk_testing import EchoAgent
from frontdesk_testing.messages import MessageChannel


class Voice(EchoAgent):
    """Tells what it heard on the output, and then goes on or waits for ever."""

    def __init__(self, waits: bool) -> None:
        super().__init__("voice")
        self._waits = waits

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        sys.stdout.write("".join(words) + "\n")
        sys.stdout.flush()
        if self._waits:
            await asyncio.Event().wait()
        async for update in super().speak(words):
            yield update


async def main(url: str, token: str, state_dir: str, how: str) -> None:
    """Serves until the process is killed."""
    channel = MessageChannel(platform_url=url, token=token, intake="polling")
    host = AgentFrameworkHost(Voice(how == "wait"), channels=[channel], state_dir=state_dir)
    async with host.app.router.lifespan_context(host.app):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
