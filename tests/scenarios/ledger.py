"""A store that tells what was written to it, whichever store it is."""

from collections import defaultdict
from types import TracebackType
from typing import Any, Self

from agent_framework import Message

from frontdesk.interfaces.context import ReportsWriteFailures
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.approval import PendingApproval
from frontdesk.models.run import RunRecord
from frontdesk.models.session import SessionRecord


class Ledger(ReportsWriteFailures):
    """Hands every call on to a store, and notes what its transactions have committed."""

    def __init__(self, store: HostStateStore) -> None:
        self._store = store
        self.writes: list[tuple[str, tuple[Any, ...]]] = []
        self.kept_runs: dict[tuple[str, str], RunRecord] = {}
        self.kept_sessions: dict[str, SessionRecord] = {}
        self.kept_messages: dict[str, list[Message]] = defaultdict(list)
        self.kept_approvals: dict[str, PendingApproval] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def check_writable(self) -> None:
        if isinstance(self._store, ReportsWriteFailures):
            self._store.check_writable()

    def transaction(self) -> Any:
        return _Noted(self, self._store.transaction())

    def note_committed(self, writes: list[tuple[str, tuple[Any, ...]]]) -> None:
        """Takes note of a transaction that went through."""
        self.writes += writes
        for name, arguments in writes:
            if name in ("save_run", "queue_run"):
                self.kept_runs[arguments[0].owner, arguments[0].run_id] = arguments[0]
            elif name == "delete_run":
                # One whose write went through without a reply is not among them.
                self.kept_runs.pop(arguments, None)
            elif name == "save_session":
                self.kept_sessions[arguments[0].session_id] = arguments[0]
            elif name == "append_history":
                self.kept_messages[arguments[0]] += arguments[1]
            elif name == "add_approval":
                self.kept_approvals[arguments[0].approval_id] = arguments[0]


class _Noted:
    def __init__(self, ledger: Ledger, transaction: StateTransaction) -> None:
        self._ledger = ledger
        self._transaction = transaction
        self._writes: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._transaction, name)

        def note(*arguments: Any, **keywords: Any) -> None:
            call(*arguments, **keywords)
            self._writes.append((name, arguments))

        return note

    async def __aenter__(self) -> Self:
        await self._transaction.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transaction.__aexit__(kind, error, trace)
        if kind is None:
            self._ledger.note_committed(self._writes)
