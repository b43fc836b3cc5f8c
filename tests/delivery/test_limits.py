"""How fast a channel is pushed, and how it is left alone."""

from bisect import insort
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.delivery.limits import Circuit, SendLimits
from frontdesk.models.operations import RateLimit


def list_allowed(limits: SendLimits, places: str, now: float) -> list[str]:
    """Which of the places may be pushed now."""
    return [place for place in places if limits.enter(place, now) <= now]


def test_without_limits_everything_goes() -> None:
    assert list_allowed(SendLimits(None, None), "aabb", 0.0) == ["a", "a", "b", "b"]


def test_a_destination_waits_and_no_other_does() -> None:
    limits = SendLimits(None, 2.0)
    assert list_allowed(limits, "aabac", 10.0) == ["a", "b", "c"]
    assert limits.enter("a", 10.0) == 10.5
    assert list_allowed(limits, "ab", 10.5) == ["a", "b"]


def test_a_channel_waits_as_a_whole_and_everybody_has_a_turn() -> None:
    limits = SendLimits(4.0, None)
    assert [limits.enter(place, 10.0) for place in "abcd"] == [10.0, 10.25, 10.5, 10.75]
    # Who asks again before it keeps the turn, and who comes later waits behind.
    assert [limits.enter(place, 10.1) for place in "dcbe"] == [10.75, 10.5, 10.25, 11.0]
    assert list_allowed(limits, "dcb", 10.5) == ["c", "b"]
    assert list_allowed(limits, "d", 10.75) == ["d"]


def test_a_destination_that_waits_for_itself_takes_nobodys_turn() -> None:
    limits = SendLimits(1.0, 0.1)
    assert list_allowed(limits, "a", 10.0) == ["a"]
    assert limits.enter("a", 11.0) == 20.0
    assert list_allowed(limits, "b", 11.0) == ["b"]


def test_a_flood_wait_closes_the_channel_until_it_is_over() -> None:
    limits = SendLimits(None, None)
    limits.close(15.0)
    limits.close(12.0)
    assert limits.enter("a", 10.0) == 15.0
    assert list_allowed(limits, "a", 15.0) == ["a"]


def test_it_does_not_remember_everybody() -> None:
    limits = SendLimits(None, 1.0, most=10)
    for number in range(1000):
        limits.enter(str(number), 0.0)
    assert limits.enter("999", 0.0) == 1.0
    assert limits.enter("0", 0.0) == 0.0


@given(
    st.lists(st.tuples(st.floats(0, 100), st.sampled_from("abc")), max_size=60), st.floats(0.5, 20), st.floats(0.5, 20)
)
def test_no_second_sees_more_than_the_limit_and_everybody_comes_to_go(
    asked: list[tuple[float, str]], whole: float, each: float
) -> None:
    limits = SendLimits(whole, each)
    waiting = sorted(asked)
    went: list[tuple[float, str]] = []
    while waiting:
        time, place = waiting.pop(0)
        at = limits.enter(place, time)
        if at <= time:
            went.append((time, place))
        else:
            insort(waiting, (at, place))
    assert sorted(place for _, place in went) == sorted(place for _, place in asked)
    for place in "abc":
        times = [at for at, who in went if who == place]
        assert all(second - first >= 1 / each - 1e-9 for first, second in pairwise(times))
    # One that comes late for its turn may fall together with the next, and never with more.
    times = [at for at, _ in went]
    assert all(third - first >= 1 / whole - 1e-9 for first, third in zip(times, times[2:], strict=False))


def test_a_platform_that_works_is_never_left_alone() -> None:
    circuit = Circuit(3, 2.0, 60.0)
    for second in range(100):
        assert circuit.free_at(second) == second
        circuit.enter()
        assert not circuit.fail(second)
        circuit.enter()
        circuit.succeed()
    assert not circuit.is_open


def test_some_failures_in_a_row_open_it_and_it_says_so_once() -> None:
    circuit = Circuit(3, 2.0, 60.0)
    assert [circuit.fail(10.0) for _ in range(4)] == [False, False, True, False]
    assert circuit.free_at(10.0) == 12.0
    assert circuit.free_at(13.0) == 13.0


def test_after_the_pause_one_goes_first() -> None:
    circuit = Circuit(1, 2.0, 60.0)
    circuit.fail(10.0)
    assert circuit.free_at(12.0) == 12.0
    circuit.enter()
    assert circuit.free_at(12.0) > 12.0
    circuit.succeed()
    assert circuit.free_at(12.0) == 12.0


def test_while_it_fails_the_pauses_grow_to_the_longest() -> None:
    circuit, now, pauses = Circuit(1, 2.0, 10.0), 0.0, list[float]()
    circuit.fail(now)
    for _ in range(5):
        pauses.append(circuit.free_at(now) - now)
        now = circuit.free_at(now)
        circuit.enter()
        circuit.fail(now)
    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0]
    circuit.enter()
    circuit.succeed()
    circuit.fail(now)
    assert circuit.free_at(now) == now + 2.0


def test_one_that_says_nothing_about_the_platform_lets_another_go_first() -> None:
    circuit = Circuit(1, 2.0, 60.0)
    circuit.fail(10.0)
    circuit.enter()
    circuit.leave()
    assert circuit.free_at(12.0) == 12.0
    assert circuit.is_open


WINDOWS = (RateLimit(2, per_seconds=1.0), RateLimit(5, per_seconds=10.0))


def test_several_windows_of_a_destination_all_count() -> None:
    limits = SendLimits(None, None, windows=WINDOWS)
    assert list_allowed(limits, "aaab", 0.0) == ["a", "a", "b"]
    assert 1.0 <= limits.enter("a", 0.0) < 1.1
    assert list_allowed(limits, "aaa", 1.1) == ["a", "a"]
    assert list_allowed(limits, "aaa", 3.0) == ["a"]
    # The second window is full until its first slot has left it.
    assert 10.0 <= limits.enter("a", 5.0) < 11.0


def test_destinations_share_the_windows_of_their_key() -> None:
    limits = SendLimits(None, None, key_windows=(RateLimit(2, per_seconds=1.0),))
    sent = [(place, key) for place, key in ("a1", "b1", "c1", "d2") if limits.enter(place, 0.0, "direct", key) <= 0.0]
    assert sent == [("a", "1"), ("b", "1"), ("d", "2")]


@given(st.lists(st.floats(0.0, 0.4), max_size=60))
def test_no_window_ever_has_more_than_it_may(gaps: list[float]) -> None:
    limits, now, sent = SendLimits(None, None, windows=WINDOWS), 100.0, list[float]()
    for gap in gaps:
        now += gap
        if limits.enter("a", now) <= now:
            sent.append(now)
    for window in WINDOWS:
        for start in sent:
            assert sum(start <= at < start + window.per_seconds for at in sent) <= window.requests


def test_a_destination_that_waits_is_free_when_it_was_said_to_be() -> None:
    limits, now = SendLimits(None, None, windows=WINDOWS), 0.0
    for _ in range(40):
        free_at = limits.enter("a", now)
        if free_at > now:
            now = free_at
            assert limits.enter("a", now) == now
