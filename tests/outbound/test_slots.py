"""Slots are shared by callers: one has no more than their share, and gives back what they had."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import TooManyRequestsError
from frontdesk.outbound.client import MAX_WAITING, Slots
from tests.scenarios.desk import until


class Work:
    """Pieces of work that hold slots until they are let go."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.running: list[str] = []

    async def do(self, caller: str, go_on: asyncio.Event) -> None:
        async with self.slots.hold(caller):
            self.running.append(caller)
            try:
                await go_on.wait()
            finally:
                self.running.remove(caller)


async def _steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_one_caller_leaves_room_for_another() -> None:
    work, go_on = Work(Slots(4, most_each=3)), asyncio.Event()
    tasks = [asyncio.create_task(work.do("mallory", go_on)) for _ in range(10)]
    await _steps(5)
    tasks += [asyncio.create_task(work.do(name, go_on)) for name in ("bob", "eve")]
    await _steps(5)
    assert work.running == ["mallory"] * 3 + ["bob"]
    go_on.set()
    await asyncio.gather(*tasks)
    assert not work.slots._shares


async def test_too_much_that_waits_is_refused_at_once() -> None:
    work, go_on = Work(Slots(4, most_each=1)), asyncio.Event()
    tasks = [asyncio.create_task(work.do("mallory", go_on)) for _ in range(1 + MAX_WAITING)]
    await _steps(5)
    with pytest.raises(TooManyRequestsError) as caught:
        await work.do("mallory", go_on)
    assert caught.value.retry_after
    go_on.set()
    await work.do("bob", go_on)
    await asyncio.gather(*tasks)


async def test_a_share_lasts_as_long_as_what_can_t_be_cancelled() -> None:
    slots, ends = Slots(4, most_each=1), asyncio.Event()

    async def stubborn() -> None:
        await ends.wait()

    lasting = asyncio.create_task(stubborn())
    async with slots.hold("mallory") as slot:
        slot.lasts(lasting)
    waiting = asyncio.create_task(Work(slots).do("mallory", ends))
    async with slots.hold("bob"):
        await _steps(5)
    assert not waiting.done()
    ends.set()
    await waiting
    assert not slots._shares


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["run", "end", "cancel"])), max_size=40))
def test_whatever_happens_all_slots_come_back(steps: list[tuple[str, str]]) -> None:
    asyncio.run(_check(steps))


async def _check(steps: list[tuple[str, str]]) -> None:
    work = Work(Slots(3, most_each=2))
    open_: list[tuple[str, asyncio.Task[None], asyncio.Event]] = []
    for caller, act in steps:
        mine = [one for one in open_ if one[0] == caller]
        if act == "run" or not mine:
            go_on = asyncio.Event()
            open_.append((caller, asyncio.create_task(work.do(caller, go_on)), go_on))
        elif act == "end":
            mine[0][2].set()
        else:
            mine[-1][1].cancel()
        await asyncio.sleep(0)
        assert len(work.running) <= 3
        assert all(work.running.count(one) <= 2 for one in "abc")
    for _, _, go_on in open_:
        go_on.set()
    await asyncio.gather(*(task for _, task, _ in open_), return_exceptions=True)
    assert not work.slots._shares
    fresh = asyncio.Event()
    tasks = [asyncio.create_task(work.do(caller, fresh)) for caller in "aabb"]
    await until(lambda: len(work.running) == 3)
    fresh.set()
    await asyncio.gather(*tasks)
