"""The protocol for runs that their own request records as begun."""

from typing import Protocol

from frontdesk.data.run import RunRecord
from frontdesk.sessions.job import Job
from frontdesk.sessions.turn import Turn


class IdempotentRuns(Protocol):
    """Records runs as begun when their requests have idempotency keys."""

    async def hold(self, turn: Turn, record: RunRecord) -> Job:
        """Write that a run begins; a key that another request has used is a `RunExistsError`."""
        ...

    async def revoke(self, turn: Turn) -> None:
        """Take back that a run began: its request was refused, and its key is free again."""
        ...

    def let_go(self, turn: Turn) -> None:
        """Release the hold; a run whose end could not be written is left to another worker."""
        ...
