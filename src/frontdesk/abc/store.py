"""What the host remembers.

Reading is by drawer, each call with the owner whose things may be seen. Writing is by transaction: the calls only
note what is to be written, and leaving the `async with` block writes all of it or nothing. So nothing but the database
is ever awaited inside a transaction, and a store is free to let many of them share one commit.

A record that only a newer version can read is never changed. Reading it is an `UnreadableRecordError`; only the lists
for operators go on without it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from frontdesk.abc.approvals import ApprovalStorage
from frontdesk.abc.task_storage import Tasks
from frontdesk.data.approval import ApprovalStatus, PendingApproval
from frontdesk.data.background import BackgroundRun
from frontdesk.data.conversation import Conversation, ConversationItem
from frontdesk.data.delivery import Delivery, DeliveryStatus, Destination, InboxItem, WaitingEvent
from frontdesk.data.identity import ChannelIdentity, IdentityRecord, LastSeen, PushGroup, Reach
from frontdesk.data.link import Grant, LinkRecord
from frontdesk.data.run import RunEvent, RunRecord
from frontdesk.data.session import Lease, SessionName, SessionRecord

ChangeKind = Literal["work", "run", "cancel"]
"""What was written: something to do, something of a run, or the wish that a run should end."""
OnChange = Callable[[ChangeKind, str], None]
"""Is told what was written, and of which run; an empty id stands for any."""


class Sessions(Protocol):
    """Sessions, their names and their messages."""

    async def find(self, name: SessionName) -> SessionRecord | None:
        """The session that a name stands for."""
        ...

    async def get(self, owner: str, session_id: str) -> SessionRecord | None: ...

    async def past(self, name: SessionName, *, limit: int = 20) -> Sequence[SessionRecord]:
        """List sessions that a name stood for before `name_session` pointed it at others, the last used first."""
        ...

    async def was(self, name: SessionName, session_id: str) -> bool:
        """Tell whether a name stood for a session that is still there."""
        ...

    async def reserve(self, name: SessionName, session_id: str) -> str:
        """The session id that a name stands for; the given one if the name was free. Of two at once, one wins."""
        ...

    def begin(self, owner: str, session_id: str) -> Lease:
        """Claims a session that is new, and whose id is also the name by which its owner finds it."""
        ...

    async def claim(self, session_id: str, *, force: bool = False) -> Lease:
        """The right to write the session; it ends every earlier one.

        While another process holds the session that is a `SessionBusyError`. By force it is taken from a turn of this
        process that does not end, after what that turn has given to the store is written.
        """
        ...

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        """Prolongs leases for another `lease_seconds`; returns those that were lost."""
        ...

    def release(self, lease: Lease) -> None:
        """Gives a session free, soon; a lease that has ended already changes nothing."""
        ...

    async def history(self, owner: str, session_id: str) -> Sequence[Any]:
        """The messages of a session, those of the sessions it branched from first."""
        ...


class Identities(Protocol):
    """Who was issued which isolation key, and where they were last seen."""

    async def find(self, identity: ChannelIdentity, *, fresh: bool = False) -> IdentityRecord | None:
        """The record of an identity, a moment old where many processes write; `fresh` is as it is now."""
        ...

    async def reach(self, identity: ChannelIdentity) -> Reach:
        """Return how an identity is reached, a moment old where many processes write; empty without a record."""
        ...

    async def remember(self, record: IdentityRecord) -> IdentityRecord:
        """Keeps the first record for an identity, and returns the one that was kept."""
        ...

    async def of_owner(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        """All identities that share an isolation key, by channel and id."""
        ...

    async def last_seen(self, isolation_key: str) -> LastSeen | None: ...

    async def links(self, isolation_key: str) -> Sequence[LinkRecord]: ...

    async def link(self, identity: ChannelIdentity) -> LinkRecord | None:
        """The link of an identity, whoever's it is."""
        ...

    async def linked_as(self, subject: str) -> LinkRecord | None:
        """The first link that was made for a subject."""
        ...

    async def all_links(self, *, after: ChannelIdentity | None = None, limit: int = 100) -> Sequence[LinkRecord]:
        """Every link, for the operator, a page at a time; `after` is the identity of the last one seen."""
        ...

    async def grant(self, grant_id: str) -> Grant | None:
        """A proof that was begun and not used yet."""
        ...

    async def secret(self, name: str, new: bytes) -> bytes:
        """The host's secret of a name; the given one if there was none. Of two at once, one wins."""
        ...


