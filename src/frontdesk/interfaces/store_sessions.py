"""The store interfaces for sessions, runs, background runs and identities."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from frontdesk.models.conversation import HistoryPage
from frontdesk.models.identity import ChannelIdentity, IdentityRecord, LastSeen, PushGroup, Reach
from frontdesk.models.link import Grant, LinkRecord
from frontdesk.models.run import BackgroundRun, RunEvent, RunFilter, RunPosition, RunRecord, RunSlice
from frontdesk.models.session import Lease, SessionName, SessionRecord
from frontdesk.models.watcher import WatcherRecord

Charge = Callable[[int], Awaitable[None]]
"""Counts memory that a history takes, and waits or raises a `RequestError` while there is no room for it."""
FREE_BYTES = 256 * 1024
"""The memory below which a history does not count, as for small bodies."""


class Sessions(Protocol):
    """Sessions, their names and their messages."""

    async def find(self, name: SessionName) -> SessionRecord | None:
        """Return the session that a name refers to."""
        ...

    async def get(self, owner: str, session_id: str) -> SessionRecord | None: ...

    async def past(self, name: SessionName, *, limit: int = 20) -> Sequence[SessionRecord]:
        """Return sessions that a name referred to before `name_session` changed it, most recently used first."""
        ...

    async def was(self, name: SessionName, session_id: str) -> bool:
        """Return True if a name has referred to a session that still exists."""
        ...

    async def titles(self, owner: str, session_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the titles of an owner's sessions, by session id."""
        ...

    async def first_messages(self, owner: str, session_ids: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        """Return the messages of the first turn of an owner's sessions, by session id."""
        ...

    async def reserve(self, name: SessionName, session_id: str) -> str:
        """Return the session id of a name. Assigns the given one if it has none. Of two concurrent calls, one wins."""
        ...

    def begin(self, owner: str, session_id: str) -> Lease:
        """Claim a new session whose id is also its name for the owner."""
        ...

    async def claim(self, session_id: str, *, force: bool = False) -> Lease:
        """Claim the right to write the session. This ends every earlier claim.

        Raises `SessionBusyError` while another process holds the session. With `force`, it is taken from a stuck turn
        of this process, after the writes of that turn are committed.
        """
        ...

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        """Extend leases by another `lease_seconds`. Return those that were lost."""
        ...

    def release(self, lease: Lease) -> None:
        """Release a session soon after the call. Does nothing if the lease has ended."""
        ...

    async def history(self, owner: str, session_id: str, *, charge: Charge | None = None) -> Sequence[Any]:
        """Return the messages of a session, starting with those of the sessions that it branched from.

        `charge` is awaited once, before the messages are parsed, with an estimate of the memory that they take.
        Histories of less than `FREE_BYTES` need not be charged.
        """
        ...

    async def history_page(
        self, owner: str, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> HistoryPage:
        """Return the last messages, or those before a position from an earlier page. At most `limit` turns.

        For a session that has not branched off, nothing beyond the page is read, regardless of its length.
        """
        ...


class SessionWrites(Protocol):
    def save_session(self, record: SessionRecord, lease: Lease, *, keep: bool = False) -> None:
        """Write a session, and release it for other processes unless `keep` is set.

        If the lease has ended, the transaction fails with `StaleTurnError`.
        """
        ...

    def name_session(self, name: SessionName, session_id: str) -> None:
        """Point a name at a session. The previous session stays among its past ones."""
        ...

    def title_session(self, owner: str, session_id: str, title: str | None) -> None:
        """Set the title of an owner's session. None removes it.

        Turns do not change it, and it is deleted with its session. Does nothing for an unknown session.
        """
        ...

    def append_history(self, session_id: str, messages: Sequence[Any]) -> None: ...


class Runs(Protocol):
    """Runs and the events of background streams."""

    async def get(self, owner: str, run_id: str) -> RunRecord | None: ...

    async def events(self, owner: str, run_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[RunEvent]:
        """Return events with a number above `after`, in order."""
        ...

    async def newest_of_chain(self, owner: str, root_run_id: str) -> RunRecord | None:
        """Return the run that continues a chain and is open, or has ended last. None if the root is its only run."""
        ...

    async def next_of_chain(self, owner: str, root_run_id: str, after: RunRecord) -> RunRecord | None:
        """Return the first run of a chain that has ended after another one, or is open."""
        ...

    async def page(
        self, owner: str, where: RunFilter, *, after: RunPosition | None = None, limit: int = 50
    ) -> RunSlice:
        """Return a part of an owner's runs: the open ones first, then those that ended last.

        At most `MAX_COUNTED_RUNS` runs besides those of the page are read, however many there are. A part may therefore
        have fewer runs than `limit` and still be followed by another one.
        """
        ...


class Watchers(Protocol):
    """The watchers of run chains."""

    async def get(self, owner: str, watcher_id: str) -> WatcherRecord | None: ...

    async def of_chain(self, owner: str, chain_id: str, *, now: float) -> Sequence[WatcherRecord]:
        """Return the watchers of a chain that have not expired, oldest first."""
        ...

    async def may_exist(self) -> bool:
        """Return False if there are no watchers at all.

        Costs no query, except one in `WATCHERS_FRESH_SECONDS` where other processes write the same store. There the
        answer may be older by this time.
        """
        ...


class Background(Protocol):
    """Background runs that have not ended."""

    async def get(self, owner: str, run_id: str) -> BackgroundRun | None: ...

    async def of_owner(self, owner: str) -> Sequence[BackgroundRun]:
        """Return the runs of an owner, oldest first."""
        ...

    async def claim(self, holder: str, *, limit: int, skip: Sequence[tuple[str, str]] = ()) -> Sequence[BackgroundRun]:
        """Claim unclaimed runs, oldest first: waiting ones, and those whose process has ended.

        They belong to the holder for `lease_seconds`. If no other process can hold runs, all runs left by other holders
        are free. Runs of the owners and ids in `skip`, and runs that only a newer version can read, are not claimed.
        """
        ...

    async def renew(self, jobs: Sequence[BackgroundRun]) -> Sequence[BackgroundRun]:
        """Extend runs by another `lease_seconds`. Return the current state of those that still belong to the holder."""
        ...


WATCHERS_FRESH_SECONDS = 10.0


class RunWrites(Protocol):
    def add_watcher(self, watcher: WatcherRecord, *, most_of_owner: int, most_of_chain: int) -> None:
        """Store a watcher. Too many unexpired ones fail the transaction with `TooManyRequestsError`."""
        ...

    def remove_watcher(self, owner: str, watcher_id: str) -> None: ...

    def save_run(self, record: RunRecord, *, new: bool = False) -> None:
        """Write the state of a run. With `new`, raises `RunExistsError` if it exists."""
        ...

    def delete_run(self, owner: str, run_id: str) -> None:
        """Delete a run with its events and the watchers of its chain, if it is the first run."""
        ...

    def add_events(self, events: Sequence[RunEvent], job: BackgroundRun | None = None) -> None:
        """Add events of one run. Raises `LostRunError` for a background run that no longer belongs to the holder."""
        ...

    def queue_run(self, record: RunRecord, job: BackgroundRun, *, most_waiting: int, most_of_owner: int) -> None:
        """Store a new background run. It waits unless it has a holder.

        A known id fails the transaction with `RunExistsError`, too many runs with `TooManyRequestsError`.
        """
        ...

    def save_job(self, job: BackgroundRun) -> None:
        """Store the state of a background run. Without a holder it is released for any process to claim.

        Here and in the following methods, a run that was claimed by another holder fails the transaction with
        `LostRunError`.
        """
        ...

    def cancel_job(self, owner: str, run_id: str, *, fence: int | None = None) -> None:
        """Mark a background run for its holder to end it. A run that has ended is unchanged.

        With a `fence`, a run that has ended or was claimed by another holder fails the transaction with `LostRunError`.
        """
        ...

    def end_job(self, job: BackgroundRun) -> None:
        """Remove a background run that has ended. Its run record has the outcome."""
        ...


class Identities(Protocol):
    """Identities with their isolation keys, links and the locations where they were last seen."""

    async def find(self, identity: ChannelIdentity, *, fresh: bool = False) -> IdentityRecord | None:
        """Return the record of an identity. Unless `fresh`, it may be cached briefly if processes share the store."""
        ...

    async def reach(self, identity: ChannelIdentity) -> Reach:
        """Return how to reach an identity. May be slightly stale if several processes write. Empty without a record."""
        ...

    async def remember(self, record: IdentityRecord) -> IdentityRecord:
        """Store the first record of an identity. Return the stored one."""
        ...

    async def of_owner(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        """Return all identities with an isolation key, ordered by channel and id."""
        ...

    async def last_seen(self, isolation_key: str) -> LastSeen | None: ...

    async def links(self, isolation_key: str) -> Sequence[LinkRecord]: ...

    async def link(self, identity: ChannelIdentity, *, fresh: bool = False) -> LinkRecord | None:
        """Return the link of an identity of any owner. Unless `fresh`, it may be cached as in `find`."""
        ...

    async def linked_as(self, subject: str) -> LinkRecord | None:
        """Return the first link that was made for a subject."""
        ...

    async def holders(self, claims: Sequence[str], *, channels: Sequence[str], limit: int) -> Sequence[LinkRecord]:
        """Return links on the given channels with one of the verified claims (`claim_key`), ordered by channel and
        id."""
        ...

    async def all_links(self, *, after: ChannelIdentity | None = None, limit: int = 100) -> Sequence[LinkRecord]:
        """Return a page of all links, for the operator. `after` is the identity of the last one seen."""
        ...

    async def grant(self, grant_id: str) -> Grant | None:
        """Return a proof in progress that was not used yet."""
        ...

    async def secret(self, name: str, new: bytes) -> bytes:
        """Return the host's secret with a name. Stores the given one if there is none. Of two concurrent calls, one
        wins."""
        ...


class IdentityWrites(Protocol):
    def remember_identity(self, record: IdentityRecord, *, instead_of: IdentityRecord | None = None) -> None:
        """Store the key of an identity. An identity that already has one is unchanged.

        With `instead_of` the record replaces that one. If the stored key or version differs, the transaction fails with
        `IdentityChangedError`.
        """
        ...

    def keep_reference(self, identity: ChannelIdentity, reference: Mapping[str, Any]) -> None:
        """Store the reference to the direct chat of an identity, replacing the old one. Does nothing without a
        record."""
        ...

    def keep_group(self, identity: ChannelIdentity, group: PushGroup | None) -> None:
        """Store the group in which an identity is reached, or None. Does nothing without a record."""
        ...

    def see(self, seen: LastSeen) -> None:
        """Store where a person was last seen, unless they were seen elsewhere at a later time."""
        ...

    def add_link(self, link: LinkRecord) -> None:
        """Store the link of an identity, replacing the old one."""
        ...

    def remove_link(self, isolation_key: str, identity: ChannelIdentity) -> None: ...

    def add_grant(self, grant: Grant, *, free_at: float | None = None) -> None:
        """Store a grant. If one with its id lasts beyond `free_at`, the transaction fails with `StoreError`."""
        ...

    def use_grant(self, grant_id: str) -> None:
        """Consume a grant. A missing one fails the transaction with `StoreError`."""
        ...
