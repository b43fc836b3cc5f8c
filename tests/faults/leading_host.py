"""A host without doors that leads when it may, and says so on its standard output."""

import asyncio
import sys
from typing import Any

from frontdesk import AgentFrameworkHost, Channel, ChannelContribution
from frontdesk.errors import LeadershipLostError
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.stores.sql.postgres.engine import PostgresStateStore


class ImpatientStore(PostgresStateStore):
    """A store whose leases end while a test waits for it."""

    outlasts_timeouts = False


class Poller(Channel):
    """A channel that only one replica may poll for."""

    name, path, requires_auth_when_public = "poller", "/poller", False

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._context = context
        return ChannelContribution(on_startup=[self._start], on_shutdown=[self._stop])

    async def _start(self) -> None:
        self._task = asyncio.create_task(self._poll())

    async def _stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _poll(self) -> None:
        while True:
            try:
                async with self._context.storage.leadership("poll") as led:
                    print("leads", led.fence, flush=True)
                    await asyncio.Event().wait()
            except LeadershipLostError:
                print("lost", flush=True)


async def _live(postgres: str, lease: float) -> None:
    async def echo(text: str) -> str:
        return text

    store: Any = ImpatientStore(postgres, lease_seconds=lease)
    async with AgentFrameworkHost(echo, channels=[Poller()], store=store).working():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(_live(sys.argv[1], float(sys.argv[2])))
