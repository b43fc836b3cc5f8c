"""What a list of an owner's runs reads, by the plans of its queries and by the steps that SQLite takes."""

import re
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk.models.run import MAX_COUNTED_RUNS, RunFilter
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.store_samples import OWNER, run

NOW = time.time()
"""Young enough for runs that do not expire."""
MANY = 12 * MAX_COUNTED_RUNS
FILTERS = [
    RunFilter(),
    RunFilter(channel="web"),
    RunFilter(session="s"),
    RunFilter(status="completed"),
    RunFilter(status="failed"),
    RunFilter(status="running"),
    RunFilter(since=NOW - 50),
    RunFilter(roots_only=True, session="t", channel="web", status="completed"),
]

IDS = ["none", "channel", "session", "completed", "failed", "running", "since", "several"]


async def keep(store: Any, count: int) -> None:
    for start in range(0, count, 1000):
        async with store.transaction() as transaction:
            for number in range(start, min(count, start + 1000)):
                session = "st"[number % 2]
                transaction.save_run(run(f"run_{number:06}", finished_at=NOW - count + number, session_key=session))


@asynccontextmanager
async def open_counted(path: Path, count: int) -> AsyncIterator[tuple[Any, list[tuple[str, tuple[Any, ...]]]]]:
    """A store with so many runs, and the queries that are made of it."""
    store = SqliteStateStore(path)
    await store.open()
    try:
        await keep(store, count)
        made: list[tuple[str, tuple[Any, ...]]] = []
        runs: Any = store.runs
        plain = runs._engine.read

        async def read(sql: str, values: tuple[Any, ...] = ()) -> Any:
            made.append((sql, tuple(values)))
            return await plain(sql, values)

        runs._engine = type("Watched", (), {"read": staticmethod(read)})()
        yield store, made
    finally:
        await store.close()


@pytest.mark.parametrize("where", FILTERS, ids=IDS)
async def test_each_query_reads_a_range_of_the_index(where: RunFilter, tmp_path: Path) -> None:
    async with open_counted(tmp_path / "state.db", 3 * MAX_COUNTED_RUNS) as (store, made):
        first = await store.runs.page(OWNER, where, limit=5)
        if first.after is not None:
            await store.runs.page(OWNER, where, after=first.after, limit=5)
        assert made
        connection = sqlite3.connect(tmp_path / "state.db")
        for sql, values in made:
            (plan,) = [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            assert re.fullmatch(r"SEARCH runs USING (COVERING )?INDEX runs_of_owner_by_end \(owner=\?.*\)", plan), plan
            # Only the rows of the page are read from the table.
            assert ("COVERING" in plan) == ("data" not in sql), plan
        connection.close()


@pytest.mark.parametrize("where", FILTERS, ids=IDS)
async def test_a_list_costs_the_same_however_many_runs_there_are(where: RunFilter, tmp_path: Path) -> None:
    costs: list[int] = []
    for count in (2 * MAX_COUNTED_RUNS, MANY):
        async with open_counted(tmp_path / f"{count}.db", count) as (store, made):
            await store.runs.page(OWNER, where, limit=50)
            costs.append(steps(tmp_path / f"{count}.db", made))
    assert costs[1] <= 1.2 * costs[0], costs


def steps(path: Path, made: list[tuple[str, tuple[Any, ...]]]) -> int:
    """Count the steps of SQLite's machine for some queries, which do not depend on the speed of the test's machine."""
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection = sqlite3.connect(path)
    try:
        connection.set_progress_handler(step, 1)
        for sql, values in made:
            connection.execute(sql, values).fetchall()
    finally:
        connection.close()
    return taken
