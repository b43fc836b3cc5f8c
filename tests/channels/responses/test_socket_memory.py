"""What connections remember: never more than they may, and gone with them."""

from typing import Any

import pytest
from agent_framework import AgentResponse, Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.responses.socket import MAX_STORED, Kept, Memory, Space
from frontdesk.errors import InvalidRequestError
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.request import ChannelRequest, ClientOutput
from frontdesk.models.run import RunRecord


def build_kept(size: int = 1, **more: Any) -> Kept:
    return Kept(**{"previous": None, "outputs": (), "messages": (), "waiting": frozenset(), "size": size, **more})


MOVES = st.lists(
    st.tuples(st.sampled_from(["keep", "forget", "close"]), st.integers(0, 2), st.integers(0, 30), st.integers(1, 60)),
    max_size=60,
)


@given(MOVES)
def test_there_is_never_more_than_there_may_be(moves: list[tuple[str, int, int, int]]) -> None:
    space = Space(100)
    memories = [Memory(space, 50, owner=owner) for owner in ("ann", "ann", "bob")]
    for move, place, number, size in moves:
        memory, run_id = memories[place], f"resp_{number}"
        if move == "keep" and memory.get(run_id) is None:
            memory.keep(run_id, build_kept(size))
        elif move == "forget":
            memory.forget(run_id)
            assert memory.get(run_id) is None
        elif move == "close":
            memory.close()
            assert not memory._kept
        sizes = [sum(one.size for one in each._kept.values()) for each in memories]
        assert max(sizes) <= 50
        assert sum(sizes) == space._size <= 100
        assert all(len(each._kept) <= MAX_STORED for each in memories)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), max_size=60))
def test_who_has_no_more_than_a_fair_share_never_loses_it_to_others(keeps: list[tuple[int, int]]) -> None:
    space = Space(100)
    callers = [[Memory(space, 1_000, owner=owner) for _ in range(2)] for owner in range(4)]
    for number, (caller, size) in enumerate(keeps):
        before = [_all(one) for one in callers]
        callers[caller][number % 2].keep(f"resp_{number}", build_kept(size))
        for other, had in enumerate(before):
            if other != caller and sum(had.values()) <= 100 / len(callers):
                assert _all(callers[other]) == had
    assert space._size == sum(size for one in callers for size in _all(one).values()) <= 100


def _all(memories: list[Memory]) -> dict[str, int]:
    return {run_id: one.size for memory in memories for run_id, one in memory._kept.items()}


def test_the_last_ones_are_kept() -> None:
    memory = Memory(Space(1_000), 1_000, owner="ann")
    for number in range(MAX_STORED + 2):
        memory.keep(f"resp_{number}", build_kept())
    assert [memory.get(f"resp_{number}") is None for number in range(3)] == [True, True, False]
    assert memory.get(None) is None
    memory.forget(None)
    memory.forget("resp_unknown")


def request(**fields: Any) -> ChannelRequest:
    return ChannelRequest(channel="responses", **{"input": "now", "previous_run_id": "resp_kept", **fields})


def run(*messages: Message) -> RunRecord:
    result: Any = AgentResponse(messages=list(messages))
    return RunRecord(run_id="resp_1", owner="o", channel="responses", status="completed", created_at=0.0, result=result)


def test_everything_is_said_again_before_what_is_new() -> None:
    call = Content.from_function_call("c", "look", arguments="{}")
    first = Kept.of(request(previous_run_id="resp_stored"), run(Message("assistant", [call])), 5)
    assert (first.previous, first.waiting, first.size) == ("resp_stored", {"c"}, 5)
    output = ClientOutput(call_id="c", output="seen")
    again = first.build_continued(request(client_outputs=(output,)), hears=True)
    assert [one.role for one in again.input] == ["user", "assistant", "tool", "user"]
    assert (again.previous_run_id, again.client_outputs) == ("resp_stored", ())
    assert again.details["previous_response_id"] == "resp_kept"
    deaf = first.build_continued(request(client_outputs=(output,)), hears=False)
    assert deaf.input == "now"


def test_what_a_stored_call_has_returned_goes_with_it_each_time() -> None:
    output = ClientOutput(call_id="stored", output="seen")
    first = Kept.of(request(client_outputs=(output,)), run(Message("assistant", ["fine"])), 5)
    assert first.build_continued(request(), hears=True).client_outputs == (output,)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"client_outputs": (ClientOutput(call_id="other", output="x"),)},
        {"client_outputs": (ClientOutput(call_id="c", output="x"), ClientOutput(call_id="c", output="y"))},
        {"approvals": (ApprovalAnswer(approval_id="a", approved=True),)},
    ],
)
def test_what_does_not_fit_is_refused(fields: Any) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        build_kept(waiting=frozenset({"c"})).build_continued(request(**fields), hears=True)
    assert caught.value.param == "input"
