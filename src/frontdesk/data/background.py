"""Runs in the background that have not ended."""

from frontdesk.data.noun import Noun
from frontdesk.data.request import AdmittedRequest, OnInterrupt
from frontdesk.data.session import CheckpointRef


class BackgroundRun(Noun, frozen=True, kw_only=True):
    """A run that waits for its turn or is at work, with all that it takes to run it, in this process or in another."""

    admitted: AdmittedRequest
    on_interrupt: OnInterrupt = "fail"
    session_id: str | None = None
    """The session that is made for it, if it names none: known before it begins, and the same if it begins again."""
    holder: str = ""
    """The process that works on it; nobody, while it waits."""
    fence: int = 0
    """How often it was taken up; whoever took it up last has the say."""
    begun: bool = False
    """Whether something was done for it that can't be done twice."""
    cancelled: bool = False
    """Whether somebody wants it to end."""
    checkpoint: CheckpointRef | None = None
    """How far its workflow has come."""
    events: int = 0
    """How many events it had shown at that point."""

    @property
    def key(self) -> tuple[str, str]:
        """By which it is found: its owner and its id."""
        return self.admitted.owner, self.admitted.run_id
