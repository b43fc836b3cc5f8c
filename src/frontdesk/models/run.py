"""Runs and background runs: one turn of a target, from admission to its end."""

from collections.abc import Mapping
from typing import Any, Literal

from frontdesk.models.approval import PendingApproval
from frontdesk.models.base import FrozenStruct, StoredRecord
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
    shared_state: str | None = None
    """The state shared with the client after this run, as JSON, for branches."""
    continued_by: str | None = None
    """The run of the host's own that went on after somebody decided a question of this one; set when it is read."""
    root_run_id: str | None = None
    """The first run of its chain. None for a run that begins a chain, and for runs of earlier versions."""

    @property
    def chain_id(self) -> str:
        """Return the id of its chain, which is that of the first run."""
        return self.root_run_id or self.run_id


ChainStatus = Literal["queued", "running", "input_required", "completed", "failed", "cancelled", "incomplete"]


class RunChain(FrozenStruct, frozen=True, kw_only=True):
    """A run and the runs that continue it: answers to its questions, and requests with `continues`."""

    root: RunRecord
    newest: RunRecord
    """The run that is open or has ended last. The root if no run continues it."""
    questions: tuple[PendingApproval, ...] = ()
    """The approvals that its runs have requested, decided ones included, oldest first."""

    @property
    def calls(self) -> tuple[ClientCall, ...]:
        """Return the open calls of the newest run: workflow questions and client tools."""
        return self.newest.client_calls if self.newest.status == "completed" else ()

    @property
    def waiting(self) -> tuple[PendingApproval, ...]:
        """Return the questions without a decision."""
        return tuple(question for question in self.questions if question.status == "pending")

    @property
    def status(self) -> ChainStatus:
        """Return the status of the newest run, with the questions that it has asked."""
        newest = self.newest
        if newest.status != "completed":
            return newest.status
        if self.waiting or self.calls:
            return "input_required"
        asked = [question for question in self.questions if question.run_id == newest.run_id]
        if any(question.resumed_by is not None and question.status != "cancelled" for question in asked):
            # The decision is written, and its run is not stored yet.
            return "queued"
        is_cancelled = bool(asked) and all(question.status == "cancelled" for question in asked)
        return "cancelled" if is_cancelled else "completed"


class RunFilter(FrozenStruct, frozen=True, kw_only=True):
    """The conditions that the runs of a list fulfil."""

    channel: str | None = None
    session: str | None = None
    """The key of the session, as in `RunRecord.session_key`."""
    session_prefix: str | None = None
    """The beginning of the keys of the sessions. Keys above 200 characters may be missing."""
    status: RunStatus | None = None
    since: float | None = None
    """The time at or after which a run has ended. Open runs always fulfil it."""
    roots_only: bool = False
    """True for the first runs of chains only."""

    def matches(self, run: RunRecord) -> bool:
        """Return True if a run fulfils all conditions."""
        return (
            (self.channel is None or run.channel == self.channel)
            and (self.session is None or run.session_key == self.session)
            and (self.session_prefix is None or (run.session_key or "").startswith(self.session_prefix))
            and (self.status is None or run.status == self.status)
            and (self.since is None or run.finished_at is None or run.finished_at >= self.since)
            and not (self.roots_only and run.root_run_id is not None)
        )


NO_FILTER = RunFilter()
RunPosition = tuple[float, str]
"""The position of a run in the list of its owner: the time of its end (`OPEN` for an open run), and its stored id."""
MAX_COUNTED_RUNS = 1000
"""The number of runs of an owner that a list reads, besides those of its page. A longer list has an inexact total."""


class RunSlice(FrozenStruct, frozen=True, kw_only=True):
    """A part of the list of an owner's runs, as stores return it."""

    runs: tuple[RunRecord, ...] = ()
    after: RunPosition | None = None
    """The position after which the next part begins. None at the end of the list."""
    total: int = 0
    is_total_exact: bool = True


class RunPage(FrozenStruct, frozen=True, kw_only=True):
    """A page of a caller's runs. The open ones come first, then those that ended last."""

    runs: tuple[RunRecord, ...] = ()
    cursor: str | None = None
    """The cursor of the next page. None on the last page. A page with filters may have fewer runs than its limit."""
    total: int = 0
    """The number of runs of the whole list."""
    is_total_exact: bool = True
    """False if the caller has more than `MAX_COUNTED_RUNS` runs. `total` is then the least number."""


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
