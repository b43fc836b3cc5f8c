"""The interface between the state store and the host.

Reads are grouped by subject. Each read takes the owner of the requested data. Writes use a transaction: its methods
only queue operations, and leaving the `async with` block writes all of them or none. So a transaction awaits nothing
but the database, and a store may commit many transactions together.

A record that only a newer version can read is never changed. Reading it raises `UnreadableRecordError`. Only the lists
for operators skip it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from frontdesk.interfaces.store_delivery import (
    Approvals,
    ApprovalWrites,
    AuditLog,
    Inbox,
    InboxWrites,
    Outbox,
    OutboxWrites,
)
from frontdesk.interfaces.store_sessions import (
    Background,
    Charge,
    Identities,
    IdentityWrites,
    Runs,
    RunWrites,
    Sessions,
    SessionWrites,
    Watchers,
)
from frontdesk.models.channel_storage import Leadership, SealedValue, ValueLocation
from frontdesk.models.conversation import AliasMerge, Conversation, ConversationAlias, ConversationItem
from frontdesk.models.file import StoredFile
from frontdesk.models.live_message import LiveFence, LiveMessageRecord
from frontdesk.models.operations import LedgerKind, LedgerRow, TaskRecord, TaskStatus


class ChannelValues(Protocol):
    """Values by channel, storage and key. Expired values do not exist."""

    async def get(self, place: ValueLocation, *, now: float) -> SealedValue | None: ...

    async def set(self, place: ValueLocation, value: SealedValue) -> None:
        """Store a value, replacing the current one."""
        ...

    async def compare_and_set(
        self,
        place: ValueLocation,
        expected_version: str | None,
        value: SealedValue,
        *,
        now: float,
        fence: LiveFence | None = None,
    ) -> bool:
        """Store a value if the current one has this version, or with None if there is none. Return True on success.

        Of any number of concurrent calls with the same expected version, in all processes that share the store, one
        succeeds. With a `fence`, raises `LostEventError` if the live answer belongs to another claim or is closed.
        """
        ...

    async def delete(self, place: ValueLocation) -> None: ...


class SavedCheckpoints(Protocol):
    """Checkpoints of paused workflows in the framework's own format, referenced by the session record."""

    async def get(self, session_id: str, checkpoint_id: str) -> bytes | None: ...


class CheckpointWrites(Protocol):
    def save_checkpoint(self, session_id: str, checkpoint_id: str, data: bytes) -> None: ...

    def delete_checkpoint(self, session_id: str, checkpoint_id: str) -> None: ...


class ConversationAliases(Protocol):
    """The names of moved conversations, by channel."""

    async def moved_on(self, channels: Collection[str]) -> Collection[str]:
        """Return the subset of channels on which any conversation has moved."""
        ...

    async def find(self, channel: str, name: str) -> ConversationAlias | None: ...

    async def version(self, channel: str) -> int:
        """Return the number of changes to the names of a channel."""
        ...

    async def merge(self, channel: str, merge: AliasMerge, *, version: int) -> bool:
        """Change the names of a channel if they still have that version. Return True on success."""
        ...


class Conversations(Protocol):
    """Conversations created by callers, and their items."""

    async def get(self, owner: str, conversation_id: str) -> Conversation | None: ...

    async def items(
        self,
        owner: str,
        conversation_id: str,
        *,
        after: int = 0,
        limit: int = 100,
        descending: bool = False,
        charge: Charge | None = None,
        max_bytes: int | None = None,
    ) -> Sequence[ConversationItem]:
        """Return a page of items. `after` is the number of the last item seen, 0 for the first page.

        With `max_bytes` the page ends before the item that would exceed this size, files included. It has at least one
        item, if there is one.

        `charge` is awaited first, with an estimate of the memory of all items after `after`, as for a history.
        """
        ...

    async def item(self, owner: str, conversation_id: str, item_id: str) -> ConversationItem | None: ...


class ConversationWrites(Protocol):
    def save_conversation(self, conversation: Conversation) -> None: ...

    def delete_conversation(self, owner: str, conversation_id: str) -> None:
        """Delete a conversation and its items."""
        ...

    def add_items(self, owner: str, items: Sequence[ConversationItem]) -> None:
        """Add items to conversations of the owner. Items of any other conversation are ignored."""
        ...

    def delete_item(self, owner: str, conversation_id: str, item_id: str) -> None: ...


class Files(Protocol):
    """The bytes of images and documents. A store also keeps large data of other records here."""

    async def put(
        self, owner: str, data: bytes, *, media_type: str, name: str = "", visitor: bool = False
    ) -> StoredFile:
        """Store a file. The same content of an owner is stored once, with the first media type and name.

        Files of a `visitor`, an owner without an account, have separate limits for each visitor and for all visitors
        together. Above the latter it raises `VisitorFilesFullError`.

        Raises `FileTooLargeError` above the size limit, `FilesFullError` above the owner's quota. A file that no record
        uses is removed after `Expiry.files`.
        """
        ...

    async def get(self, owner: str, file_id: str) -> tuple[StoredFile, bytes] | None: ...

    async def get_size(self, owner: str) -> int:
        """Return the total size of an owner's files in bytes."""
        ...


