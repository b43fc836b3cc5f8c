"""Background runs in SQL: queries and write statements."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

from frontdesk.errors import LostRunError, RunExistsError, TooManyRequestsError, UnreadableRecordError
from frontdesk.models.run import BackgroundRun, RunEvent, RunFailure, RunRecord
from frontdesk.serialization.codec import decode, encode
from frontdesk.stores.sql.records import LeftAlone, Records
from frontdesk.stores.sql.shared_leases import NOW
from frontdesk.stores.sql.tables import build_list_columns, key
from frontdesk.stores.sql.writes import Do, Engine, Rows

CHANNEL = "frontdesk"
"""The channel of NOTIFY on which the processes of a Postgres database announce their writes."""
_MAX_EVENTS = 100
_UNREADABLE = RunFailure(code="internal_error", message="What was kept of the run can't be read.")
_TOO_MANY = "Too many runs wait in the background."
_TOO_MANY_OF_OWNER = "Too many of your runs are in the background."
_RETRY_SECONDS = 5.0
_MAX_CHECKS = 10
"""The number of queries that one claim makes because of runs that can't be read."""
_UNCLAIMED = "UPDATE background SET holder = '', until = 0 WHERE run_id = ? AND owner = ? AND fence = ?"
_JOB = "run_id, owner, number, holder, fence, begun, cancelled, events, checkpoint, data"


class LeaseSql(NamedTuple):
    """The SQL of leases, which differs between one process and several."""

    until: str
    free: str
    """The condition of runs that a holder can claim; `?` stands for the holder."""
    lock: str
    share: str
    """The lock on a row that a write depends on until the transaction ends, so that the run can't end meanwhile."""
    notifies: bool
    likely: str = ""
    """The SQL function that marks a condition as true of most rows; empty where the database has statistics."""

    def notices(self, kind: str, run_id: str = "") -> list[Do]:
        """Notify the other processes when the transaction commits."""
        # An id that is not its own key is left out: then every process looks.
        shown = run_id if key(run_id) == run_id else ""
        return [Do("SELECT pg_notify(?, ?)", (CHANNEL, f"{kind} {shown}"))] if self.notifies else []


LOCAL = LeaseSql("0", "holder <> ?", "", "", False, "likely")
"""Leases of one process: runs of an earlier holder are free."""


def build_shared_lease_sql(seconds: float) -> LeaseSql:
    """Return the SQL of leases for several processes. A run is free when its lease has expired."""
    free = f"(holder = '' OR until < {NOW}) AND ? <> ''"
    return LeaseSql(f"{NOW} + {seconds!r}", free, "FOR UPDATE SKIP LOCKED", "FOR SHARE OF kept", True)


