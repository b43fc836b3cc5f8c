"""A host on the fake Bot Service in a process of its own. Its first line of output is its URL."""

import asyncio
import sys
from collections.abc import AsyncIterator

from agent_framework import AgentResponseUpdate

from frontdesk import AgentFrameworkHost
from frontdesk.channels.activity import ActivityChannel, ClientSecret
from frontdesk.interfaces.chat import LiveTerms, PushTerms
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.activity import APP_ID, APP_SECRET


class Dictated(EchoAgent):
    """Says a word, and waits for a line of the input before it says the next."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        async for update in super().speak(words):
            yield update
            await asyncio.to_thread(sys.stdin.readline)


async def main(url: str, state_dir: str, how: str) -> None:
    """Serves until the process is killed."""
    channel = ActivityChannel(
        app_id=APP_ID,
        credential=ClientSecret(APP_SECRET),
        connector_url=url,
        live="off" if how == "silent" else "always",
        live_terms=LiveTerms(interval=0.01, group=False),
        push_terms=PushTerms(),
        call_timeout=60.0,
    )
    agent = Dictated() if how == "wait" else EchoAgent()
    async with serving(AgentFrameworkHost(agent, channels=[channel], state_dir=state_dir)) as client:
        print(f"{client.base_url}/activity/messages", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
