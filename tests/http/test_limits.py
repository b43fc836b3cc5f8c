"""Rates and numbers: who has asked too often, and for too much at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import Caller, ChannelIdentity, HttpLimits, RateLimit
from frontdesk.asgi.messages import error_headers
from frontdesk.errors import TooManyRequestsError
from frontdesk.http.limits import Limiter, limit_findings


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def caller(name: str = "alice") -> Caller:
    return Caller(identity=ChannelIdentity(channel="web", native_id=name))


def limiter(**limits: Any) -> tuple[Limiter, Time]:
    time = Time()
    return Limiter(HttpLimits(**limits), time), time


def takes(one: Limiter, count: int, name: str = "alice") -> int:
    """How many of so many requests are let through."""
    let = 0
    for _ in range(count):
        try:
            one.take(caller(name))
        except TooManyRequestsError:
            continue
        let += 1
    return let


class TestRates:
    def test_as_many_as_there_may_be_and_no_more(self) -> None:
        one, time = limiter(per_caller=RateLimit(5, 10))
        assert takes(one, 20) == 5
        time.now += 2
        assert takes(one, 20) == 1
        time.now += 1_000
        assert takes(one, 20) == 5

    def test_a_burst_is_what_may_come_at_once(self) -> None:
        one, time = limiter(per_caller=RateLimit(60, 60, burst=3))
        assert takes(one, 10) == 3
        time.now += 2
        assert takes(one, 10) == 2

    def test_callers_are_counted_each_by_themselves(self) -> None:
        one, _ = limiter(per_caller=RateLimit(2))
        assert [takes(one, 5, name) for name in ("alice", "bob")] == [2, 2]

    def test_the_channel_counts_all_of_them(self) -> None:
        one, _ = limiter(per_channel=RateLimit(3))
        assert [takes(one, 2, name) for name in ("alice", "bob", "carol")] == [2, 1, 0]

    def test_what_the_channel_refuses_does_not_count_for_the_caller(self) -> None:
        one, time = limiter(per_caller=RateLimit(4, 1_000), per_channel=RateLimit(2, 1))
        assert takes(one, 50) == 2
        time.now += 1
        assert takes(one, 50) == 2

    def test_a_refusal_says_when_to_come_back(self) -> None:
        one, _ = limiter(per_caller=RateLimit(2, 3))
        takes(one, 2)
        with pytest.raises(TooManyRequestsError) as caught:
            one.take(caller())
        assert (caught.value.status, caught.value.code, caught.value.retry_after) == (429, "rate_limit_exceeded", 1.5)
        assert dict(error_headers(caught.value)) == {
            b"retry-after": b"2",
            b"x-ratelimit-limit-requests": b"2",
            b"x-ratelimit-remaining-requests": b"0",
            b"x-ratelimit-reset-requests": b"1500ms",
        }

    def test_many_names_take_no_more_room_and_get_no_more(self) -> None:
        one, time = limiter(per_caller=RateLimit(2, 100), max_callers=10)
        let = sum(takes(one, 3, f"attacker-{number}") for number in range(1_000))
        # Ten of their own, and one for all that found no room.
        assert let == 22
        assert len(one._buckets) == 10
        # Coming back under a name that was first does not begin anew.
        assert takes(one, 3, "attacker-0") == 0
        time.now += 100
        assert takes(one, 3, "somebody new") == 2
        assert len(one._buckets) == 10

    @given(st.lists(st.floats(0, 5), max_size=60), st.integers(1, 5), st.floats(0.5, 20), st.integers(1, 5))
    def test_never_more_than_the_rate_and_a_burst(
        self, pauses: list[float], requests: int, per: float, burst: int
    ) -> None:
        one, time = limiter(per_caller=RateLimit(requests, per, burst))
        let = 0
        for pause in pauses:
            time.now += pause
            let += takes(one, 1)
        assert let <= burst + time.now * requests / per + 1e-6

    @given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 2)), max_size=80))
    def test_the_room_is_never_passed(self, visits: list[tuple[int, float]]) -> None:
        one, time = limiter(per_caller=RateLimit(3, 5), max_callers=4)
        for who, pause in visits:
            time.now += pause
            takes(one, 1, str(who))
            assert len(one._buckets) <= 4


class TestAtOnce:
    def test_one_caller_has_so_many_and_gets_them_back(self) -> None:
        one, _ = limiter(max_running_per_caller=2)
        ends = [one.begin(caller()) for _ in range(2)]
        with pytest.raises(TooManyRequestsError) as caught:
            one.begin(caller())
        assert (caught.value.code, caught.value.retry_after) == ("too_many_requests", 1)
        one.begin(caller("bob"))()
        ends.pop()()
        ends.append(one.begin(caller()))
        for end in ends:
            end()
        assert not one.answers._running

    def test_all_together_have_so_many(self) -> None:
        one, _ = limiter(max_running=2)
        end = one.begin(caller("alice"))
        one.begin(caller("bob"))
        with pytest.raises(TooManyRequestsError):
            one.begin(caller("carol"))
        end()
        one.begin(caller("carol"))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, []),
        (HttpLimits(), []),
        (HttpLimits(per_caller=RateLimit(0)), ["limits: per_caller: requests must be at least 1"]),
        (HttpLimits(per_channel=RateLimit(1, 0)), ["limits: per_channel: per_seconds must be positive"]),
        (HttpLimits(per_caller=RateLimit(1, burst=0)), ["limits: per_caller: burst must be at least 1"]),
        (HttpLimits(max_running=0), ["limits: max_running must be at least 1"]),
        (HttpLimits(max_running_per_caller=-1), ["limits: max_running_per_caller must be at least 1"]),
        (HttpLimits(max_callers=0), ["limits: max_callers must be at least 1"]),
        (RateLimit(5), ["limits: RateLimit(requests=5, per_seconds=60.0, burst=None) is not Limits(...)"]),
    ],
)
def test_what_is_wrong_is_found_at_build(given: Any, found: list[str]) -> None:
    assert limit_findings(given) == found