class SqlBackground:
    def __init__(self, engine: Engine, records: Records, lease_sql: LeaseSql) -> None:
        self._engine = engine
        self._records = records
        self._lease_sql = lease_sql
        self._left = LeftAlone("number")

    async def get(self, owner: str, run_id: str) -> BackgroundRun | None:
        rows = await self._engine.read(
            f"SELECT {_JOB} FROM background WHERE run_id = ? AND owner = ?", (key(run_id), key(owner))
        )
        jobs = await self._read(rows)
        return jobs[0] if jobs else None

    async def of_owner(self, owner: str) -> Sequence[BackgroundRun]:
        rows = await self._engine.read(f"SELECT {_JOB} FROM background WHERE owner = ? ORDER BY number", (key(owner),))
        return await self._read(rows)

    async def claim(self, holder: str, *, limit: int, skip: Sequence[tuple[str, str]] = ()) -> Sequence[BackgroundRun]:
        claimed: list[BackgroundRun] = []
        for _ in range(_MAX_CHECKS):
            rows = await self._take(holder, limit - len(claimed), skip)
            before = len(claimed)
            for row in rows:
                try:
                    claimed += await self._read([row])
                except UnreadableRecordError:
                    await self._leave(row)
            if len(claimed) - before == len(rows):
                break
        return claimed

    async def _take(self, holder: str, limit: int, skip: Sequence[tuple[str, str]]) -> Rows:
        lease_sql, (others, left) = self._lease_sql, self._left.condition()
        for owner, run_id in skip:
            others, left = f"{others} AND NOT (run_id = ? AND owner = ?)", (*left, key(run_id), key(owner))
        free = f"SELECT number FROM background WHERE {lease_sql.free} {others} ORDER BY number LIMIT ? {lease_sql.lock}"
        rows = await self._engine.write(
            [
                Do(
                    f"UPDATE background SET holder = ?, fence = fence + 1, until = {lease_sql.until} "
                    f"WHERE number IN ({free}) RETURNING {_JOB}",
                    (holder, holder, *left, limit),
                    answers=True,
                )
            ]
        )
        return sorted(rows[0], key=lambda row: row[2])

    async def _leave(self, row: Sequence[Any]) -> None:
        """Release a run to a process that can read it, and do not claim it again."""
        run_id, owner, number, _, fence, *_ = row
        self._left.add(number)
        await self._engine.write([Do(_UNCLAIMED, (run_id, owner, fence)), *self._lease_sql.notices("work")])

    async def renew(self, jobs: Sequence[BackgroundRun]) -> Sequence[BackgroundRun]:
        if not jobs:
            return ()
        renewed = [
            Do(
                f"UPDATE background SET until = {self._lease_sql.until} WHERE run_id = ? AND owner = ? AND fence = ? "
                f"RETURNING {_JOB}",
                _place(job),
                answers=True,
            )
            for job in jobs
        ]
        return await self._read([row for rows in await self._engine.write(renewed) for row in rows])

    async def _read(self, rows: Rows) -> list[BackgroundRun]:
        jobs: list[BackgroundRun] = []
        for run_id, owner, _, holder, fence, begun, cancelled, events, checkpoint, data in rows:
            place = ("background", ("run_id", "owner"), (run_id, owner))
            job: BackgroundRun | None = await self._records.read("background", place, data)
            if job is None:
                await self._fail(run_id, owner)
                continue
            ref = None if checkpoint is None else decode(bytes(checkpoint))
            state = {"holder": holder, "fence": fence, "events": events, "checkpoint": ref}
            jobs.append(job.replace(**state, begun=bool(begun), cancelled=bool(cancelled)))
        return jobs

    async def _fail(self, run_id: str, owner: str) -> None:
        place = (run_id, owner)
        rows = await self._engine.read("SELECT data FROM runs WHERE run_id = ? AND owner = ?", place)
        where = ("runs", ("run_id", "owner"), place)
        record: RunRecord | None = await self._records.read("runs", where, rows[0][0]) if rows else None
        if record is not None:
            now = self._records.now()
            data = encode(record.replace(status="failed", failure=_UNREADABLE, finished_at=now))
            change = "UPDATE runs SET data = ?, ended_at = ?, outcome = 'failed' WHERE run_id = ? AND owner = ?"
            await self._engine.write([Do(change, (data, now, *place))])


def insert_run(
    record: RunRecord, data: bytes, job: BackgroundRun, most: tuple[int, int], lease_sql: LeaseSql
) -> Iterator[Do]:
    """Insert a new run and its job. `most` has the limits of waiting runs in total and per owner."""
    place = (key(record.run_id), key(record.owner))
    yield Do(
        "INSERT INTO runs (run_id, owner, kind, ended_at, channel, session_key, root_run_id, data) "
        "VALUES (?, ?, 'background', NULL, ?, ?, ?, ?) ON CONFLICT (run_id, owner) DO NOTHING",
        (*place, *build_list_columns(record), data),
        RunExistsError(),
    )
    yield Do(
        "INSERT INTO background (run_id, owner, holder, fence, until, begun, cancelled, events, data) "
        f"SELECT ?, ?, ?, ?, {lease_sql.until}, 0, 0, 0, ? "
        "WHERE (SELECT COUNT(*) FROM background WHERE owner = ?) < ?",
        (*place, job.holder, job.fence, encode(_get_fixed_part(job)), place[1], most[1]),
        TooManyRequestsError(_TOO_MANY_OF_OWNER, retry_after=_RETRY_SECONDS),
    )
    if not job.holder:
        yield Do(
            "UPDATE background SET holder = '' WHERE run_id = ? AND owner = ? "
            "AND (SELECT COUNT(*) FROM background WHERE holder = '') <= ?",
            (*place, most[0]),
            TooManyRequestsError(_TOO_MANY, retry_after=_RETRY_SECONDS),
        )
        yield from lease_sql.notices("work")


