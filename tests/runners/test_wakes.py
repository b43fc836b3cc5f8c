"""Calls are made one at a time for each id, within the room of a name, and no more are known than may be."""

import asyncio
from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.clock import SystemClock
from frontdesk.runners.wakes import Failed, Wake, Wakes
from tests.examples import examples
from tests.scenarios.desk import until


def wake(task_id: str, name: str = "n") -> Wake:
    return Wake(name, task_id, {})


def quiet() -> None:
    """Nobody wants to know."""


async def test_there_is_an_end_to_what_is_known_and_room_is_told_of() -> None:
    gate, freed = asyncio.Event(), asyncio.Event()

    async def call(one: Wake, failures: int) -> float | None:
        await gate.wait()
        return None

    wakes = Wakes(call, SystemClock(), most=4, freed=freed.set)
    wakes.evict_oldest("n", 2)
    assert [wakes.wake(wake(str(number))) for number in range(6)] == [True] * 4 + [False] * 2
    assert wakes.wake(wake("0"))
    assert len(wakes) == 4
    assert not freed.is_set()
    gate.set()
    await freed.wait()
    await wakes.drain(1.0)


async def test_what_is_timed_is_called_when_its_time_has_come() -> None:
    called: list[str] = []
    last = asyncio.Event()

    async def call(one: Wake, failures: int) -> float | None:
        called.append(one.task_id)
        if one.task_id == "last":
            last.set()
        return None

    clock = SystemClock()
    wakes = Wakes(call, clock, most=10, freed=quiet)
    wakes.evict_oldest("n", 1)
    now = clock.now()
    wakes.wake(wake("last"), now + 0.06)
    wakes.wake(wake("second"), now + 0.03)
    wakes.wake(wake("never"), now + 3600)
    wakes.wake(wake("last"), now + 3600)
    wakes.wake(wake("first"))
    await last.wait()
    assert called == ["first", "second", "last"]
    assert await wakes.drain(0) == []


async def test_failures_in_a_row_are_counted() -> None:
    told: list[int] = []
    done = asyncio.Event()

    async def call(one: Wake, failures: int) -> float | None:
        told.append(failures)
        if len(told) in (1, 2):
            raise Failed(0.0)
        if len(told) == 5:
            done.set()
            return None
        return 0.0

    wakes = Wakes(call, SystemClock(), most=10, freed=quiet)
    wakes.evict_oldest("n", 1)
    wakes.wake(wake("a"))
    await done.wait()
    assert told == [0, 1, 2, 0, 0]


async def test_a_drain_tells_what_was_cut_off_and_what_never_ran() -> None:
    started = asyncio.Event()

    async def call(one: Wake, failures: int) -> float | None:
        started.set()
        await asyncio.Event().wait()
        return None

    wakes = Wakes(call, SystemClock(), most=10, freed=quiet)
    wakes.evict_oldest("n", 1)
    for task_id in ("runs", "waits"):
        wakes.wake(wake(task_id))
    wakes.wake(wake("later"), 4e9)
    await started.wait()
    assert sorted(one.task_id for one in await wakes.drain(0)) == ["runs", "waits"]
    assert len(wakes) == 0


@examples(60)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=40), st.integers(1, 3))
def test_no_wake_up_is_lost_and_no_id_runs_twice_at_once(woken: list[tuple[str, bool]], remaining: int) -> None:
    asyncio.run(_check(woken, remaining))


async def _check(woken: list[tuple[str, bool]], remaining: int) -> None:
    """Every wake-up is followed by the beginning of a call of its id."""
    pending: dict[str, bool] = defaultdict(bool)
    active: Counter[str] = Counter()

    async def call(one: Wake, failures: int) -> float | None:
        pending[one.task_id] = False
        active[one.task_id] += 1
        assert active[one.task_id] == 1
        assert sum(active.values()) <= remaining
        await asyncio.sleep(0)
        active[one.task_id] -= 1
        return None

    wakes = Wakes(call, SystemClock(), most=100, freed=quiet)
    wakes.evict_oldest("n", remaining)
    for task_id, pause in woken:
        pending[task_id] = True
        assert wakes.wake(wake(task_id))
        if pause:
            await asyncio.sleep(0)
    await until(lambda: len(wakes) == 0)
    assert not any(pending.values())
