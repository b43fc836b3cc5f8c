"""What becomes of the messages that have shown an answer, by how its run has ended."""

from itertools import count
from typing import Any

import pytest

from frontdesk.delivery.limits import SendLimits
from frontdesk.delivery.live.writer import LOST, end_live, repeat_late
from frontdesk.models.delivery import Delivery
from frontdesk.models.run import RunStatus
from frontdesk_testing.store_samples import delivery

BLANK = delivery("", payload=None)


def part(number: int, **fields: Any) -> Delivery:
    return delivery(f"p{number}", part=number, answer_id="ans", **fields)


def act(action: Any, handle: str, number: int, parts: int) -> tuple[Any, ...]:
    return (action, handle, number, parts, None)


def summarize(row: Delivery) -> tuple[Any, ...]:
    payload = None if row.payload is None else row.delivery_id
    return (row.action, row.replaces, row.part, row.parts, payload)


HERE = [part(0), part(1)]
KEPT = [("send", None, 0, 1, "p0"), ("send", None, 1, 1, "p1")]


@pytest.mark.parametrize(
    ("status", "lost", "handles", "expected"),
    [
        ("completed", False, [], KEPT),
        ("completed", False, ["a"], [("send", "a", 0, 1, "p0"), ("send", None, 1, 1, "p1")]),
        ("completed", False, ["a", "b"], [("send", "a", 0, 1, "p0"), ("send", "b", 1, 1, "p1")]),
        (
            "completed",
            False,
            ["a", "b", "c"],
            [("send", "a", 0, 1, "p0"), ("send", "b", 1, 1, "p1"), act("retract", "c", 0, 1)],
        ),
        ("completed", True, ["a", "b"], [*KEPT, act("retract", "a", 0, 2), act("retract", "b", 1, 2)]),
        ("completed", True, [], KEPT),
        ("failed", False, ["a"], [act("settle", "a", 0, 1), *KEPT]),
        ("cancelled", False, ["a", "b"], [act("settle", "a", 0, 2), act("settle", "b", 1, 2), *KEPT]),
    ],
)
def test_each_message_is_replaced_removed_or_settled(
    status: RunStatus, lost: bool, handles: list[str], expected: list[Any]
) -> None:
    numbers = count()
    rows = end_live(HERE, BLANK, handles, status=status, lost=lost, new_id=lambda prefix: f"{prefix}_{next(numbers)}")
    assert [summarize(row) for row in rows] == expected
    assert len({row.delivery_id for row in rows}) == len(rows)
    # None of them dies with a part of the answer.
    assert all(row.answer_id != "ans" for row in rows if row.payload is None)
    assert [entry.code for entry in HERE[0].history] == []
    noted = [entry.code for row in rows for entry in row.history]
    assert noted == ([LOST] if lost else [])


def test_only_parts_that_go_back_replace_something() -> None:
    rows = [part(0, is_echo=True), part(1, conversation_id="elsewhere"), part(2, ended_at=1.0), part(3)]
    ended = end_live(rows, BLANK, ["a"], status="completed", lost=False, new_id=lambda prefix: prefix)
    assert [row.replaces for row in ended] == [None, None, None, "a"]


@pytest.mark.parametrize(
    ("status", "handles", "expected"),
    [
        ("completed", ["a"], [("send", "a")]),
        ("completed", ["a", "b", "c"], [("send", "a"), ("send", "b")]),
        ("failed", ["a", "b"], [("settle", "a"), ("settle", "b")]),
    ],
)
def test_changes_of_messages_that_were_taken_over_are_repeated(
    status: RunStatus, handles: list[str], expected: list[Any]
) -> None:
    names = count()

    def new_id(prefix: str) -> str:
        return f"{prefix}_{next(names)}"

    rows = end_live(HERE, BLANK, handles, status=status, lost=False, taken=handles, new_id=new_id)
    late = repeat_late(rows, handles, now=5.0, due_at=15.0, new_id=new_id)
    assert [(row.action, row.replaces) for row in late] == expected
    assert all((row.is_repeat, row.due_at, row.created_at, row.parts) == (True, 15.0, 5.0, 1) for row in late)
    assert len({row.delivery_id for row in [*rows, *late]}) == len([*rows, *late])
    assert len({row.answer_id for row in late}) == len(late)
    # Nothing else waits behind them.
    assert not {row.destination for row in late} & {row.destination for row in rows}
    # Those that this process has opened itself are not.
    assert repeat_late(rows, ["d"], now=5.0, due_at=15.0, new_id=new_id) == []


def test_a_question_replaces_no_message_that_was_taken_over() -> None:
    """It may be decided when the change is repeated."""
    rows = [part(0, approval_id="app")]
    ended = end_live(rows, BLANK, ["a"], status="completed", lost=False, taken=["a"], new_id=lambda prefix: prefix)
    assert [(row.action, row.replaces) for row in ended] == [("send", None), ("retract", "a")]
    assert repeat_late(ended, ["a"], now=5.0, due_at=15.0, new_id=lambda prefix: prefix) == []
    ended = end_live(rows, BLANK, ["a"], status="completed", lost=False, new_id=lambda prefix: prefix)
    assert [(row.action, row.replaces) for row in ended] == [("send", "a")]


def test_what_comes_last_waits_for_everything_else() -> None:
    limits = SendLimits(1.0, 0.5)
    assert limits.enter_last("ann", 10.0) == 10.0
    assert limits.enter_last("ben", 10.0) == 11.0
    # A delivery has a turn of its own before the next that comes last.
    assert limits.enter("ben", 10.0) == 11.0
    assert limits.enter_last("cid", 11.0) == 12.0
    assert limits.enter("ben", 11.0) == 11.0
    assert limits.enter_last("ann", 11.5) == 12.0
    limits.close(20.0)
    assert limits.enter_last("cid", 13.0) == 20.0
