"""Slots are shared by groups: each finds its part free, and none is idle while somebody may use it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.runners.wakes import FairQueue, Shares
from tests.examples import examples

GROUPS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("slots", "groups", "alone", "left"),
    [
        (200, ("a",), 200, 0),
        (200, ("a", "b"), 150, 50),
        (200, ("a", "b", "c"), 134, 33),
        (200, ("a", "b", "c", "d"), 125, 25),
        (5, ("a", "b", "c"), 5, 0),
    ],
)
def test_a_group_that_takes_all_it_can_leaves_each_other_its_part(
    slots: int, groups: tuple[str, ...], alone: int, left: int
) -> None:
    shares = Shares(slots, groups)
    assert sum(shares.take("a") for _ in range(1_000)) == alone
    for group in groups[1:]:
        assert sum(shares.take(group) for _ in range(1_000)) == left
    for _ in range(alone):
        shares.release("a")
    assert sum(shares.take(groups[-1]) for _ in range(1_000)) == min(alone, slots) - (0 if len(groups) == 1 else left)


def test_an_unknown_group_uses_the_shared_slots_alone() -> None:
    shares = Shares(12, GROUPS)
    assert sum(shares.take("x") for _ in range(100)) == 6
    assert [shares.take(group) for group in GROUPS for _ in range(2)] == [True] * 6


def test_a_backlog_of_one_group_is_not_served_before_the_others() -> None:
    queue = FairQueue[int](4, ("a", "b"))
    for number in range(100):
        queue.add("a", number)
    taken = [queue.take() for _ in range(4)]
    assert taken == [("a", 0), ("a", 1), ("a", 2), None]
    queue.add("b", 0)
    queue.add("b", 1)
    assert queue.take() == ("b", 0)
    # Of the slots that become free, the group with fewer of them gets the first.
    queue.shares.release("a")
    assert [queue.take(), queue.take()] == [("b", 1), None]
    queue.shares.release("b")
    queue.shares.release("b")
    assert [queue.take(), queue.take()] == [("a", 3), None]


@examples(100)
@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.sampled_from(("add", "release")), st.sampled_from((*GROUPS, "x"))), max_size=80),
)
def test_the_slots_are_never_exceeded_and_never_idle_for_a_known_group(
    slots: int, steps: list[tuple[str, str]]
) -> None:
    queue, held, waiting = FairQueue[int](slots, GROUPS), Counter[str](), Counter[str]()
    part = slots // 6
    for number, (step, group) in enumerate(steps):
        if step == "add":
            queue.add(group, number)
            waiting[group] += 1
        elif held[group]:
            queue.shares.release(group)
            held[group] -= 1
        while (taken := queue.take()) is not None:
            held[taken[0]] += 1
            waiting[taken[0]] -= 1
        assert held.total() <= slots
        assert len(queue) == waiting.total()
        for name in GROUPS:
            assert not waiting[name] or held[name] >= part
        others = sum(max(0, part - held[name]) for name in GROUPS)
        assert not waiting.total() or held.total() + others == slots
