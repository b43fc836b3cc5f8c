"""The lists of operators read ranges of indexes, however many rows there are."""

import re
from pathlib import Path
from typing import Any

import pytest

from frontdesk.models.operations import INDEXED, PLACES, LedgerKind
from frontdesk.stores.sql.operations import parse_tree, query
from frontdesk_testing.store_samples import NOW, OWNER, run
from tests.stores.sql.bases import Base

STATUSES: dict[LedgerKind, list[str]] = {
    "runs": ["queued", "failed", "completed"],
    "deliveries": ["dead"],
    "approvals": ["pending"],
    "inbox": ["waiting", "failed", "done"],
}
WALK = re.compile(r"SCAN (approvals|inbox|audit|part)( .*)?")
VALUES: dict[type, Any] = {float: 1.0, int: 7, str: "x"}
QUERIES = [
    (kind, by, after)
    for kind, ways in INDEXED.items()
    for names in [(), *ways]
    for status in (STATUSES.get(kind, ["x"]) if names == ("status",) else ["x"])
    for by in [{name: status if name == "status" else "7" for name in names}]
    for after in (None, tuple(VALUES[each] for each in PLACES[kind]))
]


@pytest.mark.parametrize("kind", PLACES)
async def test_a_query_reads_a_range_of_an_index_on_sqlite(kind: LedgerKind, tmp_path: Path) -> None:
    base = Base("sqlite", str(tmp_path / "frontdesk.db"))
    async with base.open():
        pass
    for asked, by, after in QUERIES:
        if asked == kind:
            sql, values = query(kind, by, after, 10)
            plan = [row[-1] for row in base.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            scans = [line for line in plan if line.startswith("SCAN")]
            # Walking an index, or the table by its number, reads no more rows than are wanted.
            assert all("USING" in line or WALK.fullmatch(line) for line in scans), plan
            if kind == "runs" and after is not None and "id" not in by:
                # A later page begins at its place. The rows before it are not read.
                reads = [line for line in plan if "runs USING" in line]
                assert all("<expr><" in line for line in reads), plan
            sorts = sum("TEMP B-TREE" in line for line in plan)
            assert not sorts or sorts_few(kind, by), plan
            assert sorts <= sum(line == "SCAN part" for line in plan) + 1 or not is_in_ranges(kind, by), plan


def sorts_few(kind: LedgerKind, by: dict[str, str]) -> bool:
    """Return True if few rows are sorted: deliveries of one number, the rows of one id, or two ranges with limits."""
    return kind == "deliveries" or "id" in by or is_in_ranges(kind, by)


def is_in_ranges(kind: LedgerKind, by: dict[str, str]) -> bool:
    """Return True if a list consists of two ranges, each read in order: only what both return is sorted."""
    return by.get("status") == "failed" or (kind == "runs" and "person" not in by and "id" not in by)


@pytest.mark.parametrize("kind", PLACES)
async def test_a_query_reads_a_range_of_an_index_on_postgres(kind: LedgerKind, postgres_tables: str) -> None:
    base = Base("postgres", postgres_tables)
    for asked, by, after in QUERIES:
        if asked == kind:
            sql, values = query(kind, by, after, 10)
            # Small tables are scanned, so that scans and sorts are forbidden to see whether there is another way.
            off = [(f"SET LOCAL enable_{way} = off", ()) for way in ("seqscan", "bitmapscan", "sort")]
            rows = base.transact([*off, (f"EXPLAIN {sql}", values)])
            plan = "\n".join(line for (line,) in rows)
            assert "Seq Scan" not in plan, plan
            assert "Sort" not in plan or sorts_few(kind, by), plan


async def test_the_list_of_all_runs_has_both_kinds_in_order_page_by_page(base_with_tables: Base) -> None:
    async with base_with_tables.open() as store:
        async with store.transaction() as transaction:
            for number in range(6):
                ended = NOW + number if number < 5 else None
                status = "completed" if ended else "running"
                transaction.save_run(run(f"run_{number}", status=status, finished_at=ended, background=number % 2 == 1))
        seen: list[str] = []
        place = None
        while rows := await store.ledger.rows("runs", after=place, limit=2):
            seen += [row.columns["run_id"] for row in rows]
            place = rows[-1].place
        assert seen == [f"run_{number}" for number in (5, 4, 3, 2, 1, 0)]
        running = await store.ledger.rows("runs", by={"status": "running"})
        assert [row.columns["run_id"] for row in running] == ["run_5"]


async def test_runs_that_a_host_of_an_earlier_version_has_ended_are_found(base_with_tables: Base) -> None:
    async with base_with_tables.open() as store:
        async with store.transaction() as transaction:
            transaction.save_run(run("run_new", status="failed", finished_at=NOW + 1))
            transaction.save_run(run("run_old", status="failed", finished_at=NOW))
            transaction.save_run(run("run_good", finished_at=NOW))
        base_with_tables.execute("UPDATE runs SET outcome = NULL WHERE run_id = 'run_old'")
        rows = await store.ledger.rows("runs", by={"status": "failed"})
        assert [row.columns["run_id"] for row in rows] == ["run_new", "run_old"]
        assert [row.columns["run_id"] for row in await store.ledger.rows("runs", by={"person": OWNER}, limit=1)] == [
            "run_new"
        ]


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b'{"v":9,"data":{}}', b'{"v":1}', b"\xff", b"[" * 100_000])
def test_a_record_of_another_version_is_no_tree(data: bytes) -> None:
    assert parse_tree(data) is None
