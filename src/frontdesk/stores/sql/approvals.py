"""Approvals and the audit log in SQL: queries and write statements."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from frontdesk.errors import ApprovalExistsError, LostAnswerError, StoreError
from frontdesk.interfaces.storage.pages import count_fitting
from frontdesk.models.approval import ApprovalPlace, ApprovalStatus, ApprovalVote, AuditLine, PendingApproval
from frontdesk.serialization.codec import encode
from frontdesk.stores.sql.background import LeaseSql
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.tables import as_bytes, key, text
from frontdesk.stores.sql.writes import Do, Engine

_STATUSES: tuple[str, ...] = get_args(ApprovalStatus)
_COLUMNS = "number, owner, approval_id, status, decided_at, reason, attempt, begun, voted, escalated, resumed_by, data"
_QUESTION = f"SELECT {_COLUMNS} FROM approvals WHERE owner = ?"
# Each half has an index of its own.
_WAITING = f"{_QUESTION} AND status = 'pending' UNION ALL {_QUESTION} AND begun = 0 ORDER BY number"
# Rows of earlier versions have the target's id as their own.
_ASKED_AS = (
    f"{_QUESTION} AND target_request_id = ? "
    f"UNION ALL {_QUESTION} AND approval_id = ? AND target_request_id IS NULL ORDER BY number"
)
# The questions of the first run, and those of the runs that continue it.
_OF_CHAIN = (
    f"{_QUESTION} AND run_id = ? AND root_run_id IS NULL UNION ALL {_QUESTION} AND root_run_id = ? ORDER BY number"
)
_SHARED = f"SELECT {_COLUMNS} FROM approvals WHERE approval_id = ? AND shared = 1"
# Without `likely`, SQLite reads every pending row by the index on the status, and sorts them.
_TO_ESCALATE = (
    f"SELECT {_COLUMNS} FROM approvals WHERE {{likely}}(status = 'pending') AND escalated = 0 AND escalate_at <= ? "
    "ORDER BY escalate_at LIMIT ?"
)
_EXPIRED = (
    f"SELECT {_COLUMNS} FROM approvals WHERE {{likely}}(status = 'pending') AND expires_at <= ? "
    "ORDER BY expires_at LIMIT ?"
)

# Those of the approvers and of the owner first: the questions of everybody else are not looked at.
_WAITING_FOR = (
    "SELECT {columns} FROM ({sources}) waiting CROSS JOIN approvals asked "
    "WHERE asked.owner = waiting.owner AND asked.approval_id = waiting.approval_id AND asked.status = 'pending' "
    "AND asked.number > {seen} ORDER BY asked.number LIMIT ?"
)
_ASKED = ", ".join(f"asked.{column}" for column in _COLUMNS.split(", "))
_LENGTHS = "asked.number, LENGTH(asked.data)"
_SEEN = "COALESCE((SELECT MAX(seen.number) FROM approvals seen WHERE seen.approval_id = ?), 0)"
_OF_APPROVERS = "SELECT owner, approval_id FROM approval_approvers WHERE approver IN ({marks})"
# By the plain number SQLite would read the decided ones too, in their order, and not the index of the pending ones.
_OF_OWNER = (
    "SELECT owner, approval_id FROM (SELECT owner, approval_id FROM approvals "
    f"WHERE owner = ? AND status = 'pending' AND number > {_SEEN} ORDER BY number + 0 LIMIT ?) own"
)


class SqlApprovals:
    def __init__(self, engine: Engine, records: Records, lease_sql: LeaseSql) -> None:
        self._engine = engine
        self._records = records
        self._expired_sql = _EXPIRED.format(likely=lease_sql.likely)
        self._to_escalate_sql = _TO_ESCALATE.format(likely=lease_sql.likely)

    async def get(self, owner: str, approval_id: str) -> PendingApproval | None:
        approvals = await self._read(f"{_QUESTION} AND approval_id = ?", (key(owner), key(approval_id)))
        return approvals[0] if approvals else None

    async def find(self, approval_id: str) -> PendingApproval | None:
        approvals = await self._read(_SHARED, (key(approval_id),))
        return approvals[0] if len(approvals) == 1 else None

    async def of_session(self, owner: str, session_id: str) -> Sequence[PendingApproval]:
        return await self._read(f"{_QUESTION} AND session_id = ? ORDER BY number", (key(owner), key(session_id)))

    async def of_chain(self, owner: str, root_run_id: str) -> Sequence[PendingApproval]:
        place = (key(owner), key(root_run_id))
        return await self._read(_OF_CHAIN, (*place, *place))

    async def pending(self, owner: str) -> Sequence[PendingApproval]:
        return await self._read(_WAITING, (key(owner), key(owner)))

    async def asked_as(self, owner: str, target_request_id: str) -> Sequence[PendingApproval]:
        place = (key(owner), key(target_request_id))
        return await self._read(_ASKED_AS, (*place, *place))

    async def expired(self, now: float, *, limit: int = 100) -> Sequence[PendingApproval]:
        return await self._read(self._expired_sql, (now, limit))

    async def to_escalate(self, now: float, *, limit: int = 100) -> Sequence[PendingApproval]:
        return await self._read(self._to_escalate_sql, (now, limit))

    async def waiting_for(
        self,
        approvers: Sequence[str],
        *,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
        max_bytes: int | None = None,
    ) -> Sequence[PendingApproval]:
        sources: list[str] = []
        values: list[Any] = []
        if approvers:
            sources.append(_OF_APPROVERS.format(marks=", ".join("?" * len(approvers))))
            values += map(key, approvers)
        if owner is not None:
            sources.append(_OF_OWNER)
            values += [key(owner), key(after or ""), limit]
        if not sources:
            return ()
        # A question may name several of the approvers.
        together = (
            " UNION ".join(sources)
            if len(sources) > 1
            else f"SELECT DISTINCT owner, approval_id FROM ({sources[0]}) one"
        )
        values.append(key(after or ""))
        if max_bytes is not None:
            lengths = _WAITING_FOR.format(columns=_LENGTHS, sources=together, seen=_SEEN)
            rows = await self._engine.read(lengths, (*values, limit))
            limit = count_fitting([length for _, length in rows], max_bytes)
        return await self._read(_WAITING_FOR.format(columns=_ASKED, sources=together, seen=_SEEN), (*values, limit))

    async def votes(self, owner: str, approval_id: str) -> Sequence[ApprovalVote]:
        return await self._about("approval_votes", ("voter",), owner, approval_id)

    async def places(self, owner: str, approval_id: str) -> Sequence[ApprovalPlace]:
        return await self._about("approval_places", ("channel", "place", "handle"), owner, approval_id)

    async def _about(self, table: str, columns: Sequence[str], owner: str, approval_id: str) -> list[Any]:
        rows = await self._engine.read(
            f"SELECT {', '.join(columns)}, data FROM {table} WHERE owner = ? AND approval_id = ? "
            f"ORDER BY at, {', '.join(columns)}",
            (key(owner), key(approval_id)),
        )
        names = ("owner", "approval_id", *columns)
        about = (key(owner), key(approval_id))
        return await self._records.read_all(table, [((table, names, (*about, *row[:-1])), row[-1]) for row in rows])

    async def _read(self, sql: str, values: Sequence[Any]) -> list[PendingApproval]:
        approvals: list[PendingApproval] = []
        for _, owner, approval_id, *decision, data in await self._engine.read(sql, values):
            status, decided_at, reason, attempt, begun, voted, escalated, resumed_by = decision
            place = ("approvals", ("owner", "approval_id"), (owner, approval_id))
            approval: PendingApproval | None = await self._records.read("approvals", place, data)
            if approval is not None:
                self._records.require_known(place, status, _STATUSES)
                decided = {"status": status, "decided_at": decided_at, "reason": text(reason)}
                shared = {"voted": voted, "escalated": bool(escalated), "resumed_by": resumed_by}
                approvals.append(approval.replace(**decided, **shared, attempt=attempt, begun=bool(begun)))
        return approvals


class SqlAudit:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def lines(self, *, subject: str | None = None, after: int = 0, limit: int = 200) -> Sequence[AuditLine]:
        about, values = ("", ()) if subject is None else ("subject = ? AND ", (key(subject),))
        rows = await self._engine.read(
            f"SELECT number, at, owner, subject, action, actor, reason FROM audit WHERE {about}number > ? "
            "ORDER BY number LIMIT ?",
            (*values, after, limit),
        )
        return [
            AuditLine(number=number, at=at, owner=owner, subject=name, action=action, by=actor, reason=text(reason))
            for number, at, owner, name, action, actor, reason in rows
        ]


def insert_approval(approval: PendingApproval) -> Do:
    """Insert an approval with a new id."""
    target_id = None if approval.target_request_id is None else key(approval.target_request_id)
    names = (key(approval.owner), key(approval.approval_id), key(approval.session_id), approval.status)
    asked, terms = (key(approval.run_id), target_id), approval.terms
    root = None if approval.root_run_id is None else key(approval.root_run_id)
    times = (approval.expires_at, root, None if terms is None else terms.escalate_at)
    return Do(
        "INSERT INTO approvals (owner, approval_id, session_id, status, run_id, target_request_id, expires_at, "
        "root_run_id, escalate_at, shared, data) "
        "SELECT ?, ?, ?, ?, ?, ?, CAST(? AS DOUBLE PRECISION), ?, CAST(? AS DOUBLE PRECISION), CAST(? AS SMALLINT), ? "
        "WHERE NOT EXISTS ("
        "SELECT 1 FROM approvals WHERE owner = ? AND run_id = ? AND target_request_id = ?) ON CONFLICT DO NOTHING",
        (*names, *asked, *times, int(terms is not None), encode(approval), names[0], *asked),
        ApprovalExistsError(),
    )


def insert_approvers(approval: PendingApproval) -> Iterator[Do]:
    """Insert the approvers, by whom an approval is looked up."""
    names = (key(approval.owner), key(approval.approval_id))
    for approver in () if approval.terms is None else approval.terms.keys:
        yield Do(
            "INSERT INTO approval_approvers (approver, owner, approval_id, at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (key(approver), *names, approval.created_at),
        )


def delete_approvers(owner: str, approval_id: str) -> Do:
    """Delete the approvers of a decided approval."""
    place = (key(owner), key(approval_id))
    return Do("DELETE FROM approval_approvers WHERE owner = ? AND approval_id = ?", place)


def record_decision(
    owner: str,
    approval_id: str,
    status: ApprovalStatus,
    at: float,
    reason: str | None,
    attempt: str | None,
    first: bool,
    resumed_by: str | None = None,
) -> Do:
    """Record a decision, unless another one exists. With `first`, unless any exists."""
    decision = (status, at, as_bytes(reason), attempt, int(attempt is None), resumed_by)
    values = (*decision, key(owner), key(approval_id))
    free = "status = 'pending'" if first else "(status = 'pending' OR (status = ? AND begun = 0))"
    sql = f"{_DECIDED} AND {free}"
    return Do(sql, values if first else (*values, status), StoreError("the approval is not pending"))


def count_vote(owner: str, approval_id: str, seen: int) -> Do:
    """Count a vote, if the approval has exactly the `seen` number of votes."""
    return Do(
        "UPDATE approvals SET voted = voted + 1 "
        "WHERE owner = ? AND approval_id = ? AND status = 'pending' AND voted = ?",
        (key(owner), key(approval_id), seen),
        StoreError("the votes have changed"),
    )


def mark_escalated(owner: str, approval_id: str) -> Do:
    return Do(
        "UPDATE approvals SET escalated = 1 "
        "WHERE owner = ? AND approval_id = ? AND status = 'pending' AND escalated = 0",
        (key(owner), key(approval_id)),
        StoreError("the approval is not pending, or was escalated before"),
    )


def mark_begun(owner: str, approval_id: str, attempt: str) -> Do:
    place = (key(owner), key(approval_id), attempt)
    return Do(f"UPDATE approvals SET begun = 1 {_OF_ATTEMPT}", place, LostAnswerError())


def release_attempt(owner: str, approval_id: str, attempt: str) -> Do:
    # Without its name, a write of the attempt that arrives later changes nothing.
    place = (key(owner), key(approval_id), attempt)
    return Do(f"UPDATE approvals SET begun = 0, attempt = NULL {_OF_ATTEMPT}", place)


def cancel_pending(owner: str, at: float, reason: str | None) -> Iterator[Do]:
    """Cancel an owner's pending approvals, with one audit line each."""
    for waits in ("status = 'pending'", "begun = 0"):
        yield Do(f"{_AUDIT_CANCELLED} AND {waits} ORDER BY number", (at, as_bytes(reason), key(owner)))
        yield Do(f"{_CANCELLED} AND {waits}", (at, as_bytes(reason), key(owner)))
    yield Do("DELETE FROM approval_approvers WHERE owner = ?", (key(owner),))


