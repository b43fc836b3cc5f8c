"""What the runner on Procrastinate does beyond what every runner does: processes that share a queue."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from frontdesk.identifiers import digest
from frontdesk.runners.procrastinate import ProcrastinateTaskRunner, _text, schema_name
from frontdesk.serialization.codec import encode
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing.runner_contract import Notes, run_runner, wait_for_status
from tests.databases import PostgresServer, short_lease
from tests.scenarios.desk import until


@asynccontextmanager
async def open_store(conninfo: str, lease: float = 1.0) -> AsyncIterator[PostgresStateStore]:
    store = short_lease(conninfo, lease)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def none() -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    """Nothing waits that nobody was told of."""
    for row in ():
        yield row


def execute(conninfo: str, sql: str, *values: Any) -> list[Any]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursor = connection.execute(sql, values)  # pyright: ignore
        return cursor.fetchall() if cursor.description else []


async def test_replicas_that_start_at_once_make_one_queue_in_a_schema_of_its_own(postgres: str) -> None:
    async with open_store(postgres) as store:
        runners = [ProcrastinateTaskRunner(store) for _ in range(4)]
        for runner in runners:
            runner.register("work", Notes(), waiting=none)
        await asyncio.gather(*(runner.start() for runner in runners))
        await asyncio.gather(*(runner.drain(1.0) for runner in runners))
    tables = execute(postgres, "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'procrastinate%%'")
    assert tables == [(schema_name(),)]


async def test_work_is_shared_and_each_piece_is_done_once(postgres: str) -> None:
    first, second = Notes(), Notes()
    async with open_store(postgres) as one, open_store(postgres) as other:
        runners = [ProcrastinateTaskRunner(one), ProcrastinateTaskRunner(other)]
        for runner, notes in zip(runners, (first, second), strict=True):
            notes.gate = asyncio.Event()
            runner.register("note", notes, most=2)
        async with run_runner(runners[0]), run_runner(runners[1]):
            for number in range(4):
                await runners[0].schedule("note", {"n": number}, task_id=f"task_{number}")
            # Each has room for two, so that both have to help.
            await first.wait_for_calls(2)
            await second.wait_for_calls(2)
            for notes in (first, second):
                assert notes.gate is not None
                notes.gate.set()
            for number in range(4):
                await wait_for_status(runners[1], f"task_{number}", "succeeded")
    assert sorted(one["n"] for notes in (first, second) for one in notes.calls) == [0, 1, 2, 3]


async def test_the_job_of_a_worker_that_is_gone_does_not_keep_others_from_its_task(postgres: str) -> None:
    notes = Notes()
    async with open_store(postgres) as store:
        runner = ProcrastinateTaskRunner(store)
        runner.register("work", notes, waiting=none)
        async with run_runner(runner):
            schema = schema_name()
            (worker,) = execute(
                postgres,
                f"INSERT INTO {schema}.procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour') "
                "RETURNING id",
            )
            args = {"name": "work", "task_id": _text("a"), "payload": _text({"n": 1})}
            execute(
                postgres,
                f"INSERT INTO {schema}.procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, status, "
                "worker_id) VALUES ('frontdesk', 'frontdesk.wake', %s, %s, %s, 'doing', %s)",
                digest("a"),
                digest("a"),
                Jsonb(args),
                worker[0],
            )
            await notes.wait_for_calls(1)
            await until(lambda: execute(postgres, f"SELECT 1 FROM {schema}.procrastinate_jobs") == [])
    assert notes.calls == [{"n": 1}]


async def test_no_job_is_left_when_all_is_done(postgres: str) -> None:
    notes = Notes()
    async with open_store(postgres) as store:
        runner = ProcrastinateTaskRunner(store)
        runner.register("work", notes, waiting=none)
        async with run_runner(runner):
            for number in range(20):
                await runner.schedule("work", {}, task_id=f"task_{number}")
            await notes.wait_for_calls(20)
            await until(lambda: execute(postgres, f"SELECT 1 FROM {schema_name()}.procrastinate_jobs") == [])
    assert len(notes.calls) == 20


async def test_a_server_that_was_away_is_worked_for_again(postgres_of_this_process: PostgresServer) -> None:
    notes = Notes()
    with postgres_of_this_process.database() as conninfo:
        async with open_store(conninfo) as store:
            runner = ProcrastinateTaskRunner(store)
            runner.register("work", notes, waiting=none)
            async with run_runner(runner):
                await runner.schedule("work", {"n": 1}, task_id="a")
                await notes.wait_for_calls(1)
                await asyncio.to_thread(postgres_of_this_process.stop)
                await runner.schedule("work", {"n": 2}, task_id="b")
                await asyncio.to_thread(postgres_of_this_process.start)

                async def heard() -> bool:
                    await runner.schedule("work", {"n": 3}, task_id="c")
                    return len(notes.calls) > 1

                await until(heard, within=30)


async def test_a_job_that_can_t_be_read_is_dropped(postgres: str, caplog: Any) -> None:
    notes = Notes()
    async with open_store(postgres) as store:
        runner = ProcrastinateTaskRunner(store)
        runner.register("work", notes, waiting=none)
        async with run_runner(runner):
            await runner._take(name="work", task_id="AAAA", payload=_text({}))
            await runner._take(name="unknown", task_id=_text("a"), payload=_text({}))
    assert notes.calls == []
    assert "job cannot be decoded" in caplog.text
    assert encode("a") not in caplog.text.encode()
