"""The contract of every runner.

    class TestMyRunner(RunnerContract):
        @pytest.fixture
        async def make(self, tmp_path):
            ...
            yield lambda: MyRunner(...)

`make` gives runners that are not started, all on the same state, as processes that follow each other would have them.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from frontdesk.clock import SystemClock
from frontdesk.errors import CodecError, TaskError
from frontdesk.interfaces.runner import DurableTaskRunner, RetryPolicy, TaskStatus
from frontdesk_testing.store_samples import ODD_KEYS

Make = Callable[[], DurableTaskRunner]
AT_ONCE = RetryPolicy(attempts=3, first_delay=0.0)
_TIMEOUT_SECONDS = 20.0
_POLL_INTERVAL_SECONDS = 0.01
_scheduler: ContextVar[str | None] = ContextVar("frontdesk_scheduler", default=None)


class Notes:
    """A task that records its calls."""

    def __init__(self) -> None:
        self.calls: list[Mapping[str, Any]] = []
        self.active = 0
        self.together = 0
        self.gate: asyncio.Event | None = None
        self.failures = 0
        self.idle = asyncio.Event()
        self._news = asyncio.Condition()

    async def __call__(self, payload: Mapping[str, Any]) -> float | None:
        self.calls.append(payload)
        self.active += 1
        self._update_idle()
        self.together = max(self.together, self.active)
        async with self._news:
            self._news.notify_all()
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.failures:
                self.failures -= 1
                raise OSError("not yet")
        finally:
            self.active -= 1
            self._update_idle()
        return None

    def _update_idle(self) -> None:
        if self.active == 0:
            self.idle.set()
        else:
            self.idle.clear()

    async def quiet(self) -> None:
        """Wait until no call is being made."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await self.idle.wait()

    async def wait_for_calls(self, times: int) -> None:
        """Wait for this number of calls."""
        async with asyncio.timeout(_TIMEOUT_SECONDS), self._news:
            await self._news.wait_for(lambda: len(self.calls) >= times)


@asynccontextmanager
async def run_runner(
    runner: DurableTaskRunner, *, grace: float = _TIMEOUT_SECONDS
) -> AsyncGenerator[DurableTaskRunner]:
    """Start a runner, and drain it at the end of the block."""
    await runner.start()
    try:
        yield runner
    finally:
        await runner.drain(grace)


async def wait_for_status(runner: DurableTaskRunner, task_id: str, status: TaskStatus | None) -> None:
    """Wait until a task has this status."""
    async with asyncio.timeout(_TIMEOUT_SECONDS):
        # A runner does not notify anyone that a task has ended.
        while await runner.get(task_id) != status:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_INTERVAL_SECONDS)


