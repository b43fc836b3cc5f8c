"""Which runs work on a branch: those that were put off, are sent elsewhere and would hold a tracked session."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import InvalidRequestError
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.reply import ResponseTarget
from frontdesk.models.request import AdmittedRequest, ChannelSession, ConversationScope
from frontdesk.models.run import BackgroundRun
from frontdesk.models.session import SessionName
from frontdesk.sessions.branches import Branches
from frontdesk.sessions.job import Job
from tests.sessions.admitted import Room, build_admitted

AGENT = TargetInfo(name="agent", kind="agent", history="provider")
KEEPS_ITSELF = [
    TargetInfo(name="workflow", kind="workflow", checkpoints=True),
    TargetInfo(name="workflow as agent", kind="agent", history="provider", checkpoints=True),
    TargetInfo(name="own provider", kind="agent", history="own"),
    TargetInfo(name="own session", kind="agent", history="agent"),
]
ELSEWHERE = [ResponseTarget.active, ResponseTarget.none, ResponseTarget.all_linked, ResponseTarget.channel("b")]


def branches_in(remaining: Room, target: TargetInfo = AGENT) -> Branches:
    return Branches(remaining.store, remaining.turns, remaining.ids, target)


def job_of(request: AdmittedRequest, remaining: Room) -> Job:
    return Job(remaining.store, BackgroundRun(admitted=request))


sessions = st.sampled_from([None, ChannelSession(key="mine"), ChannelSession(isolation_key="alice")])
requests = st.fixed_dictionaries(
    {
        "session": sessions,
        "background": st.booleans(),
        "response_target": st.sampled_from([ResponseTarget.originating, *ELSEWHERE]),
        "approvals": st.sampled_from([(), (ApprovalAnswer(approval_id="a", approved=True),)]),
        "session_mode": st.sampled_from(["auto", "disabled"]),
    }
)
scopes = st.sampled_from([None, "per_user", "per_conversation"])


@given(fields=requests, tracked=scopes)
async def test_only_runs_that_are_sent_elsewhere_branch(
    fields: dict[str, Any], tracked: ConversationScope | None
) -> None:
    remaining = Room()
    request = build_admitted(**fields)
    turn = await branches_in(remaining).open(request, job_of(request, remaining), tracked=tracked, waits=False)
    session = fields["session"]
    is_tracked = tracked is not None if session is None else session.isolation_key is not None
    wanted = (
        fields["background"]
        and fields["response_target"].kind != "originating"
        and not fields["approvals"]
        and fields["session_mode"] == "auto"
        and is_tracked
    )
    assert (turn.parent_session is not None) == wanted
    # Whatever does not branch holds its session, if it has one.
    assert (turn.lease is not None) == (not wanted and turn.record is not None)


async def test_a_branch_leaves_its_session_to_others_and_takes_it_at_its_end() -> None:
    remaining = Room()
    branches = branches_in(remaining)
    await remaining.say("one", tracked="per_user")
    request = build_admitted(run_id="run_b", background=True, response_target=ResponseTarget.active, input="two")
    turn = await branches.open(request, tracked="per_user", waits=False, job=job_of(request, remaining))
    run = remaining.recorder.begin(turn)
    # Said meanwhile, in the session that a turn would hold.
    await remaining.say("three", tracked="per_user")
    assert await remaining.texts(turn) == ["one", "re: one"]
    await branches.rejoin(turn)
    found = await remaining.store.sessions.find(SessionName(owner="alice", kind="tracked"))
    assert found is not None
    assert (run.session_id, turn.record) == (found.session_id, found)
    assert (found.messages, turn.lease is not None) == (4, True)


@pytest.mark.parametrize("target", KEEPS_ITSELF, ids=lambda one: one.name)
@pytest.mark.parametrize("to", ELSEWHERE, ids=lambda one: one.kind)
def test_what_keeps_the_conversation_itself_is_refused(target: TargetInfo, to: ResponseTarget) -> None:
    branches = branches_in(Room(), target)
    request = build_admitted(background=True, response_target=to)
    with pytest.raises(InvalidRequestError) as refused:
        branches.check(request, "per_user")
    assert refused.value.code == "branch_not_possible"
    # Nothing is refused that would not have branched.
    branches.check(build_admitted(background=True), "per_user")
    branches.check(build_admitted(response_target=to), "per_user")
    branches.check(build_admitted(background=True, response_target=to), None)
    branches.check(build_admitted(background=True, response_target=to, key="mine"), "per_user")


async def test_what_an_older_host_has_admitted_is_run_in_its_session() -> None:
    remaining = Room()
    request = build_admitted(background=True, response_target=ResponseTarget.active)
    branches = branches_in(remaining, KEEPS_ITSELF[0])
    turn = await branches.open(request, tracked="per_user", waits=True, job=job_of(request, remaining))
    assert turn.parent_session is None
    assert turn.lease is not None
