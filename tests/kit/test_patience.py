"""Those who wait for too long are found, and nothing is kept of those who do not."""

import asyncio
import weakref
from typing import Any

import pytest

from frontdesk.kit.patience import Patience, Waiting
from frontdesk.kit.tasks import present_task


class Guest(Waiting):
    def __init__(self) -> None:
        self.lost = asyncio.Event()


def patience(seconds: float = 0.01) -> Patience[Guest]:
    return Patience(seconds, lambda guest: guest.lost.set())


async def test_whoever_waits_too_long_is_found_once() -> None:
    found: list[Guest] = []
    last = asyncio.Event()
    waiting: Patience[Guest] = Patience(0.01, lambda guest: (found.append(guest), guest is second and last.set())[0])
    first, second = Guest(), Guest()
    waiting.add(first, present_task())
    waiting.add(second, present_task())
    await last.wait()
    assert sorted(map(id, found)) == sorted(map(id, (first, second)))


async def test_nobody_is_found_before_the_time() -> None:
    waiting, guest, loop = patience(0.05), Guest(), asyncio.get_running_loop()
    # It runs already, so that its next look comes at any moment.
    waiting.add(Guest(), present_task())
    await asyncio.sleep(0.006)
    begun = loop.time()
    waiting.add(guest, present_task())
    await guest.lost.wait()
    assert loop.time() - begun >= 0.05


async def test_whoever_leaves_is_not_found() -> None:
    waiting, gone, later = patience(), Guest(), Guest()
    waiting.add(gone, present_task())
    waiting.drop(gone)
    waiting.add(later, present_task())
    await later.lost.wait()
    assert not gone.lost.is_set()


async def test_whoever_leaves_twice_or_never_came_is_no_matter() -> None:
    waiting, guest = patience(), Guest()
    waiting.drop(guest)
    waiting.add(guest, present_task())
    waiting.drop(guest)
    waiting.drop(guest)


async def test_whoever_has_left_is_not_kept() -> None:
    waiting, guest = patience(60), Guest()
    left = weakref.ref(guest)
    waiting.add(guest, present_task())
    waiting.drop(guest)
    del guest
    assert left() is None


async def test_it_starts_again_after_a_while_without_anybody() -> None:
    waiting, loop = patience(), asyncio.get_running_loop()
    for _ in range(3):
        guest, quiet = Guest(), asyncio.Event()
        waiting.add(guest, present_task())
        await guest.lost.wait()
        loop.call_later(0.03, quiet.set)
        await quiet.wait()


def test_it_works_in_one_loop_after_another() -> None:
    waiting = patience()

    async def leave_one() -> None:
        waiting.add(Guest(), present_task())

    async def lose_one() -> None:
        guest = Guest()
        waiting.add(guest, present_task())
        await guest.lost.wait()

    for step in (leave_one, lose_one, leave_one, lose_one):
        asyncio.run(step())


def test_the_present_task_is_that_of_the_loop_that_runs() -> None:
    async def see() -> asyncio.Task[Any]:
        assert present_task() is asyncio.current_task()
        return present_task()

    assert asyncio.run(see()) is not asyncio.run(see())


def test_without_a_loop_there_is_no_present_task() -> None:
    async def see() -> None:
        present_task()

    asyncio.run(see())
    with pytest.raises(RuntimeError):
        present_task()
