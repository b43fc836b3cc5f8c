"""Used nonces, in the memory of this process only."""

from heapq import heappop, heappush

from frontdesk.errors import StoreUnavailableError

MAX_NONCES = 1_000_000


class ProcessNonces:
    """Nonces in memory until they expire. Nothing here awaits, so a use is atomic on one event loop."""

    def __init__(self, limit: int = MAX_NONCES) -> None:
        self._limit = limit
        self._used: set[tuple[str, str]] = set()
        self._by_end: list[tuple[float, tuple[str, str]]] = []

    async def use(self, scope: str, nonce: str, *, now: float, expires_at: float) -> bool:
        """Use a nonce. Return False if it is already used. Raise `StoreUnavailableError` if memory is full."""
        while self._by_end and self._by_end[0][0] <= now:
            self._used.discard(heappop(self._by_end)[1])
        key = (scope, nonce)
        if key in self._used:
            return False
        if len(self._used) >= self._limit:
            # To forget one before its time would let it count again.
            raise StoreUnavailableError
        self._used.add(key)
        heappush(self._by_end, (expires_at, key))
        return True

    def __len__(self) -> int:
        return len(self._used)
