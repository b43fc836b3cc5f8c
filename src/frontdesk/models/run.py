"""Runs and background runs: one turn of a target, from admission to its end."""

from collections.abc import Mapping
from typing import Any, Literal

from frontdesk.models.base import StoredRecord
from frontdesk.models.request import AdmittedRequest, OnInterrupt
from frontdesk.models.session import CheckpointRef, ClientCall

RunStatus = Literal["queued", "running", "completed", "failed", "cancelled", "incomplete"]
FINAL: frozenset[RunStatus] = frozenset({"completed", "failed", "cancelled", "incomplete"})
INTERRUPTED = "interrupted"
"""The code of a run that ended because its process did."""


class RunFailure(StoredRecord, frozen=True, kw_only=True):
    """The reason why a run did not complete, with a displayable message."""

    code: str
    message: str


DECISIONS = "decisions"
"""The name in `RunRecord.details` under which a run says what became of its caller's votes."""


class RunRecord(StoredRecord, frozen=True, kw_only=True):
    """A run in its stored form."""

    run_id: str
    owner: str
    channel: str
    status: RunStatus
    created_at: float
    finished_at: float | None = None
    session_id: str | None = None
    session_key: str | None = None
    previous_run_id: str | None = None
    background: bool = False
    stored: bool = True
    stream: bool = False
    input: Any = None
    """The messages that came in, for a channel that lists them."""
    result: Any = None
    """The target's output: an `AgentResponse` or the outputs of a workflow."""
    failure: RunFailure | None = None
    messages: int = 0
    """The length of the session's history after this run: the point at which a branch leaves."""
    state: Mapping[str, Any] | None = None
    """The session's state after this run, for branches."""
    client_calls: tuple[ClientCall, ...] = ()
    """The calls that this run has handed out to the client."""
    checkpoint: CheckpointRef | None = None
    """The checkpoint of the session's workflow after this run, for branches."""
    stopped_at: CheckpointRef | None = None
    """The last checkpoint of a workflow that did not complete; a request that names it can resume it."""
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    """Data in the channel's own format, by which it can show the run again."""
    open_calls: Any = None
    """The tool calls of earlier runs that answers resume in this one, each as it was asked about."""
    request_hash: str | None = None
    """A hash of its request, if it came with an idempotency key."""
    continued_by: str | None = None
    """The run of the host's own that went on after somebody decided a question of this one; set when it is read."""


class RunEvent(StoredRecord, frozen=True, kw_only=True):
    """One update of a background stream, in its stored form. Numbered from 1 without gaps."""

    owner: str
    run_id: str
    number: int
    data: bytes


class ContinuationToken(StoredRecord, frozen=True):
    """The token for fetching a run. Its run id is unguessable and is looked up together with its owner."""

    run_id: str

    @property
    def token(self) -> str:
        """Return the token as an opaque string that can be stored."""
        return self.run_id

    def __str__(self) -> str:
        return self.run_id


def id_of_token(token: ContinuationToken | str) -> str:
    """Return the run id of a token or of its string form."""
    given: Any = token
    if isinstance(given, ContinuationToken):
        return given.run_id
    if isinstance(given, str):
        return given
    raise TypeError(f"a token must be a ContinuationToken or its text, got {type(given).__name__}")


class BackgroundRun(StoredRecord, frozen=True, kw_only=True):
    """A queued or running background run, with all data that a process needs to execute it."""

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
        """Return its lookup key: owner and id."""
        return self.admitted.owner, self.admitted.run_id
