"""The work of one connection: in order within a lane, side by side between lanes, and never much at once."""

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import TooManyRequestsError
from frontdesk.http.sockets import MAX_LANES, MAX_WAITING, Lanes, SocketGoneError
from tests.scenarios.desk import until


class Bench:
    """Notes what is worked on, and holds it up until it is told to go on."""

    def __init__(self, *, held: bool = False) -> None:
        self.done: list[tuple[str | None, bytes]] = []
        self.broken: list[str | None] = []
        self.go_on = asyncio.Event()
        if not held:
            self.go_on.set()

    async def work(self, lane: str | None, message: bytes) -> None:
        await self.go_on.wait()
        if message == b"gone":
            raise SocketGoneError
        if message == b"break":
            raise RuntimeError("no")
        self.done.append((lane, message))

    async def break_off(self, lane: str | None) -> None:
        self.broken.append(lane)

    def lanes(self, most_bytes: int = 1_000) -> Lanes:
        return Lanes(self.work, self.break_off, most_bytes=most_bytes)


async def _idle(lanes: Lanes) -> None:
    await until(lambda: not lanes.busy)


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.binary(max_size=3)), max_size=20))
def test_each_lane_keeps_its_order_and_nothing_is_lost(messages: list[tuple[str | None, bytes]]) -> None:
    async def play() -> list[tuple[str | None, bytes]]:
        bench = Bench()
        lanes = bench.lanes()
        for lane, message in messages:
            lanes.add(lane, message)
        await _idle(lanes)
        return bench.done

    done = asyncio.run(play())
    for lane in (None, "a", "b"):
        assert [one for one in done if one[0] == lane] == [one for one in messages if one[0] == lane]


async def test_a_lane_that_is_held_up_does_not_hold_up_another() -> None:
    bench = Bench(held=True)
    lanes = bench.lanes()
    lanes.add("a", b"1")
    assert lanes.works("a")
    assert not lanes.works("b")
    bench.go_on.set()
    lanes.add("b", b"2")
    await _idle(lanes)
    assert sorted(bench.done, key=str) == [("a", b"1"), ("b", b"2")]
    assert not lanes.works("a")


async def test_what_waits_is_bounded_in_number_and_in_size() -> None:
    bench = Bench(held=True)
    lanes = bench.lanes()
    lanes.add(None, b"first")
    await asyncio.sleep(0)
    for _ in range(MAX_WAITING):
        lanes.add(None, b"x")
    with pytest.raises(TooManyRequestsError):
        lanes.add(None, b"x")
    with pytest.raises(TooManyRequestsError):
        lanes.add("other", b"x")
    await lanes.stop()
    small = bench.lanes(most_bytes=10)
    small.add(None, b"x" * 10)
    await asyncio.sleep(0)
    small.add(None, b"x" * 6)
    with pytest.raises(TooManyRequestsError):
        small.add(None, b"x" * 5)
    small.add(None, b"x" * 4)
    await small.stop()
    assert bench.done == []


async def test_lanes_are_bounded_in_number_and_free_again_when_they_end() -> None:
    bench = Bench(held=True)
    lanes = bench.lanes()
    for lane in range(MAX_LANES):
        lanes.add(str(lane), b"x")
    with pytest.raises(TooManyRequestsError):
        lanes.add("one more", b"x")
    bench.go_on.set()
    await _idle(lanes)
    lanes.add("one more", b"x")
    await _idle(lanes)
    assert len(bench.done) == MAX_LANES + 1


async def test_what_nobody_foresaw_is_told_and_the_lane_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    lanes = bench.lanes()
    for message in (b"break", b"after"):
        lanes.add("a", message)
    await _idle(lanes)
    assert (bench.broken, bench.done) == (["a"], [("a", b"after")])
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_a_lane_ends_with_its_client_and_stopping_ends_all() -> None:
    bench = Bench()
    lanes = bench.lanes()
    for message in (b"gone", b"never"):
        lanes.add("a", message)
    await _idle(lanes)
    assert (bench.broken, bench.done) == ([], [])
    bench.go_on.clear()
    lanes.add("a", b"held")
    await asyncio.sleep(0)
    await lanes.stop()
    assert (lanes.busy, bench.done) == (False, [])
