"""One turn of a session at a time, within this process. A lock that is free takes no memory."""

import asyncio
from collections import deque

from frontdesk.errors import SessionBusyError


class SessionLocks:
    """A fair lock for each session id."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]] | None] = {}

    def held(self, session_id: str) -> bool:
        """Tell whether a turn of the session is open."""
        return session_id in self._waiting

    def try_take(self, session_id: str) -> bool:
        """Take the lock if it is free, and tell whether it was."""
        if session_id in self._waiting:
            return False
        # Hardly any session is waited for, so the queue is made for the first waiter.
        self._waiting[session_id] = None
        return True

    async def take(self, session_id: str, wait: float | None) -> None:
        """Wait for the lock, in order of arrival; without a limit if `wait` is `None`."""
        if self.try_take(session_id):
            return
        waiter = asyncio.get_running_loop().create_future()
        queue = self._waiting[session_id]
        if queue is None:
            queue = self._waiting[session_id] = deque()
        queue.append(waiter)
        try:
            async with asyncio.timeout(wait):
                await waiter
        except BaseException as error:
            self._give_up(session_id, waiter)
            if isinstance(error, TimeoutError):
                raise SessionBusyError(retry_after=1.0) from None
            raise

    def _give_up(self, session_id: str, waiter: "asyncio.Future[None]") -> None:
        if waiter.done() and not waiter.cancelled():
            # The lock was handed over in the moment in which we stopped waiting.
            self.release(session_id)
        elif waiter in (queue := self._waiting.get(session_id) or deque()):
            # If it is not there, a release has passed over it already.
            queue.remove(waiter)

    def release(self, session_id: str) -> None:
        """Hand the lock to the next waiter."""
        queue = self._waiting[session_id]
        while queue:
            waiter = queue.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        del self._waiting[session_id]
