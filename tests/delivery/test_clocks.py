"""The clock of the machine is set ahead and back while answers wait for their platform."""

import pytest

from frontdesk.admin.deliveries import Deliveries
from frontdesk.delivery.limits import Ages, Waits, pause
from frontdesk.errors import PushError, PushLimitedError, PushUnknownError
from frontdesk.interfaces.chat import PushTerms
from frontdesk.interfaces.runner import RetryPolicy
from frontdesk.models.delivery import ANEW, Attempt, Delivery
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.clock import FakeClock
from tests.delivery.conftest import MakeDesk
from tests.delivery.scripted import TERMS, OutboxWorld, ScriptedChannel

DAY = 86_400.0
AHEAD = 21 * 3600.0
"""Not long enough to be too old."""
LONGEST = TERMS.retry.longest_delay
DOWN = PushError(code="down")


async def list_waiting(desk: OutboxWorld) -> list[str]:
    """The places that a look finds."""
    return [place async for _, place in desk.outbox.list_waiting()]


async def fail_next(desk: OutboxWorld, place: str = "ann") -> float:
    """Have the next try fail; return the pause that follows."""
    desk.channel.answer(place, DOWN)
    wait = await desk.drain(place)
    assert wait is not None
    return wait


async def test_a_retry_that_was_scheduled_while_the_clock_was_ahead_waited_for_hours(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 1))
    desk.clock.jump(AHEAD)
    wait = await fail_next(desk)
    desk.clock.jump(-AHEAD)
    assert await desk.drain() == pytest.approx(wait, abs=0.001)
    desk.clock.advance(wait)
    assert await desk.drain() is None
    assert await desk.status("a0") == ("accepted", None)


async def test_a_retry_that_was_scheduled_ahead_waited_for_hours_over_a_restart(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 1))
    desk.clock.jump(AHEAD)
    wait = await fail_next(desk)
    desk.restart()
    desk.clock.jump(-AHEAD)
    assert await list_waiting(desk) == ["ann"]
    # The whole pause once more: how much of it is over, nobody knows.
    assert await desk.drain() == pytest.approx(wait, abs=0.001)
    desk.clock.advance(wait)
    assert await desk.drain() is None
    assert await desk.status("a0") == ("accepted", None)


async def test_later_answers_waited_behind_one_that_was_scheduled_ahead(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 1))
    desk.clock.jump(AHEAD)
    await fail_next(desk)
    desk.clock.jump(-AHEAD)
    await desk.add(*desk.answer("b", 2))
    desk.clock.advance(LONGEST)
    assert await desk.drain() is None
    assert desk.channel.texts() == ["text a0", "text a0", "text b0", "text b1"]


async def test_an_answer_that_was_made_while_the_clock_was_ahead_waited_for_hours(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.clock.jump(AHEAD)
    await desk.add(*desk.answer("a", 1))
    desk.clock.jump(-AHEAD)
    desk.restart()
    assert await list_waiting(desk) == ["ann"]
    assert await desk.drain() is None
    assert await desk.status("a0") == ("accepted", None)


async def test_a_part_in_doubt_waited_for_hours(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(idempotent=True))
    desk.channel.answer("ann", PushUnknownError(code="silence"))
    await desk.add(*desk.answer("a", 1))
    desk.clock.jump(AHEAD)
    wait = await desk.drain()
    assert wait is not None
    desk.clock.jump(-AHEAD)
    desk.clock.advance(wait)
    assert await desk.drain() is None
    assert await desk.status("a0") == ("accepted", None)


async def test_a_clock_that_jumped_ahead_used_up_the_attempts(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 1))
    wait = await fail_next(desk)
    for _ in range(3):
        desk.clock.jump(AHEAD)
        assert await desk.drain() == pytest.approx(wait, abs=0.001)
    assert len(desk.channel.sent) == 1


@pytest.mark.parametrize("back", [True, False], ids=["and back", "for good"])
async def test_a_jump_of_two_days_made_what_waited_too_old(make_desk: MakeDesk, back: bool) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 1), *desk.answer("b", 1, place="ben"))
    wait = await fail_next(desk)
    desk.clock.jump(2 * DAY)
    await fail_next(desk, "ben")
    desk.clock.advance(wait)
    wait = await fail_next(desk)
    if back:
        desk.clock.jump(-2 * DAY)
    desk.clock.advance(LONGEST)
    for place in ("ann", "ben"):
        assert await desk.drain(place) is None
    assert dict(await desk.store.outbox.counts()) == {"accepted": 2}


