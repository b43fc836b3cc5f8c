"""One turn, while its session is open."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent_framework import AgentSession

from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.data.approval import ApprovalAnswer, PendingApproval
from frontdesk.data.delivery import Delivery, InboxItem, Route
from frontdesk.data.identity import IdentityRecord
from frontdesk.data.request import AdmittedRequest
from frontdesk.data.run import RunRecord, RunStatus
from frontdesk.data.session import CheckpointRef, Lease, SessionRecord
from frontdesk.errors import UnreadableRecordError
from frontdesk.kit.aio.large import is_heavy
from frontdesk.kit.aio.threads import ThreadWork
from frontdesk.kit.lineage import asked_as
from frontdesk.sessions.answering import Answering
from frontdesk.sessions.job import Job
from frontdesk.sessions.snapshot import restore

_NO_HISTORY: tuple[Any, ...] = ()


class LiveEnding(Protocol):
    """An answer that is shown while it is written."""

    async def end(self, deliveries: Sequence[Delivery], status: RunStatus) -> Sequence[Delivery]:
        """Stop showing it; return the deliveries of the run's end, with what becomes of the messages that show it."""
        ...

    def close(self, transaction: StateTransaction) -> None:
        """Close it in the transaction that records the end of the run."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class Turn:
    """One turn: the request, its session while it is open, and what the turn adds to it."""

    _store: HostStateStore
    admitted: AdmittedRequest
    record: SessionRecord | None
    lease: Lease | None
    session: AgentSession | None = None
    messages: Sequence[Any] = ()
    staged: list[Any] | None = None
    rebuilt_history: Sequence[Any] | None = None
    """The history made from the items of a conversation, where the session has none that counts."""
    unreadable: UnreadableRecordError | None = None
    """The error with which its history could not be read: then the turn has not begun."""
    plan: Any = None
    checkpoint: CheckpointRef | None = None
    fork: Any = None
    route: Route | None = None
    """The route of the answer, once it was computed."""
    answer_hosting: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    closed: bool = False
    unrestored: bool = False
    """Whether the session is still to be restored, in a thread."""
    writing: bool = False
    """Whether the end of its run is being written."""
    recorded: RunRecord | None = None
    """The end of its run, once it is written: there is only one."""
    may_be_recorded: bool = False
    """Whether an end was written of which nobody knows whether it went through."""
    home: SessionRecord | None = None
    """The session that the run goes back to at its end, as it was when the run began, if it works on a branch."""
    new: bool = False
    """Whether its session begins with it, and is not stored or announced yet."""
    job: Job | None = None
    """The job of a background run, or of a run that its request holds by an idempotency key."""
    held: bool = False
    """Whether its own request works on the job; another worker may only record that it was interrupted."""
    settled: bool = False
    """Whether its job has been ended in the store."""
    answering: Answering | None = None
    """The answers to approvals that the turn acts on, if it does."""
    event: InboxItem | None = None
    """The event that the turn answers, finished together with it."""
    deliveries: Sequence[Delivery] = ()
    """The deliveries of the result to other places, written together with it."""
    asked: Sequence[Delivery] = ()
    """The deliveries that ask other people about its tool calls, written together with the questions."""
    live: LiveEnding | None = None
    """The writer that showed the answer while it was written, and ends together with the run."""
    shown: Any = None
    """The result as it was shown while it was written, if a hook has changed that."""
    requester: IdentityRecord | None = None
    """The identity record of the requester, which must be unchanged when the questions of the turn are written."""
    approval_ids: dict[str, str] | None = None
    """The ids under which the questions of this run are shown, by the target's ids; `None` if it has asked nothing."""
    _work: ThreadWork | None = None
    _written: asyncio.Event | None = None

    def __post_init__(self) -> None:
        record = self.record
        if record is None:
            return
        if record.state and is_heavy(record.state):
            self.unrestored = True
        else:
            self.session = restore(record)

    @property
    def earlier(self) -> Sequence[Any]:
        """Return the outputs of an interrupted workflow before it is resumed."""
        return () if self.job is None else self.job.earlier

    def is_guarded(self) -> bool:
        """Tell whether `begin` must be called before anything is done that can't be done twice."""
        if self.answering is not None and not self.answering.begun:
            return True
        return self.job is not None and self.job.guarded

    async def begin(self) -> None:
        """Record that the turn is about to do something that can't be done twice."""
        if self.answering is not None:
            await self.answering.begin(self.job)
        elif self.job is not None:
            await self.job.begin()

    def answer(self, answers: Sequence[ApprovalAnswer], attempt: str) -> None:
        """Let the turn act on answers, as a given attempt."""
        self.answering = Answering(self._store, self.admitted.owner, answers, attempt)

    async def reached(self, checkpoint: CheckpointRef) -> None:
        """Record that the run has saved a checkpoint."""
        if self.job is not None:
            await self.job.reached(checkpoint)

    @property
    def work(self) -> ThreadWork:
        """Return the threads that work for the turn; they are made at the first use, because most turns need none."""
        if self._work is None:
            self._work = ThreadWork()
        return self._work

    def is_busy(self) -> bool:
        """Tell whether a thread is still at work."""
        return self._work is not None and self._work.busy

    def is_ending(self) -> bool:
        """Tell whether the end of the run is written, or being written."""
        return self.writing or self.recorded is not None

    async def end(self) -> RunRecord | None:
        """Wait while the end of the run is being written, and return it; `None` if there is none."""
        while self.writing:
            self._written = self._written or asyncio.Event()
            await self._written.wait()
        return self.recorded

    def wrote(self) -> None:
        """Note that the end of the run is not being written any more."""
        self.writing = False
        if self._written is not None:
            self._written.set()
            self._written = None

    def has_history(self) -> bool:
        """Tell whether there may be a history to read."""
        record = self.record
        return bool(self.rebuilt_history) or (record is not None and record.messages != record.ignored)

    async def history(self) -> Sequence[Any]:
        """Return the session's messages before this turn, oldest first; callers must not change them."""
        try:
            return await self._read_history()
        except UnreadableRecordError as error:
            self.unreadable = error
            raise

    async def _read_history(self) -> Sequence[Any]:
        record = self.record
        if self.rebuilt_history is not None:
            return self.rebuilt_history
        if record is None or not self.has_history():
            return _NO_HISTORY
        if record.turns == 0 and record.parent is not None:
            # A branch that is not stored yet has only the messages that it shares.
            shared = await self._store.sessions.history(record.owner, record.parent.session_id)
            return shared[record.ignored : record.parent.messages]
        messages = await self._store.sessions.history(record.owner, record.session_id)
        return messages[record.ignored :] if record.ignored else messages

    async def question(self, approval_id: str) -> PendingApproval | None:
        """Return an approval that the turn's owner was asked for, decided or not."""
        return await self._store.approvals.get(self.admitted.owner, approval_id)

    async def question_asked_as(self, target_request_id: str) -> PendingApproval | None:
        """Return the last approval that the session has asked the turn's owner for under an id of the target's."""
        asked = await asked_as(self._store, self.admitted.owner, self.record, target_request_id)
        return asked[-1] if asked else None
