"""The platform fails by rule, and the same way each time."""

from hypothesis import given
from hypothesis import strategies as st

from frontdesk_testing.messages.platform.faults import Fault, Faults, drawn


def strike(faults: Faults, calls: int, method: str = "send", chat_id: str = "c") -> list[bool]:
    return [faults.strike(method, chat_id) is not None for _ in range(calls)]


def build_faults(*rules: Fault) -> Faults:
    faults = Faults()
    for one in rules:
        faults.add(one)
    return faults


def test_a_rule_begins_late_and_ends_by_itself() -> None:
    faults = build_faults(Fault(kind="error", skip=1, times=2))
    assert strike(faults, 5) == [False, True, True, False, False]
    assert faults.counts() == [2]


def test_a_rule_is_for_a_method_and_a_chat() -> None:
    faults = build_faults(Fault(kind="error", method="send", chat_id="c"))
    assert strike(faults, 1) == [True]
    assert strike(faults, 1, method="edit") == [False]
    assert strike(faults, 1, chat_id="d") == [False]


def test_the_first_rule_that_strikes_decides() -> None:
    faults = build_faults(Fault(kind="flood", times=1), Fault(kind="error"))
    kinds = [fault.kind for _ in range(3) if (fault := faults.strike("send", "c"))]
    assert kinds == ["flood", "error", "error"]
    faults.clear()
    assert faults.strike("send", "c") is None


@given(st.integers(0, 1000), st.floats(0.0, 1.0))
def test_the_same_seed_gives_the_same_failures(seed: int, probability: float) -> None:
    rule = Fault(kind="error", probability=probability, seed=seed)
    assert strike(build_faults(rule), 50) == strike(build_faults(rule), 50)


@given(st.integers(0, 1000))
def test_about_as_many_as_were_asked_for(seed: int) -> None:
    count = sum(strike(build_faults(Fault(kind="error", probability=0.2, seed=seed)), 2000))
    assert 280 < count < 520


@given(st.integers(), st.integers())
def test_always_and_never(seed: int, number: int) -> None:
    assert drawn(seed, number, 1.0)
    assert not drawn(seed, number, 0.0)
