"""Callers take turns at the one thread: each in its own order, and nobody waits for all of another's jobs."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, wait
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.concurrency.current import current_caller
from frontdesk.concurrency.offload import FairThread, off_loop

Job = tuple[int, int]


class Blocked:
    """A thread with a job in it that ends when it is told to."""

    def __init__(self) -> None:
        self.thread = FairThread("blocked")
        self.ran: list[Job] = []
        self._free, self._begun = threading.Event(), threading.Event()
        self._first = self.thread.submit("first", self._block)
        assert self._begun.wait(10)

    def _block(self) -> None:
        self._begun.set()
        self._free.wait()

    def add(self, caller: int, number: int) -> "Future[None]":
        return self.thread.submit(caller, lambda: self.ran.append((caller, number)))

    def finish(self, jobs: "Iterable[Future[None]]") -> list[Job]:
        """Let the jobs run to the last; return their order."""
        self._free.set()
        wait([self._first, *jobs], 10)
        return self.ran


@given(callers=st.lists(st.integers(0, 4), max_size=30), cancelled=st.sets(st.integers(0, 29)))
def test_jobs_run_once_in_turn_and_not_if_they_were_cancelled(callers: list[int], cancelled: set[int]) -> None:
    blocked = Blocked()
    jobs = [blocked.add(caller, number) for number, caller in enumerate(callers)]
    gone = [number for number in sorted(cancelled) if number < len(jobs)]
    assert all(jobs[number].cancel() for number in gone)
    left = [(caller, number) for number, caller in enumerate(callers) if number not in cancelled]
    assert blocked.thread.waiting == len(left)

    ran = blocked.finish(jobs[number] for _, number in left)

    assert sorted(ran) == sorted(left)
    for _, own in groupby(sorted(ran, key=lambda job: job[0]), key=lambda job: job[0]):
        numbers = [number for _, number in own]
        assert numbers == sorted(numbers)
    _assert_everybody_in_turn(ran)
    for number in gone:
        with pytest.raises(CancelledError):
            jobs[number].result(0)


def _assert_everybody_in_turn(ran: list[Job]) -> None:
    """Between two jobs of one caller there is one of everybody else who waited, and not two."""
    callers = [caller for caller, _ in ran]
    for place, caller in enumerate(callers):
        if caller not in callers[place + 1 :]:
            continue
        until = callers.index(caller, place + 1)
        waiting = set(callers[place + 1 :]) - {caller}
        assert sorted(callers[place + 1 : until]) == sorted(waiting)


def test_who_came_second_waited_for_another_job_of_the_first() -> None:
    thread, order = FairThread("two"), list[str]()
    hers_run, go_on = threading.Event(), threading.Event()

    def first() -> None:
        hers_run.set()
        go_on.wait()
        order.append("hers")

    jobs = [thread.submit("alice", first), *(thread.submit("alice", lambda: order.append("hers")) for _ in range(3))]
    assert hers_run.wait(10)
    jobs.append(thread.submit("bob", lambda: order.append("his")))
    go_on.set()
    for job in jobs:
        job.result(10)
    assert order == ["hers", "his", "hers", "hers", "hers"]


def test_a_failed_job_did_not_end_the_thread() -> None:
    thread = FairThread("fails")

    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        thread.submit("alice", fail).result(10)
    assert thread.submit("alice", lambda: 1).result(10) == 1


def test_a_failed_job_left_its_value_to_the_garbage_collector() -> None:
    class Value:
        pass

    def fail(value: Value) -> None:
        raise KeyError("x")

    def work(value: Value) -> Callable[[], None]:
        return lambda: fail(value)

    thread, value = FairThread("fails"), Value()
    known = weakref.ref(value)
    job: Future[Any] | None = thread.submit("alice", work(value))
    assert isinstance(job.exception(10), KeyError)
    thread.submit("alice", lambda: None).result(10)
    gc.disable()
    try:
        del job, value
        assert known() is None
    finally:
        gc.enable()


async def test_a_job_ran_although_its_waiter_had_gone() -> None:
    free, begun, ran = threading.Event(), threading.Event(), list[str]()

    def block() -> None:
        begun.set()
        free.wait()

    first = asyncio.create_task(off_loop(block))
    await asyncio.to_thread(begun.wait, 10)
    gone = asyncio.create_task(off_loop(ran.append, "gone"))
    stays = asyncio.create_task(off_loop(ran.append, "stays"))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    free.set()
    await asyncio.gather(first, stays)
    assert ran == ["stays"]


def test_two_event_loops_shared_the_thread() -> None:
    found: list[int] = []
    both = threading.Barrier(2)

    async def ask() -> None:
        both.wait(10)
        found.extend(await asyncio.gather(*(off_loop(lambda number=number: number) for number in range(20))))

    loops = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(2)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(10)
    assert sorted(found) == sorted([*range(20), *range(20)])


async def test_the_present_caller_is_the_one_whose_turn_it_is() -> None:
    free, begun, order = threading.Event(), threading.Event(), list[str]()

    def block() -> None:
        begun.set()
        free.wait()

    async def ask(caller: tuple[str, str] | None, word: str) -> None:
        current_caller.set(caller)
        await off_loop(order.append, word)

    first = asyncio.create_task(off_loop(block))
    await asyncio.to_thread(begun.wait, 10)
    hers, nobodys = ("api", "alice"), None
    asked = [(hers, "a1"), (hers, "a2"), (("api", "bob"), "b1"), (nobodys, "n1"), (nobodys, "n2"), (hers, "a3")]
    others = [asyncio.create_task(ask(caller, word)) for caller, word in asked]
    await asyncio.sleep(0)
    free.set()
    await asyncio.gather(first, *others)
    assert order == ["a1", "b1", "n1", "a2", "n2", "a3"]
