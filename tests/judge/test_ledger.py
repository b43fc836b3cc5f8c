"""The ledger sees every violation that is planted in it, and none in what is right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge.ledger import Approval, Ledger, Message, Run, approvals, chats, growth, ids, runs


def build_ledger(*turns: tuple[str, str, str]) -> Ledger:
    """A ledger of turns, one after the other: the session, the word, and what was heard."""
    ledger = Ledger()
    for line, word, heard in turns:
        ledger.hear(line, word, heard.split(), ledger.say(line, word))
    return ledger


RIGHT = [
    [("s", "a", "a"), ("s", "b", "a b"), ("t", "c", "c")],
    # One that was not acknowledged may have been recorded.
    [("s", "a", "a"), ("s", "c", "a b c")],
]
WRONG = [
    ([("s", "a", "a"), ("s", "b", "b")], "heard by every later turn"),
    ([("s", "a", "a"), ("s", "b", "a x b"), ("s", "c", "a b c")], "heard by every later turn"),
    ([("s", "b", "a b"), ("s", "c", "b a c")], "heard by every later turn"),
    ([("s", "a", "a"), ("s", "b", "a a b")], "recorded once"),
    ([("s", "a", "a"), ("s", "b", "a")], "own word last"),
    ([("s", "a", "a"), ("t", "b", "a b")], "memory of nobody else"),
]


@pytest.mark.parametrize("turns", RIGHT)
def test_what_is_right_is_not_reported(turns: list[tuple[str, str, str]]) -> None:
    assert build_ledger(*turns).verdicts() == []


@pytest.mark.parametrize(("turns", "promise"), WRONG)
def test_a_planted_violation_of_a_session_is_reported(turns: list[tuple[str, str, str]], promise: str) -> None:
    assert any(promise in one.promise for one in build_ledger(*turns).verdicts())


@given(st.integers(2, 8), st.data())
def test_any_turn_that_is_forgotten_is_reported(length: int, data: st.DataObject) -> None:
    """Of any session that goes well, taking one word out of what a later turn heard is seen."""
    words = [f"w{number}" for number in range(length)]
    later = data.draw(st.integers(1, length - 1))
    lost = data.draw(st.integers(0, later - 1))
    heard = [" ".join(words[: number + 1]) for number in range(length)]
    assert build_ledger(*(("s", word, heard[number]) for number, word in enumerate(words))).verdicts() == []
    heard[later] = " ".join(word for word in words[: later + 1] if word != words[lost])
    assert build_ledger(*(("s", word, heard[number]) for number, word in enumerate(words))).verdicts()


def test_turns_that_overlap_may_come_in_any_order() -> None:
    ledger = Ledger()
    first, second = ledger.say("s", "a"), ledger.say("s", "b")
    ledger.hear("s", "a", ["b", "a"], first)
    ledger.hear("s", "b", ["b"], second)
    assert ledger.verdicts() == []


def test_a_branch_that_hears_another_is_reported() -> None:
    ledger = Ledger()
    ledger.hear("r", "a", ["a"], ledger.say("r", "a"), after="")
    ledger.hear("r", "b", ["a", "b"], ledger.say("r", "b"), after="a")
    ledger.hear("r", "c", ["a", "c"], ledger.say("r", "c"), after="a")
    assert ledger.verdicts() == []
    ledger.hear("r", "d", ["a", "b", "d"], ledger.say("r", "d"), after="a")
    assert "branch" in ledger.verdicts()[0].promise


@pytest.mark.parametrize(
    ("approval", "effects", "broken"),
    [
        (Approval("k", answers=["cut", "done"]), ["k"], False),
        (Approval("k", answers=["cut"]), [], False),
        (Approval("k", approved=False, answers=["denied"]), [], False),
        (Approval("k", answers=["cut", "approval_answered"]), ["k"], False),
        (Approval("k", answers=["cut", "approval_answered"]), [], True),
        (Approval("k", answers=["cut", "approval_answered"], killed=True), [], False),
        (Approval("k", answers=["pressed"], killed=True), [], False),
        (Approval("k", answers=["pressed"]), [], True),
        (Approval("k", answers=["done"], killed=True), [], True),
        (Approval("k", answers=["done"]), [], True),
        (Approval("k", answers=["done"]), ["k", "k"], True),
        (Approval("k", approved=False, answers=["denied"]), ["k"], True),
        (Approval("k", answers=["approval_expired", "approval_expired"]), [], False),
        (Approval("k", answers=["approval_expired", "approval_answered"]), [], True),
        (Approval("k", answers=["approval_expired", "done"]), ["k"], False),
        (Approval("k", answers=["cut", "approval_expired"]), ["k"], True),
    ],
)
def test_approvals(approval: Approval, effects: list[str], broken: bool) -> None:
    assert bool(list(approvals([approval], effects))) == broken


@pytest.mark.parametrize(
    ("run", "broken"),
    [
        (Run("r", statuses=[(1, "queued", ""), (2, "running", ""), (3, "completed", "")]), False),
        (Run("r", disturbed=True, statuses=[(1, "failed", "interrupted")]), False),
        (Run("r", statuses=[(1, "failed", "interrupted")]), True),
        (Run("r", disturbed=True, statuses=[(1, "failed", "internal_error")]), True),
        (Run("r", disturbed=True, statuses=[(1, "failed", "interrupted"), (2, "running", "")]), True),
        (Run("r", disturbed=True, statuses=[(1, "cancelled", "cancelled")]), True),
        (Run("r", reads=[(1, ("a", "b"), True), (2, ("a", "b"), True)]), False),
        (Run("r", reads=[(1, ("a",), False), (2, ("a", "b"), True)]), False),
        (Run("r", reads=[(1, ("a",), True), (2, ("a", "b"), True)]), True),
        (Run("r", reads=[(1, ("a", "c"), True), (2, ("a", "b"), True)]), True),
    ],
)
def test_background_runs(run: Run, broken: bool) -> None:
    assert bool(list(runs([run]))) == broken


@pytest.mark.parametrize(
    ("message", "broken"),
    [
        (Message("c", "m", acknowledged=True, answers=[("m",)]), False),
        (Message("c", "m"), False),
        (Message("c", "m", acknowledged=True, excuse="unknown"), False),
        (Message("c", "m", acknowledged=True), True),
        (Message("c", "m", acknowledged=True, answers=[("m",), ("m",)]), True),
    ],
)
def test_chats(message: Message, broken: bool) -> None:
    assert bool(list(chats([message]))) == broken


def test_ids_and_growth() -> None:
    assert not list(ids({"i": ["a", "a"]}))
    assert list(ids({"i": ["a", "b"]}))
    assert not list(growth([("rows", 3, 3)]))
    assert list(growth([("rows", 3, 4)]))


def test_an_excuse_was_spent_on_a_message_that_had_one() -> None:
    ledger = Ledger()
    for word in ("first", "second", "third"):
        ledger.messages[word] = Message("c", word, acknowledged=True)
    ledger.messages["lost"] = Message("c", "lost")
    ledger.excuse("c", ["told in the chat"])
    ledger.excuse("c", ["dlv_1"])
    assert [one.excuse for one in ledger.messages.values()] == ["told in the chat", "dlv_1", "", ""]
    assert [one.story for one in ledger.verdicts()] == ["c: third was acknowledged and has no answer"]
