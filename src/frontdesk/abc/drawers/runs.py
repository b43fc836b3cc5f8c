"""Runs, their events, and those that run in the background."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.background import BackgroundRun
from frontdesk.data.run import RunEvent, RunRecord


class Runs(Protocol):
    """Runs and the events of background streams."""

    async def get(self, owner: str, run_id: str) -> RunRecord | None: ...

    async def events(self, owner: str, run_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[RunEvent]:
        """List events with a number above `after`, in order."""
        ...


class Background(Protocol):
    """Runs in the background that have not ended."""

    async def get(self, owner: str, run_id: str) -> BackgroundRun | None: ...

    async def of_owner(self, owner: str) -> Sequence[BackgroundRun]:
        """List the runs of an owner, oldest first."""
        ...

    async def claim(self, holder: str, *, limit: int, skip: Sequence[tuple[str, str]] = ()) -> Sequence[BackgroundRun]:
        """Take up runs on which nobody works, oldest first: those that wait, and those whose process is gone.

        They are the holder's for `lease_seconds`. Where no other process can have them, whatever another holder has
        left is free. Left to others are those of the owners and ids in `skip`, and those that only a newer version can
        read.
        """
        ...

    async def renew(self, jobs: Sequence[BackgroundRun]) -> Sequence[BackgroundRun]:
        """Keep runs for another `lease_seconds`; return those that are still the holder's, as they are now."""
        ...


class RunWrites(Protocol):
    """Write runs, and how far those in the background are."""

    def save_run(self, record: RunRecord, *, new: bool = False) -> None:
        """Write a run as it is now; one that must be new and is not is a `RunExistsError`."""
        ...

    def delete_run(self, owner: str, run_id: str) -> None:
        """Remove a run and its events."""
        ...

    def add_events(self, events: Sequence[RunEvent], job: BackgroundRun | None = None) -> None:
        """Add events of one run; of a background run that is no longer the holder's it is a `LostRunError`."""
        ...

    def queue_run(self, record: RunRecord, job: BackgroundRun, *, most_waiting: int, most_of_owner: int) -> None:
        """Keep a new background run, which waits unless it has a holder.

        An id that is known fails the transaction with `RunExistsError`, too many runs with `TooManyRequestsError`.
        """
        ...

    def save_job(self, job: BackgroundRun) -> None:
        """Note how far a background run is; without a holder it is given up, for anyone to take.

        Here and below, one that was taken up by another fails the transaction with `LostRunError`.
        """
        ...

    def cancel_job(self, owner: str, run_id: str, *, fence: int | None = None) -> None:
        """Mark a background run, so that whoever works on it ends it; one that has ended stays as it is.

        With a `fence`, one that has ended or that another has taken up fails the transaction with `LostRunError`.
        """
        ...

    def end_job(self, job: BackgroundRun) -> None:
        """Remove a background run that has ended; its record says how."""
        ...