class Runs(Protocol):
    """Runs and the events of background streams."""

    async def get(self, owner: str, run_id: str) -> RunRecord | None: ...

    async def events(self, owner: str, run_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[RunEvent]:
        """Events with a number above `after`, in order."""
        ...


class Background(Protocol):
    """Runs in the background that have not ended."""

    async def get(self, owner: str, run_id: str) -> BackgroundRun | None: ...

    async def of_owner(self, owner: str) -> Sequence[BackgroundRun]:
        """List the runs of an owner, oldest first."""
        ...

    async def claim(self, holder: str, *, limit: int, skip: Sequence[tuple[str, str]] = ()) -> Sequence[BackgroundRun]:
        """Takes up runs on which nobody works, oldest first: those that wait, and those whose process is gone.

        They are the holder's for `lease_seconds`. Where no other process can have them, whatever another holder has
        left is free. Left to others are those of the owners and ids in `skip`, and those that only a newer version can
        read.
        """
        ...

    async def renew(self, jobs: Sequence[BackgroundRun]) -> Sequence[BackgroundRun]:
        """Keeps runs for another `lease_seconds`; returns those that are still the holder's, as they are now."""
        ...


class Inbox(Protocol):
    """Events that were accepted and are not finished."""

    async def next(self, channel: str, conversation_id: str) -> InboxItem | None:
        """The oldest unfinished event of a conversation."""
        ...

    async def claim(self, channel: str, conversation_id: str, holder: str) -> InboxItem | None:
        """Takes up the oldest unfinished event of a conversation for `lease_seconds`, unless another works on it.

        One that only a newer version can read stays free, and is an `UnreadableRecordError`: those behind it wait.
        """
        ...

    async def renew(self, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
        """Keeps events for another `lease_seconds`; returns those that are still the holder's."""
        ...

    async def waiting(self, holder: str, *, after: int = 0, limit: int = 500) -> Sequence[WaitingEvent]:
        """Unfinished events that a holder could take up, as they came; `after` is the number of the last one seen."""
        ...

    async def failed(self, *, before: int | None = None, limit: int = 100) -> Sequence[tuple[InboxItem, str]]:
        """Events that could not be answered, and why, newest first; `before` is the number of the last one seen."""
        ...


class Outbox(Protocol):
    """Deliveries and how far they are."""

    async def get(self, delivery_id: str) -> Delivery | None: ...

    async def open(self, destination: Destination, *, limit: int = 20) -> Sequence[Delivery]:
        """The deliveries to a destination that have not ended, in their order."""
        ...

    async def waiting(
        self, channel: str, *, now: float, longest: float | None = None, after: str | None = None, limit: int = 500
    ) -> Sequence[str]:
        """The places of a channel whose first open delivery is due and nobody's, in an order that stays.

        One that is due more than `longest` seconds from now is among them: its time may come from a clock that was set
        back. `after` is the last place seen.
        """
        ...

    async def find(
        self,
        *,
        status: DeliveryStatus | None = None,
        channel: str | None = None,
        owner: str | None = None,
        run_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> Sequence[Delivery]:
        """Deliveries of which all that is given is true, newest first; `before` is the id of the last one seen."""
        ...

    async def counts(self) -> Mapping[DeliveryStatus, int]:
        """How many deliveries there are of each kind."""
        ...


class Conversations(Protocol):
    """Conversations that callers made, and their items."""

    async def get(self, owner: str, conversation_id: str) -> Conversation | None: ...

    async def items(
        self, owner: str, conversation_id: str, *, after: int = 0, limit: int = 100, descending: bool = False
    ) -> Sequence[ConversationItem]:
        """A page of items; `after` is the number of the last one seen, 0 for the first page."""
        ...

    async def item(self, owner: str, conversation_id: str, item_id: str) -> ConversationItem | None: ...


class SavedCheckpoints(Protocol):
    """Where workflows have paused, in the framework's own form; named by the session's own record."""

    async def get(self, session_id: str, checkpoint_id: str) -> bytes | None: ...


class Nonces(Protocol):
    """Nonces that were used, so that what they sign counts once."""

    async def use(self, scope: str, nonce: str, *, now: float, expires_at: float) -> bool:
        """Take a nonce of a scope; `False` if it is taken. When this returns, it stays so until `expires_at`.

        Of any number of uses at once, over all processes that share the store, one succeeds.
        """
        ...


class StateTransaction(Protocol):
    """What is to be written together. Each call takes note; leaving the block writes."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def save_session(self, record: SessionRecord, lease: Lease, *, keep: bool = False) -> None:
        """Writes a session, and gives it free for other processes unless the lease is to be kept.

        A lease that has ended fails the transaction with `StaleTurnError`.
        """
        ...

    def name_session(self, name: SessionName, session_id: str) -> None:
        """Points a name at a session; the one that it pointed at stays among its past ones."""
        ...

    def append_history(self, session_id: str, messages: Sequence[Any]) -> None: ...

    def remember_identity(self, record: IdentityRecord, *, instead_of: IdentityRecord | None = None) -> None:
        """Gives an identity its key; one that has it already stays as it is.

        With `instead_of` the record takes the place of that one; if another key or version is there, the transaction
        fails with `IdentityChangedError`.
        """
        ...

    def keep_reference(self, identity: ChannelIdentity, reference: Mapping[str, Any]) -> None:
        """Keep how the direct chat of an identity is reached, instead of what was kept; nothing without a record."""
        ...

    def keep_group(self, identity: ChannelIdentity, group: PushGroup | None) -> None:
        """Keep the group in which an identity is reached, or that it is none; nothing without a record."""
        ...

    def see(self, seen: LastSeen) -> None:
        """Keep where a person was last seen, unless they were seen elsewhere at a later time."""
        ...

    def add_link(self, link: LinkRecord) -> None:
        """Keeps the link of an identity, in place of the one that it had."""
        ...

    def remove_link(self, isolation_key: str, identity: ChannelIdentity) -> None: ...

    def add_grant(self, grant: Grant, *, free_at: float | None = None) -> None:
        """Keeps a grant; if one with its id lasts beyond `free_at`, the transaction is a `StoreError`."""
        ...

    def use_grant(self, grant_id: str) -> None:
        """Uses a grant up; one that is not there fails the transaction with `StoreError`."""
        ...

    def save_run(self, record: RunRecord, *, new: bool = False) -> None:
        """Write a run as it is now; one that must be new and is not is a `RunExistsError`."""
        ...

    def delete_run(self, owner: str, run_id: str) -> None:
        """Removes a run and its events."""
        ...

    def add_events(self, events: Sequence[RunEvent], job: BackgroundRun | None = None) -> None:
        """Adds events of one run; of a background run that is no longer the holder's it is a `LostRunError`."""
        ...

    def queue_run(self, record: RunRecord, job: BackgroundRun, *, most_waiting: int, most_of_owner: int) -> None:
        """Keeps a new background run, which waits unless it has a holder.

        An id that is known fails the transaction with `RunExistsError`, too many runs with `TooManyRequestsError`.
        """
        ...

    def save_job(self, job: BackgroundRun) -> None:
        """Notes how far a background run is; without a holder it is given up, for anyone to take.

        Here and below, one that was taken up by another fails the transaction with `LostRunError`.
        """
        ...

    def cancel_job(self, owner: str, run_id: str) -> None:
        """Marks a background run, so that whoever works on it ends it; one that has ended stays as it is."""
        ...

    def end_job(self, job: BackgroundRun) -> None:
        """Removes a background run that has ended; its record says how."""
        ...

    def add_approval(self, approval: PendingApproval) -> None:
        """Keep a new question; an id that its owner has, decided or not, fails with `ApprovalExistsError`."""
        ...

    def decide_approval(
        self,
        owner: str,
        approval_id: str,
        status: ApprovalStatus,
        *,
        at: float,
        reason: str | None = None,
        attempt: str | None = None,
    ) -> None:
        """Decide a pending question; a decided or foreign one fails the transaction with `StoreError`.

        With an `attempt`, the same decision may be made again until `begin_approval`: the last attempt has the answer.
        Without one, the decision is final at once.
        """
        ...

    def begin_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        """Make the decision of an attempt final, once or again; `LostAnswerError` if the attempt has it no more."""
        ...

    def release_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        """Let the same decision be made again, as if the attempt had not begun; nothing if it has it no more."""
        ...

    def cancel_approvals(self, owner: str, *, at: float, reason: str | None = None) -> None:
        """Decides every question that waits for an owner as cancelled, and takes its answer from whoever has it."""
        ...

    def accept(self, item: InboxItem) -> None:
        """Keeps an event; one that is known already changes nothing."""
        ...

    def finish(self, item: InboxItem, *, error: str | None = None) -> None:
        """Marks an event as done, and why it was not answered; it stays known, so that a retry is not run again.

        Here and below, one that is done, or that another took up, fails the transaction with `LostEventError`.
        """
        ...

    def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        """Leaves an event to whoever takes it up next, as if it had not been tried unless it was."""
        ...

    def add_delivery(self, delivery: Delivery, *, once: bool = False) -> None:
        """Keeps a delivery; one that is known stays as it is, or fails the transaction with `DeliveryExistsError`."""
        ...

    def change_delivery(self, delivery: Delivery, *, hold: float = 0.0) -> None:
        """Notes how far a delivery is; while it is being sent, it is the sender's for `hold` seconds.

        One that has changed since it was read fails the transaction with `LostDeliveryError`.
        """
        ...

    def end_rest(self, delivery: Delivery, *, error: str, at: float) -> None:
        """Gives up the parts that follow a dead one in the same answer."""
        ...

    def save_conversation(self, conversation: Conversation) -> None: ...

    def delete_conversation(self, owner: str, conversation_id: str) -> None:
        """Removes a conversation and its items."""
        ...

    def add_items(self, owner: str, items: Sequence[ConversationItem]) -> None:
        """Adds items to conversations of the owner's; those for any other are left out."""
        ...

    def delete_item(self, owner: str, conversation_id: str, item_id: str) -> None: ...

    def save_checkpoint(self, session_id: str, checkpoint_id: str, data: bytes) -> None: ...

    def delete_checkpoint(self, session_id: str, checkpoint_id: str) -> None: ...


class HostStateStore(Protocol):
    """One drawer a subject, and a transaction over all of them."""

    durable: bool
    """Whether what was committed survives the process."""

    @property
    def lease_seconds(self) -> float | None:
        """How long a session stays taken without being renewed; `None` when no other process can take it."""
        ...

    @property
    def directory(self) -> Path | None:
        """The directory that one host at a time may use, if there is one."""
        ...

    @property
    def set_aside(self) -> int:
        """How many records were broken and were put aside since the store was opened."""
        ...

    @property
    def unreadable(self) -> int:
        """How many records were met since then that only a newer version can read; they stay where they are."""
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
    def approvals(self) -> ApprovalStorage: ...

    @property
    def inbox(self) -> Inbox: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def checkpoints(self) -> SavedCheckpoints: ...

    @property
    def nonces(self) -> Nonces: ...

    def transaction(self) -> StateTransaction: ...

    def listen(self, on_change: OnChange) -> None:
        """Has somebody told of what other processes write; a word may be lost, so that it replaces no look."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...
