"""The tasks that look for approvals whose time has come read those, however many wait."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from frontdesk.interfaces.store import HostStateStore
from frontdesk_testing.store_samples import NOW
from tests.stores.sql.bases import Base

INDEXES = {"expired": "approvals_by_end", "to_escalate": "approvals_to_escalate"}


async def _record_statement(store: HostStateStore, call: Callable[[Any], Any]) -> tuple[str, Sequence[Any]]:
    """Return the statement of a call, as the database gets it."""
    seen: list[tuple[str, Sequence[Any]]] = []
    engine: Any = store._engine  # type: ignore[attr-defined]
    plain = engine.read

    async def read(sql: str, values: Sequence[Any] = ()) -> Any:
        seen.append((sql, values))
        return await plain(sql, values)

    engine.read = read
    await call(store.approvals)
    engine.read = plain
    return seen[0]


@pytest.mark.parametrize("name", INDEXES)
async def test_looking_for_due_approvals_read_every_pending_one_on_sqlite(name: str, tmp_path: Path) -> None:
    base = Base("sqlite", str(tmp_path / "frontdesk.db"))
    async with base.open() as store:
        sql, values = await _record_statement(store, lambda approvals: getattr(approvals, name)(NOW))
    plan = [row[-1] for row in base.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert len(plan) == 1, plan
    assert f"USING INDEX {INDEXES[name]} (" in plan[0], plan


@pytest.mark.parametrize("name", INDEXES)
async def test_looking_for_due_approvals_reads_the_index_on_postgres(name: str, postgres_tables: str) -> None:
    base = Base("postgres", postgres_tables)
    async with base.open() as store:
        sql, values = await _record_statement(store, lambda approvals: getattr(approvals, name)(NOW))
    off = [(f"SET LOCAL enable_{way} = off", ()) for way in ("seqscan", "bitmapscan", "sort")]
    plan = "\n".join(line for (line,) in base.transact([*off, (f"EXPLAIN {sql}", values)]))
    assert f"Index Scan using {INDEXES[name]} " in plan, plan
    assert "Sort" not in plan, plan


async def test_the_own_questions_of_a_person_are_read_from_the_index_of_pending_ones(tmp_path: Path) -> None:
    base = Base("sqlite", str(tmp_path / "frontdesk.db"))
    async with base.open() as store:
        sql, values = await _record_statement(
            store, lambda approvals: approvals.waiting_for(["person:1:a:b"], owner="ada")
        )
    plan = [row[-1] for row in base.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert "SEARCH approvals USING INDEX approvals_that_wait (owner=? AND number>?)" in plan, plan
    assert not any(line.startswith("SCAN approvals") for line in plan), plan
