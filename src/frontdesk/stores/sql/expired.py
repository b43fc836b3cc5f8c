"""Statements that drop expired records, a few at a time and dependent rows first. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from frontdesk.data.expiry import Expiry
from frontdesk.stores.sql.writes import Do

AT_ONCE = 200
"""The number of rows of a table that a transaction drops at most."""

_OLD_RUNS = "SELECT run_id, owner FROM runs WHERE kind = ? AND ended_at < ? ORDER BY ended_at, run_id, owner LIMIT ?"
_OLD_SESSIONS = """
FROM sessions WHERE session_id IN ({marks}) AND updated_at < ?
AND NOT EXISTS (SELECT 1 FROM sessions branches WHERE branches.parent_id = sessions.session_id)
AND (updated_at < ? OR NOT EXISTS (
    SELECT 1 FROM approvals
    WHERE approvals.owner = sessions.owner AND approvals.session_id = sessions.session_id AND status = 'pending'
))
AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.session_id = sessions.session_id AND until > ?)
"""
"""Old sessions without branches, without approvals that are still awaited, and without a lease."""

_ABOUT_APPROVALS = (
    ("approval_votes", "owner, approval_id, voter"),
    ("approval_places", "owner, approval_id, channel, place, handle"),
    ("approval_approvers", "approver, owner, approval_id"),
)
"""The tables about approvals, and their keys."""
_OWNED = (
    ("sessions", "owner"),
    ("conversations", "owner"),
    ("approvals", "owner"),
    ("background", "owner"),
    ("deliveries", "owner"),
    ("files", "owner"),
    ("links", "isolation_key"),
    ("last_seen", "isolation_key"),
)
"""The tables and columns whose index finds what an isolation key owns."""


class Batch(NamedTuple):
    """Some records to be dropped."""

    parts: Sequence[Do]
    """Statements that each drop a few dependent rows, and are repeated until there are none left."""
    whole: Sequence[Do]
    """One transaction that drops the records; its first answer has a row for each."""


def batches(expiry: Expiry, now: float) -> Iterator[Batch]:
    """Yield a batch for each kind of record that has an index by age."""
    for kind, kept in (("background", expiry.continuations), ("request", expiry.runs)):
        if kept is not None:
            yield _runs(kind, now - kept)
    # A grant has its own time of expiry.
    if expiry.grants is not None:
        yield _plain("grants", "grant_id", "expires_at", now)
        # No grant lasts so long: the clock was set back, and the grant would become valid again.
        yield _plain("grants", "grant_id", "expires_at", now + 2 * expiry.grants, later=True)
    if expiry.last_seen is not None:
        yield _plain("last_seen", "isolation_key", "at", now - expiry.last_seen)
    if expiry.approvals is not None:
        yield _approvals(now - expiry.approvals)
        for table, key in _ABOUT_APPROVALS:
            yield _left_over(table, key, now - expiry.approvals)
    if expiry.audit is not None:
        yield _plain("audit", "number", "at", now - expiry.audit)
    if expiry.inbox is not None:
        yield _plain("inbox", "number", "done_at", now - expiry.inbox)
    if expiry.deliveries is not None:
        yield _plain("deliveries", "delivery_id", "ended_at", now - expiry.deliveries)
    if expiry.tasks is not None:
        yield _plain("tasks", "task_id", "ended_at", now - expiry.tasks)
    if expiry.set_aside is not None:
        yield _plain("set_aside", "number", "at", now - expiry.set_aside)
    # A nonce has its own time of expiry too.
    yield _plain("nonces", "scope, nonce", "expires_at", now)
    yield _plain("channel_values", "channel, storage, name", "expires_at", now)
    yield _plain("live", "run_id, channel, place", "expires_at", now)


def sessions(ids: Sequence[str], expiry: Expiry, now: float) -> Batch:
    """Drop those of some sessions that have expired; each statement checks, because a turn may have come since."""
    kept = now - (expiry.sessions or 0.0)
    # Without a limit, nothing is old enough.
    limit = -1.0 if expiry.pending_approvals is None else min(kept, now - expiry.pending_approvals)
    old, values = _OLD_SESSIONS.format(marks=_marks(ids)), (*ids, kept, limit, now)
    asked = f"SELECT owner, session_id {old}"
    parts = [
        _some("history", "number", "session_id", f"SELECT session_id {old}", values),
        *_about(f"SELECT owner, approval_id FROM approvals WHERE (owner, session_id) IN ({asked})", values),
        _some("approvals", "number", "owner, session_id", asked, values),
        _some("checkpoints", "session_id, checkpoint_id", "session_id", f"SELECT session_id {old}", values),
    ]
    whole = [Do(f"DELETE {old} RETURNING session_id", values, answers=True)]
    # Rows that were added since belong to a session that stays.
    rest = f"session_id IN ({_marks(ids)}) AND session_id NOT IN (SELECT session_id FROM sessions s WHERE"
    rest = f"{rest} s.session_id IN ({_marks(ids)}))"
    tables = ("history", "names", "leases", "checkpoints", "past_sessions", "session_titles")
    return Batch(parts, [*whole, *(Do(f"DELETE FROM {table} WHERE {rest}", (*ids, *ids)) for table in tables)])


def conversations(ids: Sequence[str], expiry: Expiry, now: float) -> Batch:
    """Drop those of some conversations that have expired."""
    old = f"FROM conversations WHERE conversation_id IN ({_marks(ids)}) AND updated_at < ?"
    values = (*ids, now - (expiry.conversations or 0.0))
    items = _some("items", "number", "conversation_id", f"SELECT conversation_id {old}", values)
    rest = f"SELECT conversation_id FROM conversations c WHERE c.conversation_id IN ({_marks(ids)})"
    return Batch(
        [items],
        [
            Do(f"DELETE {old} RETURNING 1", values, answers=True),
            Do(
                f"DELETE FROM items WHERE conversation_id IN ({_marks(ids)}) AND conversation_id NOT IN ({rest})",
                (*ids, *ids),
            ),
        ],
    )


def identities(keys: Sequence[tuple[str, str]], expiry: Expiry, now: float) -> Batch:
    """Drop those of some identities that have expired; the statement checks, because one may have been used since."""
    # Without a limit, nothing is old enough.
    before = -1.0 if expiry.identities_kept is None else now - expiry.identities_kept
    rows = ", ".join("(?, ?)" for _ in keys)
    values = (*(value for pair in keys for value in pair), before)
    old = f"DELETE FROM identities WHERE (channel, native_id) IN (VALUES {rows}) AND seen_at < ? AND version = 0"
    unused = " ".join(
        f"AND NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.{column} = identities.isolation_key)"
        for table, column in _OWNED
    )
    linked = "SELECT 1 FROM links WHERE links.channel = identities.channel AND links.native_id = identities.native_id"
    return Batch((), [Do(f"{old} {unused} AND NOT EXISTS ({linked}) RETURNING 1", values, answers=True)])


USES = {
    "session": "sessions WHERE session_id = file_uses.place",
    "run": "runs WHERE run_id = file_uses.place AND runs.owner = file_uses.owner",
    "event": "inbox WHERE event_id = file_uses.place AND channel = file_uses.owner",
    "conversation": "conversations WHERE conversation_id = file_uses.place",
}
"""The records that use files, by their kinds."""


def files(ids: Sequence[str], expiry: Expiry, now: float) -> Batch:
    """Drop those of some files that no record uses any more; a use of a kind that is not known here is one."""
    gone = " OR ".join(f"(kind = '{kind}' AND NOT EXISTS (SELECT 1 FROM {record}))" for kind, record in USES.items())
    users = f"SELECT file_id, kind, place, owner FROM file_uses WHERE file_id IN ({_marks(ids)}) AND ({gone}) LIMIT ?"
    columns = "file_id, kind, place, owner"
    unused = Do(f"DELETE FROM file_uses WHERE ({columns}) IN ({users}) RETURNING 1", (*ids, AT_ONCE), answers=True)
    # Without a limit, nothing is old enough.
    before = -1.0 if expiry.files is None else now - expiry.files
    old = f"file_id IN ({_marks(ids)}) AND touched_at < ?"
    old = f"{old} AND NOT EXISTS (SELECT 1 FROM file_uses WHERE file_uses.file_id = files.file_id)"
    values = (*ids, before)
    # The change locks the rows: whoever uses one of them again comes before, or finds that it is not there.
    marked = Do(f"UPDATE files SET complete = 0 WHERE {old} RETURNING file_id", values, answers=True)
    dropped = f"SELECT file_id FROM files WHERE {old} AND complete = 0"
    chunks = Do(f"DELETE FROM file_chunks WHERE file_id IN ({dropped})", values)
    return Batch([unused], [marked, chunks, Do(f"DELETE FROM files WHERE {old} AND complete = 0", values)])


def _runs(kind: str, limit: float) -> Batch:
    values = (kind, limit, AT_ONCE)
    events = _some("events", "run_id, owner, number", "run_id, owner", _OLD_RUNS, values)
    gone = Do(f"DELETE FROM runs WHERE (run_id, owner) IN ({_OLD_RUNS}) RETURNING 1", values, answers=True)
    return Batch([events], [gone])


def _approvals(limit: float) -> Batch:
    old = "FROM approvals WHERE decided_at < ? ORDER BY decided_at, number LIMIT ?"
    values = (limit, AT_ONCE)
    gone = Do(f"DELETE FROM approvals WHERE number IN (SELECT number {old}) RETURNING 1", values, answers=True)
    return Batch(_about(f"SELECT owner, approval_id {old}", values), [gone])


def _about(approvals: str, values: tuple[Any, ...]) -> list[Do]:
    """Drop a few votes and places of approvals that are to be dropped."""
    return [_some(table, key, "owner, approval_id", approvals, values) for table, key in _ABOUT_APPROVALS]


def _left_over(table: str, key: str, limit: float) -> Batch:
    """Drop rows about approvals that a host of an earlier version has dropped alone."""
    gone = f"SELECT 1 FROM approvals a WHERE a.owner = {table}.owner AND a.approval_id = {table}.approval_id"
    old = f"SELECT {key} FROM {table} WHERE at < ? AND NOT EXISTS ({gone}) LIMIT ?"
    return Batch((), [Do(f"DELETE FROM {table} WHERE ({key}) IN ({old}) RETURNING 1", (limit, AT_ONCE), answers=True)])


def _plain(table: str, key: str, column: str, limit: float, *, later: bool = False) -> Batch:
    old = f"SELECT {key} FROM {table} WHERE {column} {'>' if later else '<'} ? LIMIT ?"
    return Batch((), [Do(f"DELETE FROM {table} WHERE ({key}) IN ({old}) RETURNING 1", (limit, AT_ONCE), answers=True)])


def _some(part: str, key: str, of: str, whole: str, values: tuple[Any, ...]) -> Do:
    """Drop a few rows that depend on records to be dropped."""
    rows = f"SELECT {key} FROM {part} WHERE ({of}) IN ({whole}) LIMIT ?"
    return Do(f"DELETE FROM {part} WHERE ({key}) IN ({rows}) RETURNING 1", (*values, AT_ONCE), answers=True)


def _marks(ids: Sequence[str]) -> str:
    return ", ".join("?" for _ in ids)
