"""Only a call that was handed out to a client takes a result from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import InvalidRequestError
from frontdesk.framework.client_outputs import build_returned, take_outputs
from frontdesk.models.request import ClientOutput
from frontdesk.models.session import ClientCall


def build_pending(*ids: str) -> list[ClientCall]:
    return [ClientCall(call_id=one, name="look") for one in ids]


def outputs(*ids: str) -> list[ClientOutput]:
    return [ClientOutput(call_id=one, output=f"result of {one}") for one in ids]


@pytest.mark.parametrize("ids", [["a"], ["a", "b"], ["b", "a"]])
def test_every_call_that_waits_gets_its_result(ids: list[str]) -> None:
    (message,) = build_returned(build_pending("a", "b")[: len(ids)], outputs(*ids))
    assert message.role == "tool"
    assert [(content.call_id, content.result) for content in message.contents] == [
        (one, f"result of {one}") for one in ids
    ]


def test_nothing_handed_out_and_nothing_returned_is_nothing_said() -> None:
    assert build_returned([], []) == []


@pytest.mark.parametrize(
    ("waiting", "given"),
    [
        ([], ["a"]),
        (["a"], ["b"]),
        (["a"], ["a", "b"]),
        (["a"], ["a", "a"]),
        (["a"], []),
        (["a", "b"], ["a"]),
        (["a"], ["A"]),
    ],
    ids=["none waits", "another", "one more", "twice", "none returned", "one missing", "other case"],
)
def test_anything_else_is_refused(waiting: list[str], given: list[str]) -> None:
    with pytest.raises(InvalidRequestError):
        build_returned(build_pending(*waiting), outputs(*given))


def test_some_of_the_calls_can_be_answered_where_that_is_enough() -> None:
    assert take_outputs({"a", "b"}, outputs("a")) == {"b"}
    for wrong in (outputs("c"), outputs("a", "a")):
        with pytest.raises(InvalidRequestError):
            take_outputs({"a", "b"}, wrong)


ids = st.lists(st.sampled_from("abcd"), max_size=5)


@given(waiting=st.lists(st.sampled_from("abcd"), max_size=4, unique=True), given=ids)
def test_results_are_taken_exactly_when_they_are_those_that_are_waited_for(
    waiting: list[str], given: list[str]
) -> None:
    try:
        build_returned(build_pending(*waiting), outputs(*given))
        taken = True
    except InvalidRequestError:
        taken = False
    assert taken == (sorted(waiting) == sorted(given))
