"""One turn of a session at a time, within this process. A lock that nobody holds or waits for takes no memory."""

import asyncio
from collections import deque

from frontdesk.errors import SessionBusyError


class SessionLocks:
    """A fair lock for each session id."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]] | None] = {}

    def held(self, session_id: str) -> bool:
        """Whether a turn of the session is open."""
        return session_id in self._waiting

    def try_take(self, session_id: str) -> bool:
        """Takes the lock if it is free."""
        if session_id in self._waiting:
            return False
        # Hardly any session has somebody waiting, so that the row is made when the first one comes.
        self._waiting[session_id] = None
        return True

    async def take(self, session_id: str, wait: float | None) -> None:
        """Waits for the lock, in order of arrival; for ever if there is no limit."""
        if self.try_take(session_id):
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._waiting[session_id]
        if queue is None:
            queue = self._waiting[session_id] = deque()
        queue.append(turn)
        try:
            async with asyncio.timeout(wait):
                await turn
        except BaseException as error:
            self._give_up(session_id, turn)
            if isinstance(error, TimeoutError):
                raise SessionBusyError(retry_after=1.0) from None
            raise

    def _give_up(self, session_id: str, turn: "asyncio.Future[None]") -> None:
        if turn.done() and not turn.cancelled():
            # The lock was handed over in the moment in which we stopped waiting.
            self.release(session_id)
        elif turn in (queue := self._waiting.get(session_id) or deque()):
            # If it is not there, a release has passed over it already.
            queue.remove(turn)

    def release(self, session_id: str) -> None:
        """Hands the lock to the next in line."""
        queue = self._waiting[session_id]
        while queue:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[session_id]
