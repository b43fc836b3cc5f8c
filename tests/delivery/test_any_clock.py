"""Whatever the clock of the machine is set to: a part is tried in time, and given up after its time."""

import asyncio
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import PushError
from frontdesk.interfaces.chat import PushPart, PushTerms
from frontdesk.interfaces.runner import RetryPolicy
from frontdesk.stores.memory.store import InMemoryStateStore
from tests.delivery.scripted import OutboxWorld, ScriptedChannel

LONGEST_DELAY = 8.0
LONGEST_AGE = 100.0
SWEEP = 2.0
TERMS = PushTerms(
    retry=RetryPolicy(attempts=1000, first_delay=1.0, longest_delay=LONGEST_DELAY),
    failures=1000,
    longest_age=LONGEST_AGE,
)
NOTICED = 1.0
"""A jump that is smaller is not told from a clock that is corrected."""

Jump = tuple[float, float]
"""After how many seconds the clock is set, and by how many."""
sizes = st.floats(-1e6, 1e6) | st.sampled_from([-86_400.0, -10.0, -5.0, 5.0, 86_400.0, 172_800.0])
jumps = st.lists(st.tuples(st.floats(0.0, 20.0), sizes), max_size=12)


class Down(ScriptedChannel):
    """A platform that is down, and notes when it was tried."""

    def __init__(self, terms: PushTerms = TERMS) -> None:
        super().__init__(terms=terms)
        self.tried: list[float] = []
        self.desk = OutboxWorld(InMemoryStateStore(), self)

    async def push_part(self, part: PushPart) -> str | None:
        self.tried.append(self.desk.clock.steady())
        raise PushError(code="down")


async def play(channel: Down, jumps: list[Jump]) -> None:
    """Do as a runner does: come back when it was asked for, while the clock is set again and again."""
    desk, coming = channel.desk, iter(jumps)
    await desk.add(*desk.answer("a", 1))
    after, by = next(coming, (float("inf"), 0.0))
    while (at := await desk.outbox.drain("chat", "ann")) is not None:
        left = at - desk.clock.now()
        while after <= left:
            left -= after
            desk.clock.advance(after)
            desk.clock.jump(by)
            after, by = next(coming, (float("inf"), 0.0))
        after -= left
        # What is read and what is added are rounded, and the runner is never early.
        desk.clock.advance(left + 0.001)


def sum_unnoticed(jumps: list[Jump]) -> float:
    return sum(abs(by) for _, by in jumps if abs(by) <= NOTICED)


@given(jumps=jumps)
def test_a_part_is_tried_in_time_and_given_up_after_its_time(jumps: list[Jump]) -> None:
    channel = Down()
    asyncio.run(play(channel, jumps))
    pairs: Iterator[tuple[float, float]] = zip(channel.tried, channel.tried[1:], strict=False)
    assert all(later - earlier <= LONGEST_DELAY + 0.01 for earlier, later in pairs)
    # It is given up when the next try would be too late.
    assert channel.tried[-1] >= LONGEST_AGE - LONGEST_DELAY - sum_unnoticed(jumps)
    spent = sum(after for after, _ in jumps)
    assert channel.tried[-1] <= LONGEST_AGE + spent + LONGEST_DELAY


@given(before=jumps, last=sizes)
def test_after_a_restart_a_part_is_tried_in_time_by_a_clock_that_runs(before: list[Jump], last: float) -> None:
    # A host that starts believes its clock about what is too old.
    channel = Down(TERMS.replace(longest_age=1e9))
    asyncio.run(restart(channel, before, last))


async def restart(channel: Down, before: list[Jump], last: float) -> None:
    desk = channel.desk
    await desk.add(*desk.answer("a", 1))
    for after, by in before:
        await desk.outbox.drain("chat", "ann")
        desk.clock.advance(after)
        desk.clock.jump(by)
    await desk.outbox.drain("chat", "ann")
    desk.clock.jump(last)
    desk.restart()
    began, tries, at = desk.clock.steady(), len(channel.tried), None
    while len(channel.tried) == tries:
        assert desk.clock.steady() - began <= LONGEST_DELAY + SWEEP
        # The runner looks now and then, and what it has found once has its own time from then on.
        if at is not None or [place async for _, place in desk.outbox.list_waiting()]:
            at = await desk.outbox.drain("chat", "ann")
        desk.clock.advance(SWEEP if at is None else at - desk.clock.now() + 0.001)