class Leaderships(Protocol):
    """Leaderships by channel and name, with at most one holder each."""

    async def claim(self, channel: str, name: str, holder: str) -> Leadership | None:
        """Claim a leadership for `lease_seconds`. None while another holder has it.

        Each successful claim has a higher fence than all earlier ones, even a claim by the current holder.
        """
        ...

    async def renew(self, held: Sequence[Leadership]) -> Sequence[Leadership]:
        """Extend leaderships by another `lease_seconds`. Return those that were lost."""
        ...

    async def release(self, channel: str, name: str, holder: str) -> None:
        """Release a leadership. Does nothing if another holder has it."""
        ...


class Ledger(Protocol):
    """Read access to the rows of every owner."""

    async def rows(
        self,
        kind: LedgerKind,
        *,
        by: Mapping[str, str] | None = None,
        after: Sequence[Any] | None = None,
        limit: int = 200,
    ) -> Sequence[LedgerRow]:
        """Return rows in the order of their kind. `after` is the position of the last one seen.

        `by` is one of the combinations of `INDEXED`. For a status, rows with other statuses may be included. A store
        reads approximately `limit` rows at most, regardless of their total number.
        """
        ...


class LiveAnswers(Protocol):
    """Live answers by run, channel and location."""

    async def get(self, run_id: str, channel: str, place: str) -> LiveMessageRecord | None: ...

    async def lost(self, *, limit: int = 100) -> Sequence[LiveMessageRecord]:
        """Return lost live answers for operators. A long or unprintable name is replaced with its digest."""
        ...


class LiveAnswerWrites(Protocol):
    def save_live(self, live: LiveMessageRecord) -> None:
        """Store the state of a live answer.

        If a later claim of its event or run has written it, or it is closed, the transaction fails with
        `LostEventError`.
        """
        ...


class Nonces(Protocol):
    """Used nonces, so that a signature is accepted only once."""

    async def use(self, scope: str, nonce: str, *, now: float, expires_at: float) -> bool:
        """Use a nonce of a scope. Return False if it was used before. Durable until `expires_at` on return.

        Of any number of concurrent uses in all processes that share the store, one succeeds.
        """
        ...


class Tasks(Protocol):
    """Scheduled tasks."""

    async def get(self, task_id: str) -> TaskRecord | None: ...

    async def schedule(self, task: TaskRecord) -> None:
        """Store a task. A waiting task is kept with the earlier time. A running one is marked to run again."""
        ...

    async def due(self, names: Sequence[str], before: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        """Return tasks of these names that are due before a time and claimable by a holder, earliest first."""
        ...

    async def stranded(self, names: Sequence[str], after: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        """Return tasks of these names that wait for a retry and are due only after a time, earliest first."""
        ...

    async def claim(self, task_id: str, holder: str, *, now: float) -> TaskRecord | None:
        """Claim a due, unclaimed task for `lease_seconds`. This counts as an attempt."""
        ...

    async def renew(self, tasks: Sequence[TaskRecord]) -> Sequence[TaskRecord]:
        """Extend tasks by another `lease_seconds`. Return those that still belong to the holder."""
        ...

    async def settle(
        self, task: TaskRecord, status: TaskStatus, *, due_at: float, attempts: int, error: str | None = None
    ) -> TaskRecord | None:
        """Record the end or the retry of a task. If it was scheduled meanwhile, it waits in any case.

        Return the resulting task, or None if it no longer belongs to the holder.
        """
        ...

    async def cancel(self, task_id: str) -> bool:
        """End a task that has not ended, even if it is claimed. Return True if there was one."""
        ...


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
    """A set of writes that are committed together. Calls only record a write, leaving the block commits."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class HostStateStore(Protocol):
    """The store: one interface for each subject, and a transaction across all of them."""

    durable: bool
    """Whether what was committed survives the process."""

    @property
    def lease_seconds(self) -> float | None:
        """Return the lifetime of a session claim without renewal. None if no other process can claim it."""
        ...

    @property
    def directory(self) -> Path | None:
        """Return the directory that is exclusive to one host at a time, if any."""
        ...

    @property
    def set_aside(self) -> int:
        """Return the number of broken records that were set aside since the store was opened."""
        ...

    @property
    def unreadable(self) -> int:
        """Return the number of records, met since opening, that only a newer version can read. They are left in
        place."""
        ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def identities(self) -> Identities: ...

    @property
    def runs(self) -> Runs: ...

    @property
    def watchers(self) -> Watchers: ...

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
        """Register a callback for writes of other processes. Calls may be lost, so polling is still required."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...
