"""Looks whether the client of a request is still there.

Watching costs a task, and most requests are over before a client could lose patience, so it begins after a while. All
requests of an endpoint wait for that in one place with one timer: to come and to go costs each of them next to nothing.
"""

import asyncio
from typing import Any

from starlette.types import Receive


class Watched:
    """A request that is cancelled when its client goes away."""

    __slots__ = ("gone", "receive", "round", "task", "watcher")

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.gone = False
        """Whether the client has left."""
        self.task: asyncio.Task[Any] | None = None
        self.watcher: asyncio.Task[None] | None = None
        self.round = 0

    def forgive(self) -> bool:
        """Whether the task was cancelled because the client has left; then the cancellation is taken back."""
        if self.gone and self.task is not None:
            self.task.uncancel()
        return self.gone

    async def watch(self) -> None:
        """Waits for the client to leave."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self.task is not None:
            self.task.cancel()


class Watches:
    """The requests of one endpoint."""

    __slots__ = ("_came", "_loop", "_patience", "_round", "_young")

    def __init__(self, patience: float) -> None:
        """The client of a request that takes longer than this is watched before it takes twice as long."""
        self._patience = patience
        self._loop: asyncio.AbstractEventLoop | None = None
        self._round = 0
        self._came = False
        self._young: set[Watched] = set()
        """Those whose clients nobody watches yet."""

    def add(self, request: Watched, task: "asyncio.Task[Any]") -> None:
        """From here on all that the client can do is leave; `task` is what would be cancelled."""
        # Until Python 3.12, asking which loop is running costs a call of the system.
        loop = task.get_loop()
        if loop is not self._loop:
            self._loop = loop
            self._young.clear()
            loop.call_later(self._patience, self._look, loop)
        self._came = True
        request.task, request.round = task, self._round
        self._young.add(request)

    def drop(self, request: Watched) -> None:
        """The request is over."""
        self._young.discard(request)
        if request.watcher is not None and not request.gone:
            request.watcher.cancel()
        # The two would keep each other alive until the garbage collector comes.
        request.task = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not loop:
            return
        for one in [one for one in self._young if one.round < self._round]:
            self._young.discard(one)
            one.watcher = loop.create_task(one.watch())
        self._round += 1
        if self._young or self._came:
            self._came = False
            loop.call_later(self._patience, self._look, loop)
        else:
            # Nobody was here since the last time; the next one starts it again.
            self._loop = None
