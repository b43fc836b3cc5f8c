"""`Turn`: one turn with its session open."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_framework import AgentSession

from frontdesk.concurrency.offload import is_heavy
from frontdesk.concurrency.threads import ThreadWork
from frontdesk.errors import UnreadableRecordError
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.approval import PendingApproval
from frontdesk.models.delivery import Delivery, InboxItem, Route
from frontdesk.models.identity import IdentityRecord
from frontdesk.models.request import AdmittedRequest
from frontdesk.models.run import RunRecord, RunStatus
from frontdesk.models.session import CheckpointRef, Lease, SessionRecord
from frontdesk.sessions.job import Job
from frontdesk.sessions.memory import HistoryMemory, Release
from frontdesk.sessions.session_list import list_asked_as
from frontdesk.sessions.shared_state import SharedState
from frontdesk.sessions.snapshot import is_blank, restore

_NO_HISTORY: tuple[Any, ...] = ()
_CREATING = threading.Lock()
"""Held while a shared state is created: the tools of a run may work in several threads."""


class LiveEnding(Protocol):
    """A live message that shows the answer of a run."""

    async def end(self, deliveries: Sequence[Delivery], status: RunStatus) -> Sequence[Delivery]:
        """Stop updating the message. Return the run's final deliveries, adjusted to the messages that show it."""
        ...

    def close(self, transaction: StateTransaction) -> None:
        """Close it in the transaction that records the end of the run."""
        ...


class AnswerAttempt(Protocol):
    """One attempt to act on the answers to approvals."""

    @property
    def begun(self) -> bool:
        """Return True if the beginning of the attempt is recorded."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """Return the error that prevented recording the beginning. The attempt then does nothing."""
        ...

    async def begin(self, job: Job | None) -> None:
        """Record in one transaction that the run begins and that the answers are used up, before they are used."""
        ...

    def use_up(self, transaction: StateTransaction) -> None:
        """Add to a transaction that the answers are used up. It fails if another attempt has them."""
        ...

    async def give_back(self) -> None:
        """Release the answers if it is unknown whether a failed beginning was written."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class Outcome:
    """How the run of a turn ends: what is written with its end, and the end itself."""

    displayed_result: Any = None
    """The result as it was shown while it was written, if a hook has changed that."""
    deliveries: Sequence[Delivery] = ()
    """The deliveries of the result to other places."""
    approval_deliveries: Sequence[Delivery] = ()
    """The deliveries that ask other people about its tool calls, written together with the questions."""
    watcher_deliveries: Sequence[Delivery] = ()
    """The notifications of the run's watchers."""
    requester: IdentityRecord | None = None
    """The identity record of the requester, which must be unchanged when the questions of the turn are written."""
    writing: bool = False
    """Whether the end is being written."""
    recorded: RunRecord | None = None
    """The end, once it is written: there is only one."""
    may_be_recorded: bool = False
    """Whether an end was written of which nobody knows whether it went through."""
    settled: bool = False
    """Whether the job of the turn has been ended in the store."""
    _written: asyncio.Event | None = None

    def list_deliveries(self) -> Sequence[Delivery]:
        return (*self.deliveries, *self.approval_deliveries, *self.watcher_deliveries)

    def drop_deliveries(self) -> None:
        self.deliveries = self.approval_deliveries = self.watcher_deliveries = ()

    def is_ending(self) -> bool:
        """Return True if the end of the run is written, or being written."""
        return self.writing or self.recorded is not None

    async def end(self) -> RunRecord | None:
        """Wait until the end of the run is written, and return it. Return `None` if there is none."""
        while self.writing:
            self._written = self._written or asyncio.Event()
            await self._written.wait()
        return self.recorded

    def mark_written(self) -> None:
        """Record that writing the end of the run has finished."""
        self.writing = False
        if self._written is not None:
            self._written.set()
            self._written = None


