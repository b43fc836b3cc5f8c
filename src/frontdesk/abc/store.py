"""The contract between a store and the host.

Reading is by drawer, each call with the owner whose things may be seen. Writing is by transaction: the calls only
note what is to be written, and leaving the `async with` block writes all of it or nothing. So nothing but the database
is ever awaited inside a transaction, and a store is free to let many of them share one commit.

A record that only a newer version can read is never changed. Reading it is an `UnreadableRecordError`; only the lists
for operators go on without it.

What is read and what is written of one subject stands together in a file of `drawers`.
"""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from frontdesk.abc.approvals import Approvals, ApprovalWrites, AuditLog
from frontdesk.abc.drawers.channel_values import ChannelValues
from frontdesk.abc.drawers.checkpoints import CheckpointWrites, SavedCheckpoints
from frontdesk.abc.drawers.conversation_aliases import ConversationAliases
from frontdesk.abc.drawers.conversations import Conversations, ConversationWrites
from frontdesk.abc.drawers.files import Files
from frontdesk.abc.drawers.identities import Identities, IdentityWrites
from frontdesk.abc.drawers.inbox import Inbox, InboxWrites
from frontdesk.abc.drawers.leaderships import Leaderships
from frontdesk.abc.drawers.ledger import Ledger
from frontdesk.abc.drawers.live import LiveAnswers, LiveAnswerWrites
from frontdesk.abc.drawers.nonces import Nonces
from frontdesk.abc.drawers.outbox import Outbox, OutboxWrites
from frontdesk.abc.drawers.runs import Background, Runs, RunWrites
from frontdesk.abc.drawers.sessions import Sessions, SessionWrites
from frontdesk.abc.task_storage import Tasks

ChangeKind = Literal["work", "run", "cancel"]
"""The kind of a change: something to do, something of a run, or the wish that a run should end."""
OnChange = Callable[[ChangeKind, str], None]
"""Takes the kind of a change and the id of its run; an empty id stands for any run."""


class StateTransaction(
    SessionWrites,
    IdentityWrites,
    RunWrites,
    ApprovalWrites,
    InboxWrites,
    OutboxWrites,
    LiveAnswerWrites,
    ConversationWrites,
    CheckpointWrites,
    Protocol,
):
    """All that is to be written together. Each call takes note; leaving the block writes."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class HostStateStore(Protocol):
    """One drawer a subject, and a transaction over all of them."""

    durable: bool
    """Whether what was committed survives the process."""

    @property
    def lease_seconds(self) -> float | None:
        """Return how long a session stays taken without renewal; `None` when no other process can take it."""
        ...

    @property
    def directory(self) -> Path | None:
        """Return the directory that one host at a time may use, if there is one."""
        ...

    @property
    def set_aside(self) -> int:
        """Count the records that were broken and were put aside since the store was opened."""
        ...

    @property
    def unreadable(self) -> int:
        """Count the records met since then that only a newer version can read; they stay where they are."""
        ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def identities(self) -> Identities: ...

    @property
    def runs(self) -> Runs: ...

    @property
    def background(self) -> Background: ...

    @property
    def approvals(self) -> Approvals: ...

    @property
    def audit(self) -> AuditLog: ...

    @property
    def inbox(self) -> Inbox: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def live(self) -> LiveAnswers: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def checkpoints(self) -> SavedCheckpoints: ...

    @property
    def nonces(self) -> Nonces: ...

    @property
    def leaderships(self) -> Leaderships: ...

    @property
    def channel_values(self) -> ChannelValues: ...

    @property
    def conversation_aliases(self) -> ConversationAliases: ...

    @property
    def files(self) -> Files: ...

    @property
    def ledger(self) -> Ledger: ...

    def transaction(self) -> StateTransaction: ...

    def listen(self, on_change: OnChange) -> None:
        """Call back on what other processes write; a call may be lost, so that it replaces no reading."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...
