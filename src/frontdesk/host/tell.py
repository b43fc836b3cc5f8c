"""Says something to a person first, beside any answer."""

import asyncio
from collections.abc import Mapping

from agent_framework import AgentResponse, Message

from frontdesk.abc.channel import Channel, ChannelPush
from frontdesk.clock import Clock
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.result import HostedRunResult
from frontdesk.data.run import RunRecord
from frontdesk.ids import Ids
from frontdesk.loggers import host as log

LONGEST = 10.0
"""How many seconds a platform may take for it."""
MOST_WAITING = 1_000


class Teller:
    """Speaks through the channels that can push."""

    def __init__(self, channels: Mapping[str, Channel], ids: Ids, clock: Clock) -> None:
        self._channels = channels
        self._ids = ids
        self._clock = clock
        self._tasks: set[asyncio.Task[bool]] = set()

    def can_tell(self, identity: ChannelIdentity) -> bool:
        """Whether the channel of an identity can speak first."""
        return isinstance(self._channels.get(identity.channel), ChannelPush)

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Says something in a person's direct chat, if that can be done; what goes wrong is only logged."""
        channel = self._channels.get(identity.channel)
        if not isinstance(channel, ChannelPush):
            return False
        try:
            await asyncio.wait_for(channel.push(identity, self._said(identity, text)), LONGEST)
        except Exception as error:  # Whatever a platform's client raises: what was done before stays done.
            log.warning("somebody on %s could not be told of a change: %s", identity.channel, type(error).__name__)
            return False
        return True

    def tell_soon(self, identity: ChannelIdentity, text: str) -> None:
        """The same, without waiting for it."""
        if not self.can_tell(identity):
            return
        if len(self._tasks) >= MOST_WAITING:
            log.warning("somebody on %s was not told of a change: too much waits", identity.channel)
            return
        task = asyncio.get_running_loop().create_task(self.tell(identity, text))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, grace: float) -> None:
        """Lets what is under way end for a while."""
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _said(self, identity: ChannelIdentity, text: str) -> HostedRunResult[AgentResponse]:
        run = RunRecord(
            run_id=self._ids.new("run"),
            owner="",
            channel=identity.channel,
            status="completed",
            created_at=self._clock.now(),
        )
        return HostedRunResult(result=AgentResponse(messages=[Message("assistant", [text])]), run=run)