def save_job(job: BackgroundRun, lease_sql: LeaseSql) -> Iterator[Do]:
    ref = None if job.checkpoint is None else encode(job.checkpoint)
    until = lease_sql.until if job.holder else "0"
    yield Do(
        f"UPDATE background SET holder = ?, until = {until}, begun = ?, events = ?, checkpoint = ? "
        "WHERE run_id = ? AND owner = ? AND fence = ?",
        (job.holder, int(job.begun), job.events, ref, *_place(job)),
        LostRunError(),
    )
    if not job.holder:
        yield from lease_sql.notices("work")


def cancel_job(owner: str, run_id: str, fence: int | None, lease_sql: LeaseSql) -> Iterator[Do]:
    asked, place = "UPDATE background SET cancelled = 1 WHERE run_id = ? AND owner = ?", (key(run_id), key(owner))
    yield Do(asked, place) if fence is None else Do(f"{asked} AND fence = ?", (*place, fence), LostRunError())
    yield from lease_sql.notices("cancel", run_id)


def delete_job(job: BackgroundRun, lease_sql: LeaseSql) -> Iterator[Do]:
    yield Do("DELETE FROM background WHERE run_id = ? AND owner = ? AND fence = ?", _place(job), LostRunError())
    yield from lease_sql.notices("run", job.admitted.run_id)


def insert_events(events: Sequence[RunEvent], job: BackgroundRun | None, lease_sql: LeaseSql) -> Iterator[Do]:
    """Add events to a run. Events of a run that was deleted meanwhile are dropped."""
    for (run_id, owner), of_run in groupby(events, lambda event: (event.run_id, event.owner)):
        for batch in split_batches(of_run):
            values = [value for event in batch for value in (event.number, event.data)]
            if job is None:
                yield Do(_log_sql("runs", len(batch), lease_sql.share), (*values, key(run_id), key(owner)))
            else:
                fenced = _log_sql("background", len(batch), f"AND kept.fence = ? {lease_sql.share}")
                yield Do(fenced, (*values, *_place(job)), LostRunError())
        yield from lease_sql.notices("run", run_id)


def split_batches(events: Iterable[RunEvent]) -> Iterator[list[RunEvent]]:
    """Yield batches of at most one statement's size."""
    left = iter(events)
    while batch := list(islice(left, _MAX_EVENTS)):
        yield batch


@lru_cache(maxsize=2 * _MAX_EVENTS)
def _log_sql(table: str, rows: int, more: str) -> str:
    new = ", ".join(["(?, ?)"] * rows)
    # Events are sent again when it is unknown whether a commit went through; then they count as written too.
    return (
        "INSERT INTO events (run_id, owner, number, data) "
        f"SELECT kept.run_id, kept.owner, new.column1, new.column2 FROM {table} AS kept, (VALUES {new}) AS new "
        f"WHERE kept.run_id = ? AND kept.owner = ? {more} "
        "ON CONFLICT (run_id, owner, number) DO UPDATE SET data = excluded.data"
    )


def _place(job: BackgroundRun) -> tuple[Any, ...]:
    owner, run_id = job.key
    return key(run_id), key(owner), job.fence


def _get_fixed_part(job: BackgroundRun) -> BackgroundRun:
    return BackgroundRun(admitted=job.admitted, on_interrupt=job.on_interrupt, session_id=job.session_id)
