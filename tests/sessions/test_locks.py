"""One turn at a time, in order of arrival; whoever gives up waiting takes nothing along."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import SessionBusyError
from frontdesk.sessions.turns import SessionLocks


async def settle() -> None:
    """Lets every task go on as far as it can by itself."""
    for _ in range(6):
        await asyncio.sleep(0)


async def test_a_free_lock_is_taken_at_once() -> None:
    locks = SessionLocks()
    assert not locks.held("a")
    await locks.take("a", 0)
    assert locks.held("a")
    assert not locks.try_take("a")
    assert locks.try_take("b")
    locks.release("a")
    assert not locks.held("a")
    assert locks.held("b")


async def test_whoever_came_first_is_served_first() -> None:
    locks, served = SessionLocks(), []

    async def wait(number: int) -> None:
        await locks.take("a", None)
        served.append(number)
        await asyncio.sleep(0)
        locks.release("a")

    assert locks.try_take("a")
    tasks = [asyncio.create_task(wait(number)) for number in range(20)]
    await settle()
    assert served == []
    locks.release("a")
    await asyncio.gather(*tasks)
    assert served == list(range(20))
    assert not locks.held("a")


async def test_a_newcomer_does_not_pass_those_who_wait() -> None:
    locks = SessionLocks()
    locks.try_take("a")
    waiting = asyncio.create_task(locks.take("a", None))
    await settle()
    locks.release("a")
    # The lock is the waiter's already, although it has not run yet.
    assert not locks.try_take("a")
    await waiting


async def test_waiting_has_an_end() -> None:
    locks = SessionLocks()
    locks.try_take("a")
    with pytest.raises(SessionBusyError) as caught:
        await locks.take("a", 0)
    assert caught.value.retry_after == 1.0
    locks.release("a")
    assert not locks.held("a")


@pytest.mark.parametrize("others", [0, 1, 3])
async def test_a_waiter_that_is_cancelled_as_the_lock_is_released_loses_nothing(others: int) -> None:
    for cancel_first in (True, False):
        locks = SessionLocks()
        locks.try_take("a")
        first = asyncio.create_task(locks.take("a", None))
        rest = [asyncio.create_task(locks.take("a", None)) for _ in range(others)]
        await settle()
        for step in (first.cancel, lambda locks=locks: locks.release("a"))[:: 1 if cancel_first else -1]:
            step()
        with pytest.raises(asyncio.CancelledError):
            await first
        for waiter in rest:
            await waiter
            locks.release("a")
        assert not locks.held("a")


async def test_a_waiter_whose_time_is_up_as_the_lock_is_released_loses_nothing() -> None:
    locks = SessionLocks()
    locks.try_take("a")
    waiting = asyncio.create_task(locks.take("a", 0))
    while not waiting.done():
        await asyncio.sleep(0)
        if locks.held("a"):
            locks.release("a")
    outcome = waiting.exception()
    assert outcome is None or isinstance(outcome, SessionBusyError)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.sampled_from([None, 0])),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("release"), st.none()),
        st.tuples(st.just("tick"), st.none()),
    ),
    max_size=30,
)


@given(steps)
def test_in_no_order_of_events_is_the_lock_lost_or_held_twice(program: list[tuple[str, int | None]]) -> None:
    asyncio.run(play(program))


async def play(program: list[tuple[str, int | None]]) -> None:
    locks, table = SessionLocks(), Table()
    for step, value in program:
        if step == "arrive":
            table.tasks.append(asyncio.create_task(table.arrive(locks, len(table.tasks), value)))
        elif step == "cancel" and value is not None and value < len(table.tasks):
            table.tasks[value].cancel()
        elif step == "release" and table.holder is not None:
            table.leave(locks)
        elif step == "tick":
            await asyncio.sleep(0)
    for _ in range(len(table.tasks) + 2):
        await settle()
        if table.holder is not None:
            table.leave(locks)
    outcomes = await asyncio.wait_for(asyncio.gather(*table.tasks, return_exceptions=True), 60)
    assert {type(one) for one in outcomes} <= {type(None), SessionBusyError, asyncio.CancelledError}
    assert table.served == sorted(table.served)
    assert not locks.held("a")


class Table:
    """Who holds the lock, and who held it before."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.holder: int | None = None
        self.served: list[int] = []

    async def arrive(self, locks: SessionLocks, number: int, wait: float | None) -> None:
        await locks.take("a", wait)
        assert self.holder is None
        self.holder = number
        self.served.append(number)

    def leave(self, locks: SessionLocks) -> None:
        self.holder = None
        locks.release("a")
