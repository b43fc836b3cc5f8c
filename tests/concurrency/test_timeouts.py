"""Those who wait for too long are found, and nothing is kept of those who do not."""

import asyncio
import weakref
from contextvars import ContextVar
from typing import Any

import pytest

from frontdesk.concurrency.tasks import current_task
from frontdesk.concurrency.timeouts import Timed, TimeoutWheel


class Guest(Timed):
    def __init__(self) -> None:
        self.lost = asyncio.Event()


def patience(seconds: float = 0.01) -> TimeoutWheel[Guest]:
    return TimeoutWheel(seconds, lambda guest: guest.lost.set())


async def test_whoever_waits_too_long_is_found_once() -> None:
    found: list[Guest] = []
    last = asyncio.Event()
    waiting: TimeoutWheel[Guest] = TimeoutWheel(
        0.01, lambda guest: (found.append(guest), guest is second and last.set())[0]
    )
    first, second = Guest(), Guest()
    waiting.add(first, current_task())
    waiting.add(second, current_task())
    await last.wait()
    assert sorted(map(id, found)) == sorted(map(id, (first, second)))


async def test_who_is_found_late_is_found_in_no_caller_s_context() -> None:
    """All share one timer, which the first of them has set."""
    mark: ContextVar[str] = ContextVar("mark", default="")
    seen: list[str] = []
    waiting: TimeoutWheel[Guest] = TimeoutWheel(0.01, lambda guest: (seen.append(mark.get()), guest.lost.set())[0])
    mark.set("the first")
    for _ in range(2):
        guest = Guest()
        waiting.add(guest, current_task())
        await guest.lost.wait()
    assert seen == ["", ""]


class Clockwork:
    """A loop whose timers come due when it is told, and the task that runs in it."""

    def __init__(self) -> None:
        self.due: list[Any] = []

    def get_loop(self) -> Any:
        return self

    def call_later(self, seconds: float, call: Any, *arguments: Any, context: Any = None) -> None:
        self.due.append((seconds, call, arguments))

    def tick(self) -> float:
        """Lets the only timer come due; how long it took."""
        ((seconds, call, arguments),) = self.due
        self.due.clear()
        call(*arguments)
        return seconds

    def run(self) -> None:
        """Until nothing is left to come."""
        while self.due:
            self.tick()


async def test_nobody_is_found_before_the_time_or_half_as_late_again() -> None:
    clockwork: Any = Clockwork()
    waiting, guest = patience(1.0), Guest()
    waiting.add(Guest(), clockwork)
    clockwork.tick()
    waiting.add(guest, clockwork)
    # It may have come just after a look, or just before the next.
    first = clockwork.tick()
    passed = first
    while not guest.lost.is_set():
        passed += clockwork.tick()
    assert passed - first >= 1.0
    assert passed <= 1.5


async def test_it_rests_when_nobody_waits_and_starts_again() -> None:
    clockwork: Any = Clockwork()
    waiting = patience()
    for _ in range(3):
        guest = Guest()
        waiting.add(guest, clockwork)
        waiting.drop(guest)
        clockwork.run()


async def test_one_that_can_not_be_helped_keeps_nobody_else_waiting() -> None:
    clockwork: Any = Clockwork()

    def act(guest: Guest) -> None:
        guest.lost.set()
        if guest is first:
            raise RuntimeError("no help for this one")

    waiting: TimeoutWheel[Guest] = TimeoutWheel(1.0, act)
    first, second = Guest(), Guest()
    waiting.add(first, clockwork)
    with pytest.raises(RuntimeError):
        clockwork.run()
    waiting.add(second, clockwork)
    clockwork.run()
    assert second.lost.is_set()


async def test_whoever_leaves_is_not_found() -> None:
    waiting, gone, later = patience(), Guest(), Guest()
    waiting.add(gone, current_task())
    waiting.drop(gone)
    waiting.add(later, current_task())
    await later.lost.wait()
    assert not gone.lost.is_set()


async def test_whoever_leaves_twice_or_never_came_is_no_matter() -> None:
    waiting, guest = patience(), Guest()
    waiting.drop(guest)
    waiting.add(guest, current_task())
    waiting.drop(guest)
    waiting.drop(guest)


async def test_whoever_has_left_is_not_kept() -> None:
    waiting, guest = patience(60), Guest()
    left = weakref.ref(guest)
    waiting.add(guest, current_task())
    waiting.drop(guest)
    del guest
    assert left() is None


def test_it_works_in_one_loop_after_another() -> None:
    waiting = patience()

    async def leave_one() -> None:
        waiting.add(Guest(), current_task())

    async def lose_one() -> None:
        guest = Guest()
        waiting.add(guest, current_task())
        await guest.lost.wait()

    for step in (leave_one, lose_one, leave_one, lose_one):
        asyncio.run(step())


def test_the_present_task_is_that_of_the_loop_that_runs() -> None:
    async def see() -> asyncio.Task[Any]:
        assert current_task() is asyncio.current_task()
        return current_task()

    assert asyncio.run(see()) is not asyncio.run(see())


def test_without_a_loop_there_is_no_present_task() -> None:
    async def see() -> None:
        current_task()

    asyncio.run(see())
    with pytest.raises(RuntimeError):
        current_task()
