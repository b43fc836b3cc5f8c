"""One turn, while its session is open."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_framework import AgentSession

from frontdesk.abc.store import HostStateStore
from frontdesk.data.approval import ApprovalAnswer, PendingApproval
from frontdesk.data.delivery import Delivery, InboxItem, Route
from frontdesk.data.identity import IdentityRecord
from frontdesk.data.request import AdmittedRequest
from frontdesk.data.run import RunRecord
from frontdesk.data.session import CheckpointRef, Lease, SessionRecord
from frontdesk.errors import UnreadableRecordError
from frontdesk.kit.aio.large import is_heavy
from frontdesk.kit.aio.threads import ThreadWork
from frontdesk.sessions.answering import Answering
from frontdesk.sessions.job import Job
from frontdesk.sessions.snapshot import restore

_NO_HISTORY: tuple[Any, ...] = ()


class Turn:
    """One turn: the request, its session while it is open, and what the turn adds to it."""

    messages: list[Any]
    staged: list[Any] | None = None
    rebuilt_history: Sequence[Any] | None = None
    """The history, where it is told by the items of a conversation and not kept by the session yet."""
    unreadable: UnreadableRecordError | None = None
    """Why its history can't be read, if it can't: then the turn has not begun."""
    plan: Any = None
    checkpoint: CheckpointRef | None = None
    fork: Any = None
    route: Route | None = None
    """Where the answer goes, once it had to be known."""
    answer_hosting: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    closed = False
    unrestored = False
    """Whether the session is to be restored yet, in a thread."""
    writing = False
    """Whether the end of its run is being written."""
    recorded: RunRecord | None = None
    """The end of its run, once it is written: there is one, and no later one takes its place."""
    home: SessionRecord | None = None
    """The session that the run goes back to at its end, as it was when the run began, if it works on a branch."""
    new = False
    """Whether its session begins with it, and nobody knows of it yet."""
    job: Job | None = None
    """The background run that the turn is, if it is one; or what a run with an idempotency key is held by."""
    held = False
    """Whether its own request works on the job, and nobody is to take it up but to say that it was interrupted."""
    settled = False
    """Whether nothing of its job is left to be ended."""
    answering: Answering | None = None
    """The answers to approvals that the turn acts on, if it does."""
    event: InboxItem | None = None
    """The event that the turn answers, finished together with it."""
    deliveries: Sequence[Delivery] = ()
    """What is sent elsewhere for the result, written together with it."""
    requester: IdentityRecord | None = None
    """The record of whoever asks, which must be unchanged when the questions of the turn are written."""
    _work: ThreadWork | None = None
    _written: asyncio.Event | None = None

    def __init__(
        self, store: HostStateStore, admitted: AdmittedRequest, record: SessionRecord | None, lease: Lease | None
    ) -> None:
        self._store = store
        self.admitted = admitted
        self.record = record
        self.lease = lease
        self.session: AgentSession | None = None
        if record is not None:
            if record.state and is_heavy(record.state):
                self.unrestored = True
            else:
                self.session = restore(record)
        self.messages = []

    @property
    def earlier(self) -> Sequence[Any]:
        """What an interrupted workflow has put out before it goes on."""
        return () if self.job is None else self.job.earlier

    @property
    def guarded(self) -> bool:
        """Whether `begin` has to be called before something is done that can't be done twice."""
        if self.answering is not None and not self.answering.begun:
            return True
        return self.job is not None and self.job.guarded

    async def begin(self) -> None:
        """Something is done that can't be done twice."""
        if self.answering is not None:
            await self.answering.begin(self.job)
        elif self.job is not None:
            await self.job.begin()

    def answer(self, answers: Sequence[ApprovalAnswer], attempt: str) -> None:
        """Let the turn act on answers, as the attempt that has them."""
        self.answering = Answering(self._store, self.admitted.owner, answers, attempt)

    async def reached(self, checkpoint: CheckpointRef) -> None:
        """The run has saved a checkpoint."""
        if self.job is not None:
            await self.job.reached(checkpoint)

    @property
    def work(self) -> ThreadWork:
        """The threads that work for the turn; most turns need none."""
        if self._work is None:
            self._work = ThreadWork()
        return self._work

    @property
    def busy(self) -> bool:
        """Whether a thread is still at work."""
        return self._work is not None and self._work.busy

    @property
    def is_ending(self) -> bool:
        """Tell whether the end of the run is written, or being written."""
        return self.writing or self.recorded is not None

    async def end(self) -> RunRecord | None:
        """Return the end of the run, once it is written; nothing if nobody writes one."""
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

    @property
    def has_history(self) -> bool:
        """Whether there may be any; a session that has none need not be asked."""
        record = self.record
        return bool(self.rebuilt_history) or (record is not None and record.messages != record.ignored)

    async def history(self) -> Sequence[Any]:
        """The session's messages before this turn, oldest first; nobody may change them."""
        try:
            return await self._read_history()
        except UnreadableRecordError as error:
            self.unreadable = error
            raise

    async def _read_history(self) -> Sequence[Any]:
        record = self.record
        if self.rebuilt_history is not None:
            return self.rebuilt_history
        if record is None or not self.has_history:
            return _NO_HISTORY
        if record.turns == 0 and record.parent is not None:
            # A branch that is not stored yet has only what it shares.
            shared = await self._store.sessions.history(record.owner, record.parent.session_id)
            return shared[record.ignored : record.parent.messages]
        found = await self._store.sessions.history(record.owner, record.session_id)
        return found[record.ignored :] if record.ignored else found

    async def question(self, approval_id: str) -> PendingApproval | None:
        """A question that was asked of the turn's owner, decided or not."""
        return await self._store.approvals.get(self.admitted.owner, approval_id)
