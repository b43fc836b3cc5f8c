"""The live answers of the in-memory store. Nothing here awaits, so on one event loop every call is atomic."""

from collections.abc import Sequence

from frontdesk.data.live import LiveAnswer
from frontdesk.errors import LostEventError
from frontdesk.stores.shelf import Shelf


class MemoryLiveAnswers:
    """Live answers by the run, the channel and the place."""

    def __init__(self, limit: int) -> None:
        self.kept: Shelf[tuple[str, str, str], LiveAnswer] = Shelf(limit)

    async def get(self, run_id: str, channel: str, place: str) -> LiveAnswer | None:
        return self.kept.get((run_id, channel, place))

    async def lost(self, *, limit: int = 100) -> Sequence[LiveAnswer]:
        answers = sorted((live for _, live in self.kept.items() if live.state == "lost"), key=lambda live: live.run_id)
        return answers[:limit]

    def check(self, live: LiveAnswer) -> None:
        """Refuse a write if a later claim has written, or the answer is closed."""
        current = self.kept.get((live.run_id, live.channel, live.place))
        if current is not None and (current.fence > live.fence or current.state == "closed"):
            raise LostEventError

    def save(self, live: LiveAnswer) -> None:
        """Keep a live answer."""
        self.kept.put((live.run_id, live.channel, live.place), live)

    def drop_expired(self, now: float) -> None:
        """Drop what has expired."""
        for place in [place for place, live in self.kept.items() if live.expires_at < now]:
            self.kept.pop(place)
