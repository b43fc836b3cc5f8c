"""Answers that are shown while they are written."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.live import LiveAnswer


class LiveAnswers(Protocol):
    """Live answers by the run, the channel and the place."""

    async def get(self, run_id: str, channel: str, place: str) -> LiveAnswer | None: ...

    async def lost(self, *, limit: int = 100) -> Sequence[LiveAnswer]:
        """List live answers that were lost, for operators; a long or unprintable name is given as its digest."""
        ...


class LiveAnswerWrites(Protocol):
    """Write live answers."""

    def save_live(self, live: LiveAnswer) -> None:
        """Keep how far a live answer is.

        If a later claim of its event or its run has written it, or it is closed, the transaction fails with
        `LostEventError`.
        """
        ...
