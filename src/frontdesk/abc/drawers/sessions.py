"""Sessions, their names and their messages."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from frontdesk.data.session import Lease, SessionName, SessionRecord
from frontdesk.data.transcript import HistoryPage


class Sessions(Protocol):
    """Sessions, their names and their messages."""

    async def find(self, name: SessionName) -> SessionRecord | None:
        """Return the session that a name stands for."""
        ...

    async def get(self, owner: str, session_id: str) -> SessionRecord | None: ...

    async def past(self, name: SessionName, *, limit: int = 20) -> Sequence[SessionRecord]:
        """List sessions that a name stood for before `name_session` pointed it at others, the last used first."""
        ...

    async def was(self, name: SessionName, session_id: str) -> bool:
        """Tell whether a name stood for a session that is still there."""
        ...

    async def titles(self, owner: str, session_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the titles that sessions of an owner were given, by session id."""
        ...

    async def first_messages(self, owner: str, session_ids: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        """Return the messages with which sessions of an owner begin, those of their first turn, by session id."""
        ...

    async def reserve(self, name: SessionName, session_id: str) -> str:
        """Return the session id that a name stands for; the given one if it was free. Of two at once, one wins."""
        ...

    def begin(self, owner: str, session_id: str) -> Lease:
        """Claim a session that is new, and whose id is also the name by which its owner finds it."""
        ...

    async def claim(self, session_id: str, *, force: bool = False) -> Lease:
        """Take the right to write the session; it ends every earlier one.

        While another process holds the session that is a `SessionBusyError`. By force it is taken from a turn of this
        process that does not end, after what that turn has given to the store is written.
        """
        ...

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        """Prolong leases for another `lease_seconds`; return those that were lost."""
        ...

    def release(self, lease: Lease) -> None:
        """Release a session, soon; a lease that has ended already changes nothing."""
        ...

    async def history(self, owner: str, session_id: str) -> Sequence[Any]:
        """List the messages of a session, those of the sessions it branched from first."""
        ...

    async def history_page(
        self, owner: str, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> HistoryPage:
        """Return the last messages, or those before a position that an earlier page named: `limit` turns at most.

        A session that has not branched off is read no further than that, however long it is.
        """
        ...


class SessionWrites(Protocol):
    """Write sessions."""

    def save_session(self, record: SessionRecord, lease: Lease, *, keep: bool = False) -> None:
        """Write a session, and release it for other processes unless the lease is to be kept.

        A lease that has ended fails the transaction with `StaleTurnError`.
        """
        ...

    def name_session(self, name: SessionName, session_id: str) -> None:
        """Point a name at a session; the one that it pointed at stays among its past ones."""
        ...

    def title_session(self, owner: str, session_id: str, title: str | None) -> None:
        """Give a session of an owner a title, in place of the one that it has; `None` removes it.

        Turns leave it alone, and it goes with its session. Of a session that is not there nothing is written.
        """
        ...

    def append_history(self, session_id: str, messages: Sequence[Any]) -> None: ...
