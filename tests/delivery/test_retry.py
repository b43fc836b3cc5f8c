"""What follows from a failed push, as a table and as rules that no input breaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.delivery.destination_drain import Dead, Next, Retry, Unknown, after_unknown, decide, delay, spread
from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.interfaces.runner import RetryPolicy

POLICY = RetryPolicy(attempts=3, first_delay=1.0, factor=2.0, longest_delay=5.0)

TABLE: dict[str, tuple[PushError, int, Next]] = {
    "the first failure": (PushError(code="down"), 1, Retry(after=1.0)),
    "the second waits longer": (PushError(code="down"), 2, Retry(after=2.0)),
    "the last": (PushError(code="down"), 3, Dead(reason="down: 3 attempts")),
    "blocked": (PushRefusedError(code="blocked"), 1, Dead(reason="blocked")),
    "blocked, whatever it says about waiting": (PushRefusedError(code="x", retry_after=1), 1, Dead(reason="x")),
    "no answer": (PushUnknownError(), 1, Unknown()),
    "no answer to the last": (PushUnknownError(), 3, Unknown()),
    "wait": (PushLimitedError(code="flood", retry_after=7), 1, Retry(after=7.1, counts=False)),
    "wait longer than we ever would": (PushLimitedError(retry_after=400), 1, Retry(after=400.1, counts=False)),
    "wait, after many": (PushLimitedError(retry_after=7), 99, Retry(after=7.1, counts=False)),
    "wait, on an error of the server": (PushError(code="503", retry_after=2), 3, Retry(after=2.1, counts=False)),
    "wait no time at all": (PushLimitedError(retry_after=-5), 1, Retry(after=0.1, counts=False)),
}


@pytest.mark.parametrize(("error", "attempts", "expected"), TABLE.values(), ids=TABLE.keys())
def test_the_table(error: PushError, attempts: int, expected: Next) -> None:
    assert decide(error, attempts=attempts, policy=POLICY, jitter=1.0) == expected


def test_what_would_come_too_late_is_not_tried_again() -> None:
    late = {"policy": POLICY, "jitter": 1.0, "attempts": 1}
    assert decide(PushError(code="down"), **late, left=0.5) == Dead(reason="down: too old")
    assert decide(PushLimitedError(code="flood", retry_after=60), **late, left=50) == Dead(reason="flood: too old")
    assert decide(PushError(code="down"), **late, left=1.0) == Retry(after=1.0)


@pytest.mark.parametrize(
    ("repeatable", "can_ask", "attempts", "expected"),
    [
        (False, False, 1, "leave"),
        (True, False, 1, "repeat"),
        (False, True, 1, "ask"),
        (True, True, 1, "ask"),
        (True, True, 3, "leave"),
        (True, False, 3, "leave"),
    ],
)
def test_what_is_done_about_a_part_that_may_have_arrived(
    repeatable: bool, can_ask: bool, attempts: int, expected: str
) -> None:
    assert after_unknown(repeatable=repeatable, can_ask=can_ask, attempts=attempts, policy=POLICY) == expected


errors = st.builds(
    PushError,
    retry_after=st.none() | st.floats(0, 1e6),
    permanent=st.booleans(),
    unknown=st.booleans(),
    code=st.sampled_from(["a", "b"]),
)
policies = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 20),
    first_delay=st.floats(0.01, 100),
    factor=st.floats(1, 10),
    longest_delay=st.floats(0.01, 1000),
)


@given(
    error=errors,
    attempts=st.integers(1, 2000),
    policy=policies,
    jitter=st.floats(0, 1),
    age=st.floats(0, 1e7),
)
def test_no_error_is_obeyed_too_little_or_tried_for_ever(
    error: PushError, attempts: int, policy: RetryPolicy, jitter: float, age: float
) -> None:
    found = decide(error, attempts=attempts, policy=policy, jitter=jitter, left=age)
    if error.permanent:
        assert isinstance(found, Dead)
    elif error.unknown:
        assert isinstance(found, Unknown)
    elif isinstance(found, Retry):
        assert 0.0 <= found.after <= age
        assert found.counts == (error.retry_after is None)
        if error.retry_after is not None:
            assert found.after >= error.retry_after
        else:
            assert attempts < policy.attempts
            assert found.after <= policy.longest_delay * 1.001
    else:
        assert isinstance(found, Dead)


@given(policy=policies, attempts=st.integers(1, 5000), first=st.floats(0, 1), second=st.floats(0, 1))
def test_a_delay_is_between_half_of_the_policys_and_all_of_it(
    policy: RetryPolicy, attempts: int, first: float, second: float
) -> None:
    low, high = sorted((first, second))
    assert policy.delay(attempts) / 2 <= delay(policy, attempts, low) <= delay(policy, attempts, high)
    assert delay(policy, attempts, high) <= policy.delay(attempts)


@given(st.text(), st.integers(0, 100))
def test_the_lot_is_fair_and_always_the_same(delivery_id: str, attempts: int) -> None:
    assert 0 <= spread(delivery_id, attempts) < 1
    assert spread(delivery_id, attempts) == spread(delivery_id, attempts)


def test_a_thousand_that_failed_together_do_not_come_back_together() -> None:
    lots = [spread(f"dlv_{number}", 1) for number in range(1000)]
    tenths = [sum(lower / 10 <= lot < (lower + 1) / 10 for lot in lots) for lower in range(10)]
    assert min(tenths) > 60
