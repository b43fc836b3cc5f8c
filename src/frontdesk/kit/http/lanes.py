"""The work of one connection: in order within a lane, lanes side by side, and never much of it at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from frontdesk.errors import TooManyRequestsError
from frontdesk.kit.aio.tasks import spawn_within
from frontdesk.kit.http.sockets import SocketGoneError
from frontdesk.loggers import http as log

Work = Callable[[str | None, bytes], Awaitable[None]]
Broken = Callable[[str | None], Awaitable[None]]

MOST_LANES = 8
"""The number of lanes of one connection that may be at work."""
MOST_WAITING = 32
"""The number of messages of one connection that may wait for their turn."""


class Lanes:
    """Runs the work of one connection."""

    def __init__(self, work: Work, broken: Broken, *, most_bytes: int) -> None:
        """Call `broken` for a lane whose work failed; `most_bytes` limits the messages that wait."""
        self._work = work
        self._broken = broken
        self._most_bytes = most_bytes
        self._queues: dict[str | None, deque[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Tell whether anything is at work."""
        return bool(self._tasks)

    def works(self, lane: str | None) -> bool:
        """Tell whether a lane is at work."""
        return lane in self._queues

    def add(self, lane: str | None, message: bytes) -> None:
        """Put a message behind those of its lane; refuse it when too many wait already."""
        queue = self._queues.get(lane)
        if queue is None:
            if len(self._queues) >= MOST_LANES:
                raise TooManyRequestsError(f"A connection has {MOST_LANES} lanes at most.", retry_after=1)
            queue = self._queues[lane] = deque()
            task = spawn_within(self._run(lane, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting = [queued for messages in self._queues.values() for queued in messages]
        if len(waiting) >= MOST_WAITING or sum(map(len, waiting)) + len(message) > self._most_bytes:
            raise TooManyRequestsError("Too many messages wait on this connection.", retry_after=1)
        queue.append(message)

    async def _run(self, lane: str | None, queue: deque[bytes]) -> None:
        try:
            while queue:
                await self._run_one(lane, queue.popleft())
        except SocketGoneError:
            # The code that reads from the connection sees it too, and ends the other lanes.
            return
        finally:
            del self._queues[lane]

    async def _run_one(self, lane: str | None, message: bytes) -> None:
        try:
            await self._work(lane, message)
        except SocketGoneError:
            raise
        except Exception as error:
            # No code awaits this task: the log has the reason, the client learns that there is one.
            log.error("a message on a connection failed", exc_info=error)
            await self._broken(lane)

    async def stop(self) -> None:
        """End all work at once, and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
