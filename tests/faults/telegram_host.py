"""A host on the fake Telegram in a process of its own; it polls, so it needs no port."""

import asyncio
import sys
from collections.abc import AsyncIterator

from agent_framework import AgentResponseUpdate

from frontdesk import AgentFrameworkHost
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.interfaces.chat import LiveTerms, PushTerms
from frontdesk_testing import EchoAgent


class Dictated(EchoAgent):
    """Says a word, and waits for a line of the input before it says the next."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        async for update in super().speak(words):
            yield update
            await asyncio.to_thread(sys.stdin.readline)


async def main(url: str, token: str, state_dir: str, how: str) -> None:
    """Serves until the process is killed."""
    channel = TelegramChannel(
        bot_token=token,
        api_url=url,
        transport="polling",
        poll_seconds=5.0,
        live="always",
        live_terms=LiveTerms(interval=0.01),
        push_terms=PushTerms(),
    )
    agent = Dictated() if how == "wait" else EchoAgent()
    host = AgentFrameworkHost(agent, channels=[channel], state_dir=state_dir)
    async with host.app.router.lifespan_context(host.app):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