@dataclass(slots=True, eq=False, repr=False)
class Turn:
    """One turn: the request, its session while it is open, and the turn's additions."""

    _store: HostStateStore
    admitted: AdmittedRequest
    record: SessionRecord | None
    lease: Lease | None
    outcome: Outcome = field(default_factory=Outcome)
    messages: Sequence[Any] = ()
    staged: list[Any] | None = None
    memory: HistoryMemory | None = None
    """The budget for its history."""
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
    parent_session: SessionRecord | None = None
    """The session that the run goes back to at its end, as it was when the run began, if it works on a branch."""
    new: bool = False
    """Whether its session begins with it, and is not stored or announced yet."""
    job: Job | None = None
    """The job of a background run, or of a run that its request holds by an idempotency key."""
    held: bool = False
    """Whether its own request works on the job; another worker may only record that it was interrupted."""
    answering: AnswerAttempt | None = None
    """The answers to approvals that the turn acts on, if it does."""
    event: InboxItem | None = None
    """The event that the turn answers, finished together with it."""
    live: LiveEnding | None = None
    """The writer that showed the answer while it was written, and ends together with the run."""
    shared: SharedState | None = None
    """The state shared with the client, once the run has one."""
    approval_ids: dict[str, str] | None = None
    """The ids under which the questions of this run are shown, by the target's ids; `None` if it has asked nothing."""
    _history: Sequence[Any] | None = None
    release: Release | None = None
    """Frees its part of the budget, if it has one."""
    _session: AgentSession | None = None
    _work: ThreadWork | None = None

    @property
    def unrestored(self) -> bool:
        record = self.record
        return self._session is None and record is not None and bool(record.state) and is_heavy(record.state)

    @property
    def session(self) -> AgentSession | None:
        """Return the framework's session, or None without a record. Created on demand, as most turns never use it."""
        if self._session is None and self.record is not None:
            self._session = restore(self.record)
        return self._session

    @session.setter
    def session(self, session: AgentSession) -> None:
        self._session = session

    @property
    def shared_state(self) -> SharedState:
        """Return the state shared with the client, created on demand, as most turns have none."""
        with _CREATING:
            if self.shared is None:
                stored = None if self.record is None else self.record.shared_state
                self.shared = SharedState() if stored is None else SharedState.from_stored(stored)
            return self.shared

    def is_blank(self) -> bool:
        """Return True if the session has no state besides its messages."""
        if self._session is None:
            return self.record is None or not self.record.state
        return is_blank(self._session)

    @property
    def earlier(self) -> Sequence[Any]:
        return () if self.job is None else self.job.earlier

    def is_requested(self) -> bool:
        """Return True if a request, not an event or background run, waits for the turn or may retry it."""
        return self.event is None and (self.job is None or self.held)

    def is_guarded(self) -> bool:
        if self.answering is not None and not self.answering.begun:
            return True
        return self.job is not None and self.job.guarded

    async def begin(self) -> None:
        if self.answering is not None:
            await self.answering.begin(self.job)
        elif self.job is not None:
            await self.job.begin()

    async def reached(self, checkpoint: CheckpointRef) -> None:
        if self.job is not None:
            await self.job.reached(checkpoint)

    @property
    def work(self) -> ThreadWork:
        """Return the turn's threads, created at first use, because most turns need none."""
        if self._work is None:
            self._work = ThreadWork()
        return self._work

    def is_busy(self) -> bool:
        """Return True if a thread is still working."""
        return self._work is not None and self._work.busy

    def has_history(self) -> bool:
        record = self.record
        return bool(self.rebuilt_history) or (record is not None and record.messages != record.ignored)

    async def history(self) -> Sequence[Any]:
        if self._history is None:
            try:
                self._history = await self._read_history()
            except UnreadableRecordError as error:
                self.unreadable = error
                raise
        return self._history

    async def _read_history(self) -> Sequence[Any]:
        record = self.record
        if self.rebuilt_history is not None:
            return self.rebuilt_history
        if record is None or not self.has_history():
            return _NO_HISTORY
        if record.turns == 0 and record.parent is not None:
            # A branch that is not stored yet has only the messages that it shares.
            shared = await self._store.sessions.history(record.owner, record.parent.session_id, charge=self.charge)
            return shared[record.ignored : record.parent.messages]
        messages = await self._store.sessions.history(record.owner, record.session_id, charge=self.charge)
        return messages[record.ignored :] if record.ignored else messages

    async def charge(self, size: int) -> None:
        self.release_memory()
        if self.memory is not None:
            self.release = await self.memory.take(self.admitted.owner, size)

    def release_memory(self) -> None:
        release, self.release = self.release, None
        if release is not None:
            release()

    async def question(self, approval_id: str) -> PendingApproval | None:
        return await self._store.approvals.get(self.admitted.owner, approval_id)

    async def question_asked_as(self, target_request_id: str) -> PendingApproval | None:
        asked = await list_asked_as(self._store, self.admitted.owner, self.record, target_request_id)
        return asked[-1] if asked else None


Note = Callable[[StateTransaction], None]


class RecordsBeginning(Protocol):
    """Records the start of a run, so that another process ends it as interrupted if this one dies."""

    async def write(self, also: Note) -> None:
        """Record the start of the run, in one transaction with `also`."""
        ...

    async def find_written(self) -> Note | None:
        """Return the note that reverts a written start, or `None` if none was written."""
        ...


class IdempotentRuns(Protocol):
    """Records the start of runs whose requests have idempotency keys or their own run ids."""

    async def hold(self, turn: Turn, record: RunRecord) -> Job:
        """Record the start of a run. Raise `RunExistsError` if another request has used its key or id."""
        ...

    def build_beginning(self, turn: Turn, record: RunRecord) -> RecordsBeginning:
        """Return the start record of a run, to be written once the run acts on its request's answers."""
        ...

    async def revoke(self, turn: Turn) -> None:
        """Revert the start of a run whose request was rejected. Its key is free again."""
        ...

    def let_go(self, turn: Turn) -> None:
        """Release the hold. A run whose end could not be written is left to another worker."""
        ...
