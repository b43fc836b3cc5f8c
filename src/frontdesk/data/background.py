"""Runs in the background that have not ended."""

from frontdesk.data.noun import Noun
from frontdesk.data.request import AdmittedRequest, OnInterrupt
from frontdesk.data.session import CheckpointRef


class BackgroundRun(Noun, frozen=True, kw_only=True):
    """A queued or running background run, with all that any process needs to run it."""

    admitted: AdmittedRequest
    on_interrupt: OnInterrupt = "fail"
    session_id: str | None = None
    """The new session of a run that names none: chosen before it begins, and the same if it begins again."""
    holder: str = ""
    """The process that works on it; empty while it waits."""
    fence: int = 0
    """The number of claims; only the last claim may write."""
    begun: bool = False
    """Whether something was done for it that can't be done twice."""
    cancelled: bool = False
    """Whether its cancellation was requested."""
    checkpoint: CheckpointRef | None = None
    """The last checkpoint of its workflow."""
    events: int = 0
    """The number of events that it had at that checkpoint."""

    @property
    def key(self) -> tuple[str, str]:
        """Return the key by which it is found: its owner and its id."""
        return self.admitted.owner, self.admitted.run_id
