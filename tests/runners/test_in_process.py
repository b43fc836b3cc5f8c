"""What the runner in the process does beyond what every runner does."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from frontdesk import InMemoryStateStore, RetryPolicy
from frontdesk.models.operations import TaskRecord
from frontdesk.runners import base
from frontdesk.runners.base import InProcessTaskRunner
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.runner_contract import Notes, run_runner, wait_for_status


async def test_attempts_that_ended_with_their_process_count(tmp_path: Path) -> None:
    store, notes = SqliteStateStore(tmp_path / "state.db"), Notes()
    await store.open()
    await store.tasks.schedule(TaskRecord(task_id="task", name="note", payload={}, due_at=0.0))
    for number in range(2):
        # A process takes it up, and is never heard of again.
        assert await store.tasks.claim("task", f"dead_{number}", now=1.0) is not None
    notes.failures = 99
    runner = InProcessTaskRunner(store)
    runner.register("note", notes, retry=RetryPolicy(attempts=3, first_delay=0.0))
    async with run_runner(runner):
        await wait_for_status(runner, "task", "failed")
    assert len(notes.calls) == 1
    await store.close()


async def test_a_task_that_ends_its_process_each_time_is_given_up(tmp_path: Path) -> None:
    store, notes = SqliteStateStore(tmp_path / "state.db"), Notes()
    await store.open()
    await store.tasks.schedule(TaskRecord(task_id="task", name="note", payload={}, due_at=0.0))
    for number in range(3):
        assert await store.tasks.claim("task", f"dead_{number}", now=1.0) is not None
    runner = InProcessTaskRunner(store)
    runner.register("note", notes, retry=RetryPolicy(attempts=3))
    async with run_runner(runner):
        await wait_for_status(runner, "task", "failed")
    assert notes.calls == []
    await store.close()


async def test_a_task_that_nobody_knows_here_waits_for_who_does() -> None:
    store, notes = InMemoryStateStore(), Notes()
    await store.tasks.schedule(TaskRecord(task_id="foreign", name="other", payload={}, due_at=0.0))
    runner = InProcessTaskRunner(store)
    runner.register("note", notes)
    async with run_runner(runner):
        await runner.schedule("note", {}, task_id="mine")
        await wait_for_status(runner, "mine", "succeeded")
        assert await runner.get("foreign") == "pending"


async def test_more_than_can_be_known_is_found_when_there_is_room(monkeypatch: Any) -> None:
    monkeypatch.setattr(base, "MAX_KNOWN", 8)
    store, notes = InMemoryStateStore(), Notes()
    notes.gate = asyncio.Event()
    runner = InProcessTaskRunner(store)
    runner.register("note", notes, most=2)
    async with run_runner(runner):
        for number in range(50):
            await runner.schedule("note", {}, task_id=f"task_{number}")
        await notes.wait_for_calls(2)
        assert len(runner.wakes) == 8
        notes.gate.set()
        await notes.wait_for_calls(50)
        assert notes.together == 2


async def test_the_grace_of_a_drain_is_for_what_runs_and_not_for_what_waits() -> None:
    store, notes = InMemoryStateStore(), Notes()
    notes.gate = asyncio.Event()
    runner = InProcessTaskRunner(store)
    runner.register("note", notes, most=1)
    await runner.start()
    for number in range(3):
        await runner.schedule("note", {}, task_id=f"task_{number}")
    await notes.wait_for_calls(1)
    draining = asyncio.get_running_loop().create_task(runner.drain(20.0))
    await asyncio.sleep(0)
    notes.gate.set()
    await draining
    assert [await runner.get(f"task_{number}") for number in range(3)] == ["succeeded", "pending", "pending"]


async def test_a_look_that_fails_is_not_the_last(caplog: Any) -> None:
    store, notes, looks = InMemoryStateStore(), Notes(), list[int]()

    async def waiting() -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        looks.append(1)
        if len(looks) == 1:
            from frontdesk.errors import StoreUnavailableError

            raise StoreUnavailableError
        yield "a", {}

    runner = InProcessTaskRunner(store)
    runner.register("work", notes, waiting=waiting)
    async with run_runner(runner):
        runner._swept.set()
        await notes.wait_for_calls(1)
    assert "failed to look up" in caplog.text


def test_a_delay_grows_to_its_longest() -> None:
    policy = RetryPolicy(first_delay=1.0, factor=3.0, longest_delay=20.0)
    assert [policy.delay(attempts) for attempts in (0, 1, 2, 3, 4, 10_000)] == [1.0, 1.0, 3.0, 9.0, 20.0, 20.0]
