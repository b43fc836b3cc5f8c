"""The clock of the machine is set ahead and back while tasks wait."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from frontdesk import RetryPolicy
from frontdesk.interfaces.store import HostStateStore
from frontdesk.runners.base import InProcessTaskRunner, Registered, StoredTasks
from frontdesk.runners.wakes import Wake, Wakes
from frontdesk_testing import FakeClock
from tests.scenarios.stores import open_store

DAY = 86_400.0
RETRY = RetryPolicy(attempts=4, first_delay=20.0, longest_delay=60.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[HostStateStore]:
    async with open_store(request.param, tmp_path, clock=clock) as store:
        yield store


class Process:
    """The stored tasks of one process, of which one is registered; it fails as often as it is told to."""

    def __init__(self, store: HostStateStore, clock: FakeClock, *, failures: int = 0) -> None:
        self.failures = failures
        self.calls = 0
        known = Registered(task=self._task, retry=RETRY, waiting=None, most=1)
        self.tasks = StoredTasks(store, clock, {"note": known})
        self.tasks.holder = f"host {id(self)}"

    async def _task(self, payload: Mapping[str, Any]) -> None:
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise OSError("not yet")

    async def schedule(self, at: float | None = None) -> None:
        await self.tasks.keep("note", {}, "task", at)


async def status(store: HostStateStore) -> str:
    found = await store.tasks.get("task")
    assert found is not None
    return found.status


async def test_a_task_that_failed_while_the_clock_was_ahead_waited_a_day(
    store: HostStateStore, clock: FakeClock
) -> None:
    process = Process(store, clock, failures=1)
    await process.schedule()
    clock.jump(DAY)
    assert await process.tasks.do("task") == clock.now() + 20.0
    clock.jump(-DAY)
    # Whoever is early is told when to come.
    assert await process.tasks.do("task") == clock.now() + 20.0
    clock.advance(20.0)
    assert await process.tasks.do("task") is None
    assert await status(store) == "succeeded"


async def test_a_task_that_failed_ahead_waited_a_day_over_a_restart(store: HostStateStore, clock: FakeClock) -> None:
    before = Process(store, clock, failures=1)
    await before.schedule()
    clock.jump(DAY)
    await before.tasks.do("task")
    clock.jump(-DAY)
    after = Process(store, clock)
    (found,) = await store.tasks.stranded(["note"], clock.now() + 60.0, holder="host", limit=10)
    assert after.tasks.due(found) == clock.now() + 20.0
    clock.advance(15.0)
    # The next look changes nothing.
    assert after.tasks.due(found) == clock.now() + 5.0
    clock.advance(5.0)
    assert await after.tasks.do("task") is None
    assert await status(store) == "succeeded"


async def test_a_runner_did_not_look_for_what_was_scheduled_ahead(store: HostStateStore, clock: FakeClock) -> None:
    before = Process(store, clock, failures=1)
    await before.schedule()
    clock.jump(DAY)
    await before.tasks.do("task")
    clock.jump(-DAY)
    runner = InProcessTaskRunner(store, clock=clock)
    runner.register("note", before._task, retry=RETRY)
    runner._stored.holder = "host"
    await runner.begin()
    await runner.look()
    assert runner.wakes.find_running("task") is False
    await runner.drain(0)


async def test_a_clock_that_jumped_ahead_used_up_the_attempts_of_a_task(
    store: HostStateStore, clock: FakeClock
) -> None:
    process = Process(store, clock, failures=9)
    await process.schedule()
    await process.tasks.do("task")
    clock.jump(DAY)
    (found,) = await store.tasks.due(["note"], clock.now(), holder="host", limit=10)
    assert process.tasks.due(found) == clock.now() + 20.0


async def test_a_task_for_now_waited_when_the_clock_was_set_back_before_it_began(
    store: HostStateStore, clock: FakeClock
) -> None:
    process = Process(store, clock)
    await process.schedule()
    clock.jump(-DAY)
    assert await process.tasks.do("task") is None
    assert await status(store) == "succeeded"


async def test_a_task_for_a_time_of_day_waits_for_that_time(store: HostStateStore, clock: FakeClock) -> None:
    process = Process(store, clock)
    await process.schedule(at=clock.now() + 3600.0)
    clock.jump(-DAY)
    assert list(await store.tasks.stranded(["note"], clock.now() + 60.0, holder="host", limit=10)) == []
    clock.advance(3600.0)
    assert await process.tasks.do("task") is None
    assert await status(store) == "pending"
    clock.jump(DAY)
    assert await process.tasks.do("task") is None
    assert await status(store) == "succeeded"


async def test_a_time_of_day_that_the_clock_jumped_over_was_waited_for(store: HostStateStore, clock: FakeClock) -> None:
    process, done = Process(store, clock), asyncio.Event()

    async def task(payload: Mapping[str, Any]) -> None:
        done.set()

    runner = InProcessTaskRunner(store, clock=clock)
    runner.register("note", task)
    runner._stored.holder = "host"
    await runner.begin()
    at = clock.now() + 3600.0
    await process.schedule(at=at)
    runner.wake(Wake("note", "task", {}), at)
    clock.jump(3600.0)
    await runner.look()
    await done.wait()
    await runner.drain(1.0)


class Calls:
    """Wake-ups by a clock that the test moves."""

    def __init__(self, clock: FakeClock) -> None:
        self.made: list[str] = []
        self.again: float | None = None
        self.wakes = Wakes(self._call, clock, most=10, freed=lambda: None)
        self.wakes.evict_oldest("n", 10)

    async def _call(self, wake: Wake, failures: int) -> float | None:
        self.made.append(wake.task_id)
        again, self.again = self.again, None
        return again

    async def ring(self) -> list[str]:
        """What is called when the timer fires at this moment."""
        self.made.clear()
        self.wakes._run_due()
        for task_id in "ab":
            await self.wakes.wait_for(task_id)
        return list(self.made)


async def test_a_wake_up_followed_the_clock_when_it_was_set(clock: FakeClock) -> None:
    calls = Calls(clock)
    calls.wakes.wake(Wake("n", "a", {}), clock.now() + 5.0)
    clock.jump(DAY)
    assert await calls.ring() == []
    clock.jump(-2 * DAY)
    clock.advance(5.0)
    calls.again = clock.now() + 3.0
    assert await calls.ring() == ["a"]
    clock.jump(-DAY)
    clock.advance(3.0)
    assert await calls.ring() == ["a"]
    assert len(calls.wakes) == 0


async def test_a_wake_up_for_a_time_far_ahead_is_looked_at_before(clock: FakeClock) -> None:
    calls = Calls(clock)
    calls.wakes.wake(Wake("n", "a", {}), clock.now() + DAY)
    clock.advance(600.0)
    assert await calls.ring() == ["a"]


async def test_a_wake_up_that_has_failed_is_not_moved(clock: FakeClock) -> None:
    calls = Calls(clock)
    calls.wakes.wake(Wake("n", "a", {}), clock.now() + 60.0)
    calls.wakes.wake(Wake("n", "b", {}), clock.now() + 60.0)
    calls.wakes._entries["b"].failures = 1
    for task_id in ("a", "b", "unknown"):
        calls.wakes.move(task_id, clock.now() + 10.0)
    clock.advance(10.0)
    assert await calls.ring() == ["a"]
    await calls.wakes.drain(0)