async def test_what_was_left_behind_is_too_old_for_a_host_that_starts(make_desk: MakeDesk) -> None:
    """It can't tell days in which nothing ran from a clock that is wrong."""
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 1), *desk.answer("b", 1, place="ben"))
    await fail_next(desk)
    desk.clock.jump(2 * DAY)
    desk.restart()
    assert await desk.drain() is None
    assert await desk.status("a0") == ("dead", "too old")
    # Once it sees that its clock was wrong, it believes nothing of before.
    desk.clock.jump(DAY)
    assert await desk.drain("ben") is None
    assert await desk.status("b0") == ("accepted", None)


async def test_a_wait_that_the_platform_asked_for_is_obeyed_when_the_clock_is_set_back(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", PushLimitedError(retry_after=60))
    await desk.add(*desk.answer("a", 1))
    desk.clock.jump(AHEAD)
    wait = await desk.drain()
    desk.clock.jump(-AHEAD)
    desk.restart()
    assert wait is not None
    assert wait >= 60
    assert await desk.drain() == pytest.approx(wait, abs=0.001)
    desk.clock.advance(wait / 2)
    # It does not begin anew with each look.
    assert await desk.drain() == pytest.approx(wait / 2, abs=0.002)


async def test_a_platform_was_left_alone_for_hours(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(terms=TERMS.replace(failures=1, pause=2.0)))
    await desk.add(*desk.answer("a", 1), *desk.answer("b", 1, place="ben"))
    desk.clock.jump(AHEAD)
    await fail_next(desk)
    desk.clock.jump(-AHEAD)
    assert await desk.drain("ben") == 2.0
    desk.clock.advance(2.0)
    assert "ben" in await list_waiting(desk)
    assert await desk.drain("ben") is None


async def test_a_jump_ahead_ended_the_pause_of_a_platform_that_was_down(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(terms=TERMS.replace(failures=1, pause=2.0)))
    await desk.add(*desk.answer("a", 1), *desk.answer("b", 1, place="ben"))
    await fail_next(desk)
    desk.clock.jump(AHEAD)
    assert await desk.drain("ben") == 2.0


async def test_the_limits_of_a_channel_held_it_for_hours(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(terms=TERMS.replace(per_second=1.0, per_destination=1.0)))
    await desk.add(*desk.answer("a", 1))
    desk.clock.jump(AHEAD)
    assert await desk.drain() is None
    desk.clock.jump(-AHEAD)
    await desk.add(*desk.answer("b", 1))
    assert await desk.drain() == 1.0
    desk.clock.advance(1.0)
    assert await desk.drain() is None


async def test_the_age_of_a_part_is_counted_over_restarts_and_jumps(make_desk: MakeDesk) -> None:
    retry = RetryPolicy(attempts=1000, first_delay=8.0, longest_delay=8.0)
    desk = make_desk(ScriptedChannel(terms=PushTerms(retry=retry, failures=1000, longest_age=100.0)))
    desk.channel.answer("ann", *(DOWN for _ in range(100)))
    await desk.add(*desk.answer("a", 1))
    began = desk.clock.steady()
    while (wait := await desk.drain()) is not None:
        desk.clock.advance(wait)
        await desk.drain()
        desk.restart()
        desk.clock.jump(DAY)
    assert await desk.status("a0") == ("dead", "down: too old")
    assert desk.clock.steady() - began >= 92


async def test_a_part_that_somebody_wants_tried_again_has_its_whole_age_before_it(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", DOWN)
    await desk.add(*desk.answer("a", 1))
    wait = await fail_next(desk)
    desk.clock.advance(DAY + wait)
    assert await desk.drain() is None
    assert (await desk.status("a0"))[0] == "dead"
    await Deliveries(desk.store, desk.clock).retry("a0")
    assert await desk.drain() is not None
    assert await desk.status("a0") == ("pending", "down")


def test_what_has_passed_is_never_more_than_either_clock_says() -> None:
    clock, row = FakeClock(1000.0), _row()
    ages = Ages(clock, shared=False)

    def since(at: float) -> float:
        return ages.of(row.replace(created_at=at), None)

    clock.advance(10)
    assert (since(1000.0), since(1004.0), since(2000.0)) == (10.0, 6.0, 0.0)
    clock.jump(0.5)
    assert since(1000.0) == 10.0
    # What lies before is believed, until the clock is set.
    assert since(400.0) == 610.0
    clock.jump(500)
    assert since(400.0) == 0.0
    assert since(1000.0) == 0.0
    clock.advance(3)
    clock.jump(-500)
    assert since(1000.0) == 0.0
    clock.advance(4)
    assert since(1000.0) == 4.0


def test_a_part_that_another_process_has_added_by_a_wrong_clock_is_not_older_than_this_process() -> None:
    """Seed 3702 of the judge: the clock was a day back for a moment in which this process did not look at it."""
    clock = FakeClock(DAY)
    ages = Ages(clock, shared=True)
    ages.newest_at_start = 7
    clock.advance(10)
    row = _row().replace(created_at=8.0)
    assert ages.of(row.replace(number=8), None) == 0.0
    assert ages.of(row.replace(number=7), None) == DAY + 2.0


def test_a_part_that_was_queued_by_a_wrong_clock_and_tried_by_the_right_one_is_not_old_after_a_restart() -> None:
    """Seed 3730 of the judge: the clock was a day back when an answer was queued, and right when it was tried."""
    clock = FakeClock(DAY)
    ages = Ages(clock, shared=False)
    clock.advance(2)
    tried = Attempt(at=DAY - 5.0, code="down", waited=3.0)
    assert ages.of(_row().replace(created_at=8.0, history=(tried,)), None) == 10.0


@pytest.mark.parametrize(("known_since", "waited"), [(None, 0.0), (-5.0, 10.0), (4.0, 6.0)])
def test_what_others_write_counts_from_when_it_is_known(known_since: float | None, waited: float) -> None:
    clock = FakeClock(1000.0)
    ages = Ages(clock, shared=True)
    clock.advance(10)
    assert ages.of(_row().replace(created_at=1000.0), known_since) == waited


@pytest.mark.parametrize(
    ("history", "waited"),
    [
        ((), 5.0),
        ((Attempt(at=1002.0, code="down", waited=70.0),), 73.0),
        # An older version counts nothing.
        ((Attempt(at=1001.0, code="down", waited=70.0), Attempt(at=1002.0, code="down")), 74.0),
        ((Attempt(at=1001.0, code="down", waited=70.0), Attempt(at=1002.0, code=ANEW)), 5.0),
    ],
)
def test_how_long_a_part_has_waited(history: tuple[Attempt, ...], waited: float) -> None:
    clock = FakeClock(1000.0)
    ages = Ages(clock, shared=False)
    clock.advance(5.0)
    assert ages.of(_row().replace(history=history, queued_at=1000.0), None) == waited


@pytest.mark.parametrize(
    ("due_at", "tried_at", "left"),
    [(990.0, 980.0, 0.0), (1005.0, 1000.0, 5.0), (1005.0, 998.0, 5.0), (2005.0, 2000.0, 5.0), (2000.0, 2000.0, 0.0)],
)
def test_a_pause_is_never_longer_than_it_was_when_it_began(due_at: float, tried_at: float, left: float) -> None:
    assert pause(_row().replace(due_at=due_at, created_at=tried_at), 1000.0) == left
    history = (Attempt(at=0.0, code="down"), Attempt(at=tried_at, code="down"))
    assert pause(_row().replace(due_at=due_at, history=history), 1000.0) == left


def test_what_is_noted_counts_for_a_part_as_it_was() -> None:
    clock, row = FakeClock(), _row()
    waits = Waits(clock, most=2)
    clock.advance(3.0)
    waits.begin(row, 7.0)
    assert (waits.until(row), waits.since(row)) == (7.0, 3.0)
    for other in (row.replace(fence=1), row.replace(delivery_id="other"), row.replace(queue="elsewhere")):
        assert (waits.until(other), waits.since(other)) == (None, None)
    for place in ("one", "two"):
        waits.begin(row.replace(queue=place), 8.0)
    assert waits.until(row) is None
    waits.end("one")
    assert waits.until(row.replace(queue="one")) is None
    assert waits.until(row.replace(queue="two")) == 8.0


def _row() -> Delivery:
    return OutboxWorld(InMemoryStateStore(), ScriptedChannel()).row("a0")
