"""Nonces that were used, remembered by this process alone."""

from heapq import heappop, heappush

from frontdesk.errors import StoreUnavailableError

MOST_NONCES = 1_000_000


class ProcessNonces:
    """Nonces in memory, each until it expires; nothing here awaits, so on one event loop a use is atomic."""

    def __init__(self, limit: int = MOST_NONCES) -> None:
        self._limit = limit
        self._used: dict[tuple[str, str], float] = {}
        self._by_end: list[tuple[float, tuple[str, str]]] = []

    async def use(self, scope: str, nonce: str, *, now: float, expires_at: float) -> bool:
        """Take a nonce; `False` if it is taken already. Without room it is a `StoreUnavailableError`."""
        self.drop_expired(now)
        key = (scope, nonce)
        if key in self._used:
            return False
        if len(self._used) >= self._limit:
            # To forget one before its time would let it count again.
            raise StoreUnavailableError
        self._used[key] = expires_at
        heappush(self._by_end, (expires_at, key))
        return True

    def drop_expired(self, now: float) -> int:
        """Forget what has expired; returns how many."""
        before = len(self._used)
        while self._by_end and self._by_end[0][0] <= now:
            del self._used[heappop(self._by_end)[1]]
        return before - len(self._used)

    def __len__(self) -> int:
        return len(self._used)
