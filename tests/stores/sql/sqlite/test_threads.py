"""A thread that works in batches: what it is given comes back to whoever gave it."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.sql.sqlite.engine import BatchThread


class Work:
    """Doubles numbers, when it may; keeps the batches in which they came."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may = threading.Event()
        self.may.set()
        self.began = threading.Event()

    def __call__(self, batch: Sequence[int]) -> Sequence[Any]:
        self.batches.append(list(batch))
        self.began.set()
        self.may.wait(20)
        if 13 in batch:
            raise RuntimeError("not thirteen")
        return [ValueError(number) if number < 0 else 2 * number for number in batch]


async def begin(work: Work, thread: BatchThread[int], number: int) -> Any:
    """Gives the thread something to be busy with, until it may go on."""
    work.may.clear()
    work.began.clear()
    first = thread.do(number)
    await asyncio.to_thread(work.began.wait, 20)
    return first


async def test_what_gathers_while_it_is_busy_is_the_next_batch() -> None:
    work = Work()
    thread = BatchThread("test", work, most=4)
    first = await begin(work, thread, 1)
    others = [thread.do(number) for number in range(2, 8)]
    work.may.set()
    assert await asyncio.gather(first, *others) == [2, 4, 6, 8, 10, 12, 14]
    assert work.batches == [[1], [2, 3, 4, 5], [6, 7]]
    await thread.stop()


@pytest.mark.parametrize(("waiting", "most", "together"), [(8, 256, True), (7, 256, False), (8, 8, False)])
async def test_with_company_a_lot_waits_for_more(
    monkeypatch: pytest.MonkeyPatch, waiting: int, most: int, together: bool
) -> None:
    work, late = Work(), asyncio.get_running_loop().create_future()
    thread = BatchThread("test", work, most=most, linger=0.5)
    lingered: list[float] = []

    def linger(seconds: float) -> None:
        lingered.append(seconds)
        thread._queue.put((100, late))

    monkeypatch.setattr(thread._stopping, "wait", linger)
    first = await begin(work, thread, 1)
    others = [thread.do(number) for number in range(2, waiting + 2)]
    work.may.set()
    await asyncio.gather(first, *others)
    assert lingered == ([0.5] if together else [])
    assert work.batches[1] == [*range(2, waiting + 2), *([100] if together else [])]
    assert not together or await late == 200
    await thread.stop()


async def test_an_error_reaches_whoever_waits_and_the_thread_goes_on() -> None:
    thread = BatchThread("test", Work())
    with pytest.raises(ValueError, match="-1"):
        await thread.do(-1)
    with pytest.raises(RuntimeError, match="not thirteen"):
        await thread.do(13)
    assert await thread.do(4) == 8
    await thread.stop()


async def test_an_error_of_one_is_not_that_of_its_neighbours() -> None:
    work = Work()
    thread = BatchThread("test", work)
    first = await begin(work, thread, 1)
    others = [thread.do(number) for number in (2, -3, 4)]
    work.may.set()
    await first
    two, three, four = await asyncio.gather(*others, return_exceptions=True)
    assert (two, four) == (4, 8)
    assert isinstance(three, ValueError)
    await thread.stop()


async def test_one_who_no_longer_waits_is_no_trouble() -> None:
    work = Work()
    thread = BatchThread("test", work)
    first = await begin(work, thread, 1)
    gone, there = thread.do(2), thread.do(3)
    gone.cancel()
    work.may.set()
    assert (await first, await there) == (2, 6)
    assert gone.cancelled()
    # It was given, so it was done.
    assert work.batches == [[1], [2, 3]]
    await thread.stop()


async def test_what_was_given_before_the_end_is_done_and_what_comes_later_refused() -> None:
    work = Work()
    thread = BatchThread("test", work)
    first = await begin(work, thread, 1)
    second = thread.do(2)
    stopping = asyncio.create_task(thread.stop())
    await asyncio.sleep(0)
    late = thread.do(3)
    work.may.set()
    assert (await first, await second) == (2, 4)
    with pytest.raises(StoreUnavailableError):
        await late
    await stopping
