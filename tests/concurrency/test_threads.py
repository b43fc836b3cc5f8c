"""A run knows the threads that still work for it, and no others."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from frontdesk.concurrency.current import current_turn
from frontdesk.concurrency.threads import ThreadWork, TrackingExecutor


@pytest.fixture
def executor() -> Iterator[TrackingExecutor]:
    executor = TrackingExecutor(max_workers=4)
    yield executor
    executor.shutdown()


class Job:
    """Work in a thread that goes on until it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.may_end = threading.Event()
        self.error = error

    def __call__(self) -> None:
        assert self.may_end.wait(30)
        if self.error is not None:
            raise self.error


async def start(executor: TrackingExecutor, work: ThreadWork | None, job: Callable[[], Any]) -> "asyncio.Future[Any]":
    """Hands a job to a thread, in a task of its own."""

    async def hand_over() -> Any:
        if work is not None:
            current_turn.set(cast(Any, SimpleNamespace(work=work)))
        return asyncio.get_running_loop().run_in_executor(executor, job)

    return await asyncio.create_task(hand_over())


async def test_a_run_is_busy_while_its_thread_works(executor: TrackingExecutor) -> None:
    work, job = ThreadWork(), Job()
    future = await start(executor, work, job)
    assert work.busy
    assert not await work.wait(0)
    job.may_end.set()
    assert await work.wait(30)
    assert not work.busy
    await future


async def test_a_cancelled_task_leaves_its_thread_at_work(executor: TrackingExecutor) -> None:
    work, job = ThreadWork(), Job()
    future = await start(executor, work, job)
    future.cancel()
    assert work.busy
    job.may_end.set()
    assert await work.wait(30)


async def test_threads_of_others_do_not_count(executor: TrackingExecutor) -> None:
    mine, theirs, job = ThreadWork(), ThreadWork(), Job()
    futures = [await start(executor, theirs, job), await start(executor, None, job)]
    assert not mine.busy
    assert theirs.busy
    assert await mine.wait(0)
    job.may_end.set()
    await asyncio.gather(*futures)
    assert await theirs.wait(30)


async def test_tasks_that_a_run_starts_belong_to_it(executor: TrackingExecutor) -> None:
    work, job = ThreadWork(), Job()

    async def run() -> Any:
        current_turn.set(cast(Any, SimpleNamespace(work=work)))
        inner = asyncio.create_task(start(executor, None, job))
        future = await inner
        current_turn.set(None)
        return future, await start(executor, None, lambda: None)

    future, unrelated = await asyncio.create_task(run())
    await unrelated
    assert work.busy
    job.may_end.set()
    assert await work.wait(30)
    await future


async def test_what_is_waiting_for_a_free_thread_counts_too() -> None:
    executor = TrackingExecutor(max_workers=1)
    work, first, second = ThreadWork(), Job(), Job()
    futures = [await start(executor, None, first), await start(executor, work, second)]
    assert work.busy
    first.may_end.set()
    second.may_end.set()
    assert await work.wait(30)
    await asyncio.gather(*futures)
    executor.shutdown()


async def test_a_thread_that_fails_has_ended_and_makes_no_noise(executor: TrackingExecutor) -> None:
    noise: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: noise.append(context))
    work, job = ThreadWork(), Job(RuntimeError("nobody listens any more"))
    future = await start(executor, work, job)
    future.cancel()
    waiting = asyncio.create_task(work.wait(30))
    await asyncio.sleep(0)
    job.may_end.set()
    assert await waiting
    del future, waiting
    gc.collect()
    assert noise == []


async def test_nothing_to_wait_for_is_no_wait() -> None:
    assert await ThreadWork().wait(0)