class RunnerContract:
    """The contract of a runner. A subclass has a fixture `make`."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def make(self) -> Make:
        """Return a function that makes runners on one state."""
        raise NotImplementedError("a runner's contract needs a fixture called `make`")

    async def test_a_task_runs_with_what_it_was_given(self, make: Make) -> None:
        runner, notes = make(), Notes()
        runner.register("note", notes)
        payload = {"text": "hé\0 😀", "parts": [1, 2.5, None, {"deep": True}]}
        async with run_runner(runner):
            assert await runner.get("task") is None
            handle = await runner.schedule("note", payload, task_id="task")
            assert (handle.task_id, handle.name) == ("task", "note")
            await wait_for_status(runner, "task", "succeeded")
        assert notes.calls == [payload]

    async def test_what_can_t_be_stored_is_refused_at_once(self, make: Make) -> None:
        runner = make()
        runner.register("note", Notes())
        async with run_runner(runner):
            with pytest.raises(CodecError):
                await runner.schedule("note", {"what": object()}, task_id="task")
            assert await runner.get("task") is None

    async def test_names_are_registered_once_and_before_the_start(self, make: Make) -> None:
        runner = make()
        runner.register("note", Notes())
        with pytest.raises(TaskError, match="already"):
            runner.register("note", Notes())
        with pytest.raises(TaskError, match="at least 1"):
            runner.register("none", Notes(), most=0)
        async with run_runner(runner):
            with pytest.raises(TaskError, match="after the runner has started"):
                runner.register("late", Notes())
            with pytest.raises(TaskError, match="no task called"):
                await runner.schedule("late", {}, task_id="task")

    async def test_the_same_id_is_one_task_while_it_waits(self, make: Make) -> None:
        runner, notes = make(), Notes()
        runner.register("note", notes)
        for number in range(3):
            await runner.schedule("note", {"n": number}, task_id="task")
        assert await runner.get("task") == "pending"
        async with run_runner(runner):
            await wait_for_status(runner, "task", "succeeded")
        assert notes.calls == [{"n": 0}]

    async def test_a_schedule_during_the_run_makes_it_run_once_more(self, make: Make) -> None:
        runner, notes = make(), Notes()
        notes.gate = asyncio.Event()
        runner.register("note", notes)
        async with run_runner(runner):
            await runner.schedule("note", {"n": 1}, task_id="task")
            await notes.wait_for_calls(1)
            assert await runner.get("task") == "running"
            for number in (2, 3):
                await runner.schedule("note", {"n": number}, task_id="task")
            notes.gate.set()
            await notes.wait_for_calls(2)
            await wait_for_status(runner, "task", "succeeded")
        assert [call["n"] for call in notes.calls] == [1, 3]
        assert notes.together == 1

    async def test_an_ended_task_can_be_scheduled_again(self, make: Make) -> None:
        runner, notes = make(), Notes()
        runner.register("note", notes)
        async with run_runner(runner):
            for number in (1, 2):
                await runner.schedule("note", {"n": number}, task_id="task")
                await notes.wait_for_calls(number)
                await wait_for_status(runner, "task", "succeeded")
        assert [call["n"] for call in notes.calls] == [1, 2]

    async def test_a_task_that_fails_is_tried_again_within_its_policy(self, make: Make) -> None:
        runner, notes, hopeless = make(), Notes(), Notes()
        notes.failures, hopeless.failures = 2, 99
        runner.register("note", notes, retry=AT_ONCE)
        runner.register("hopeless", hopeless, retry=AT_ONCE)
        async with run_runner(runner):
            await runner.schedule("note", {}, task_id="task")
            await runner.schedule("hopeless", {}, task_id="other")
            await wait_for_status(runner, "task", "succeeded")
            await wait_for_status(runner, "other", "failed")
        assert (len(notes.calls), len(hopeless.calls)) == (3, 3)

    async def test_a_task_can_ask_to_be_called_again(self, make: Make) -> None:
        runner, calls = make(), list[int]()

        async def thrice(payload: Mapping[str, Any]) -> float | None:
            calls.append(len(calls))
            return 0.0 if len(calls) < 3 else None

        runner.register("thrice", thrice)
        async with run_runner(runner):
            await runner.schedule("thrice", {}, task_id="task")
            await wait_for_status(runner, "task", "succeeded")
        assert calls == [0, 1, 2]

    async def test_a_task_for_later_waits(self, make: Make) -> None:
        runner, notes, first = make(), Notes(), Notes()
        runner.register("note", notes)
        runner.register("first", first)
        async with run_runner(runner):
            await runner.schedule("note", {}, task_id="task", at=4e9)
            await runner.schedule("first", {}, task_id="first")
            await wait_for_status(runner, "first", "succeeded")
            assert (await runner.get("task"), notes.calls) == ("pending", [])
            await runner.schedule("note", {}, task_id="task", at=0.0)
            await wait_for_status(runner, "task", "succeeded")

    async def test_a_task_is_cancelled_before_and_while_it_runs(self, make: Make) -> None:
        runner, notes = make(), Notes()
        notes.gate = asyncio.Event()
        runner.register("note", notes)
        async with run_runner(runner):
            assert not await runner.cancel("task")
            await runner.schedule("note", {}, task_id="later", at=4e9)
            await runner.schedule("note", {}, task_id="task")
            await notes.wait_for_calls(1)
            for task_id in ("later", "task"):
                assert await runner.cancel(task_id)
                await wait_for_status(runner, task_id, "cancelled")
                assert not await runner.cancel(task_id)
            await notes.quiet()
        assert len(notes.calls) == 1

    async def test_what_was_scheduled_runs_in_the_next_process(self, make: Make) -> None:
        runner = make()
        runner.register("note", Notes())
        await runner.schedule("note", {"n": 1}, task_id="task")
        following, notes = make(), Notes()
        following.register("note", notes)
        async with run_runner(following):
            await wait_for_status(following, "task", "succeeded")
        assert notes.calls == [{"n": 1}]

    async def test_a_drain_lets_tasks_end(self, make: Make) -> None:
        runner, notes = make(), Notes()
        notes.gate = asyncio.Event()
        runner.register("note", notes)
        await runner.start()
        await runner.schedule("note", {}, task_id="task")
        await notes.wait_for_calls(1)
        draining = asyncio.get_running_loop().create_task(runner.drain(_TIMEOUT_SECONDS))
        await asyncio.sleep(0)
        notes.gate.set()
        await draining
        assert await runner.get("task") == "succeeded"

    async def test_what_a_drain_cuts_off_is_given_back_and_costs_no_attempt(self, make: Make) -> None:
        notes = Notes()
        notes.gate = asyncio.Event()
        for number in range(1, 4):
            runner = make()
            runner.register("note", notes, retry=RetryPolicy(attempts=1))
            if number == 1:
                await runner.schedule("note", {}, task_id="task")
            async with run_runner(runner, grace=0):
                await notes.wait_for_calls(number)
            assert await runner.get("task") == "pending"
        following = make()
        following.register("note", notes, retry=RetryPolicy(attempts=1))
        notes.gate = None
        async with run_runner(following):
            await wait_for_status(following, "task", "succeeded")

    async def test_concurrency_is_limited(self, make: Make) -> None:
        runner, notes = make(), Notes()
        notes.gate = asyncio.Event()
        runner.register("note", notes, most=3)
        async with run_runner(runner):
            for number in range(8):
                await runner.schedule("note", {}, task_id=f"task_{number}")
            await notes.wait_for_calls(3)
            assert notes.together == 3
            notes.gate.set()
            for number in range(8):
                await wait_for_status(runner, f"task_{number}", "succeeded")
        assert (notes.together, len(notes.calls)) == (3, 8)

    async def test_one_name_does_not_wait_for_another(self, make: Make) -> None:
        runner, slow, quick = make(), Notes(), Notes()
        slow.gate = asyncio.Event()
        runner.register("slow", slow, most=1)
        runner.register("quick", quick, most=1)
        async with run_runner(runner):
            for number in range(3):
                await runner.schedule("slow", {}, task_id=f"slow_{number}")
            await runner.schedule("quick", {}, task_id="quick")
            await wait_for_status(runner, "quick", "succeeded")
            slow.gate.set()

    async def test_a_wake_up_that_was_lost_is_found_by_a_look(self, make: Make) -> None:
        runner, notes, rows = make(), Notes(), [("a", {"n": 1}), ("b", {"n": 2})]

        async def list_waiting() -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
            for row in list(rows):
                yield row

        async def work(payload: Mapping[str, Any]) -> float | None:
            rows[:] = [row for row in rows if row[1] != payload]
            return await notes(payload)

        runner.register("work", work, waiting=list_waiting)
        async with run_runner(runner):
            await notes.wait_for_calls(2)
            rows.append(("c", {"n": 3}))
            await runner.schedule("work", {"n": 3}, task_id="c")
            await notes.wait_for_calls(3)
            await wait_for_status(runner, "c", None)
        assert sorted(call["n"] for call in notes.calls) == [1, 2, 3]

    async def test_a_wake_up_during_its_work_is_not_lost(self, make: Make) -> None:
        runner, notes = make(), Notes()
        notes.gate = asyncio.Event()

        async def nothing() -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
            for row in ():
                yield row

        runner.register("work", notes, waiting=nothing)
        async with run_runner(runner):
            await runner.schedule("work", {}, task_id="a")
            await notes.wait_for_calls(1)
            await runner.schedule("work", {}, task_id="a")
            notes.gate.set()
            await notes.wait_for_calls(2)
        assert notes.together == 1

    async def test_a_wake_up_that_fails_is_tried_again_as_long_as_it_takes(self, make: Make) -> None:
        runner, notes = make(), Notes()
        notes.failures = 6

        async def nothing() -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
            for row in ():
                yield row

        runner.register("work", notes, waiting=nothing, retry=AT_ONCE)
        async with run_runner(runner):
            await runner.schedule("work", {}, task_id="a")
            await notes.wait_for_calls(7)

    @pytest.mark.parametrize("kept", [True, False])
    async def test_a_task_sees_no_context_of_who_scheduled_it(self, make: Make, kept: bool) -> None:
        runner, notes = make(), Notes()
        seen: list[str | None] = []

        async def nothing() -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
            for row in ():
                yield row

        async def work(payload: Mapping[str, Any]) -> float | None:
            seen.append(_scheduler.get())
            # Seen by the next try, if that ran in the same context.
            _scheduler.set("an earlier try")
            return await notes(payload)

        runner.register("work", work, retry=AT_ONCE, waiting=None if kept else nothing)
        notes.failures = 2
        token = _scheduler.set("alice")
        try:
            async with run_runner(runner):
                await runner.schedule("work", {}, task_id="now")
                await notes.wait_for_calls(3)
                await runner.schedule("work", {}, task_id="later", at=SystemClock().now() + 0.05)
                await notes.wait_for_calls(4)
        finally:
            _scheduler.reset(token)
        assert seen == [None] * 4

    async def test_odd_ids_are_tasks_like_any_other(self, make: Make) -> None:
        runner, notes = make(), Notes()
        runner.register("note", notes)
        async with run_runner(runner):
            for key in ODD_KEYS:
                await runner.schedule("note", {}, task_id=key)
            for key in ODD_KEYS:
                await wait_for_status(runner, key, "succeeded")
        assert len(notes.calls) == len(ODD_KEYS)