def insert_vote(vote: ApprovalVote) -> Do:
    return Do(
        "INSERT INTO approval_votes (owner, approval_id, voter, at, data) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (owner, approval_id, voter) DO UPDATE SET at = excluded.at, data = excluded.data",
        (key(vote.owner), key(vote.approval_id), key(vote.voter), vote.at, encode(vote)),
    )


def insert_place(place: ApprovalPlace) -> Do:
    names = (key(place.owner), key(place.approval_id), key(place.channel), key(place.place), key(place.handle))
    return Do(
        "INSERT INTO approval_places (owner, approval_id, channel, place, handle, at, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (*names, place.at, encode(place)),
    )


def insert_audit_line(line: AuditLine) -> Do:
    names = (key(line.owner), key(line.subject), line.action, key(line.by))
    return Do(f"{_AUDIT} VALUES (?, ?, ?, ?, ?, ?)", (line.at, *names, as_bytes(line.reason)))


_DECIDED = (
    "UPDATE approvals SET status = ?, decided_at = ?, reason = ?, attempt = ?, begun = ?, "
    "resumed_by = COALESCE(?, resumed_by) WHERE owner = ? AND approval_id = ?"
)
_OF_ATTEMPT = "WHERE owner = ? AND approval_id = ? AND attempt = ?"
_CANCELLED = (
    "UPDATE approvals SET status = 'cancelled', decided_at = ?, reason = ?, attempt = NULL, begun = 1 WHERE owner = ?"
)
_AUDIT = "INSERT INTO audit (at, owner, subject, action, actor, reason)"
# Postgres has to be told the types of parameters that are selected.
_AUDIT_CANCELLED = (
    f"{_AUDIT} SELECT CAST(? AS DOUBLE PRECISION), owner, approval_id, 'cancelled', '', COALESCE(?, reason) "
    "FROM approvals WHERE owner = ?"
)
