"""Answers count once, for what was asked, where it was asked, by whom it was asked of."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate, Content

from frontdesk.approvals.answers import ApprovalAnswers, build_resume_messages
from frontdesk.approvals.decisions import Decisions
from frontdesk.approvals.extraction import digest
from frontdesk.errors import ApprovalIdError, ConflictError, InvalidRequestError, LostAnswerError, NotFoundError
from frontdesk.ids import RandomIds
from frontdesk.models.approval import ApprovalAnswer, PendingApproval
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.session import ForkPoint, SessionRecord
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import OTHER, OWNER, keep_session, question, session


def yes(approval_id: str = "apr_1") -> ApprovalAnswer:
    return ApprovalAnswer(approval_id=approval_id, approved=True)


def no(approval_id: str = "apr_1") -> ApprovalAnswer:
    return ApprovalAnswer(approval_id=approval_id, approved=False, reason="too much")


class Nowhere:
    """No question is shown anywhere."""

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        return ()

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        return ()

    async def rows_of_leavers(self, people: Sequence[ChannelIdentity]) -> Sequence[Delivery]:
        return ()

    async def wake(self, rows: Sequence[Delivery]) -> None:
        raise AssertionError("there is nothing to send")

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        assert not rows


def decisions(store: InMemoryStateStore, clock: FakeClock) -> Decisions:
    return Decisions(store, clock, None, Nowhere())


class TwoQuestions:
    """Questions `apr_1` and `apr_2` of a session that its owner may answer."""

    def __init__(self, *, may_repeat: bool = False) -> None:
        self.store = InMemoryStateStore()
        self.clock = FakeClock(2000.0)
        writes = decisions(self.store, self.clock)
        self.answers = ApprovalAnswers(self.store, self.clock, RandomIds(), writes, may_repeat=may_repeat)

    async def ask(self, *ids: str, **fields: Any) -> None:
        await keep_session(self.store, session())
        async with self.store.transaction() as transaction:
            for approval_id in ids:
                transaction.add_approval(question(approval_id, **fields))

    async def take(self, *answers: ApprovalAnswer, owner: str = OWNER, place: SessionRecord | None = None) -> Any:
        """Answer, and begin with it."""
        questions = await self.answers.find_questions(owner, place or session(owner=owner), answers)
        await self.begin(await self.answers.take(owner, answers), *answers)
        return build_resume_messages(questions, answers)

    async def begin(self, attempt: str, *answers: ApprovalAnswer) -> None:
        async with self.store.transaction() as transaction:
            for one in answers:
                transaction.begin_approval(OWNER, one.approval_id, attempt)

    async def pending(self) -> list[str]:
        return [one.approval_id for one in await self.store.approvals.pending(OWNER)]


@pytest.fixture
async def desk() -> TwoQuestions:
    desk = TwoQuestions()
    await desk.ask("apr_1", "apr_2")
    return desk


async def test_an_answer_is_taken_once(desk: TwoQuestions) -> None:
    (message,) = await desk.take(yes())
    assert message.contents[0].approved is True
    assert await desk.pending() == ["apr_2"]
    record = await desk.store.approvals.get(OWNER, "apr_1")
    assert record is not None
    assert (record.status, record.decided_at) == ("approved", 2000.0)
    for again in (yes(), no()):
        with pytest.raises(ConflictError) as caught:
            await desk.take(again)
        assert caught.value.code == "approval_answered"


@pytest.mark.parametrize(("first", "other"), [(yes(), no()), (no(), yes())])
async def test_the_same_answer_is_taken_again_until_something_was_done_with_it(
    desk: TwoQuestions, first: ApprovalAnswer, other: ApprovalAnswer
) -> None:
    early = await desk.answers.take(OWNER, [first])
    assert await desk.pending() == ["apr_1", "apr_2"]
    with pytest.raises(ConflictError):
        await desk.answers.find_questions(OWNER, session(), [other])
    with pytest.raises(ConflictError):
        await desk.answers.take(OWNER, [other])
    await desk.answers.find_questions(OWNER, session(), [first])
    late = await desk.answers.take(OWNER, [first])
    with pytest.raises(LostAnswerError):
        await desk.begin(early, first)
    await desk.begin(late, first)
    for again in (yes(), no()):
        with pytest.raises(ConflictError):
            await desk.answers.find_questions(OWNER, session(), [again])
        with pytest.raises(ConflictError):
            await desk.answers.take(OWNER, [again])


async def test_several_are_answered_together_or_not_at_all(desk: TwoQuestions) -> None:
    await desk.take(no("apr_2"))
    with pytest.raises(ConflictError):
        await desk.take(yes("apr_1"), yes("apr_2"))
    assert await desk.pending() == ["apr_1"]


async def test_several_can_be_answered_apart(desk: TwoQuestions) -> None:
    (first,) = await desk.take(yes("apr_1"))
    (second,) = await desk.take(no("apr_2"))
    assert first.contents[0].approved is True
    assert second.contents[0].approved is False
    assert second.text == "too much"


async def test_of_twenty_answers_at_once_one_is_taken(desk: TwoQuestions) -> None:
    taken = await asyncio.gather(*(desk.take(yes()) for _ in range(20)), return_exceptions=True)
    assert [type(one) for one in taken].count(list) == 1
    assert [type(one) for one in taken].count(ConflictError) == 19


async def test_one_decision_had_an_audit_line_for_every_request_with_the_same_answer(
    desk: TwoQuestions, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = desk.store.approvals.get

    async def get_and_let_others_read(*given: Any) -> PendingApproval | None:
        found = await get(*given)
        await asyncio.sleep(0)
        return found

    monkeypatch.setattr(desk.store.approvals, "get", get_and_let_others_read)
    await asyncio.gather(*(desk.answers.take(OWNER, [yes("apr_1"), no("apr_2")]) for _ in range(20)))
    lines = await desk.store.audit.lines()
    assert sorted((line.subject, line.action) for line in lines) == [("apr_1", "approved"), ("apr_2", "rejected")]
    assert len(await desk.store.approvals.votes(OWNER, "apr_1")) == 1


async def test_the_same_question_twice_in_one_request_is_refused(desk: TwoQuestions) -> None:
    with pytest.raises(InvalidRequestError):
        await desk.take(yes(), no())
    assert await desk.pending() == ["apr_1", "apr_2"]


async def test_a_foreign_question_looks_like_one_that_does_not_exist(desk: TwoQuestions) -> None:
    await keep_session(desk.store, session("ses_other"))
    errors: list[NotFoundError] = []
    for owner, answer, place in [
        (OTHER, yes(), session(owner=OTHER)),
        (OWNER, yes("apr_unknown"), session()),
        (OWNER, yes(), session("ses_other")),
    ]:
        with pytest.raises(NotFoundError) as caught:
            await desk.take(answer, owner=owner, place=place)
        errors.append(caught.value)
    assert len({(error.message, error.code, error.param) for error in errors}) == 1
    assert await desk.pending() == ["apr_1", "apr_2"]


async def test_without_a_session_nothing_is_answered(desk: TwoQuestions) -> None:
    with pytest.raises(InvalidRequestError):
        await desk.answers.find_questions(OWNER, None, [yes()])
    assert await desk.pending() == ["apr_1", "apr_2"]


async def test_of_two_branches_only_one_can_answer(desk: TwoQuestions) -> None:
    for name in ("left", "right"):
        await keep_session(desk.store, session(name, parent=ForkPoint(session_id="ses_1", messages=0)))
    left = await desk.store.sessions.get(OWNER, "left")
    right = await desk.store.sessions.get(OWNER, "right")
    assert await desk.take(yes(), place=left)
    with pytest.raises(ConflictError):
        await desk.take(yes(), place=right)


@pytest.mark.parametrize(
    ("known", "place", "may_repeat", "kept"),
    [
        ({}, "ses_1", False, True),
        ({}, "branch", False, True),
        ({}, "ses_other", False, None),
        ({"digest": "another call"}, "ses_1", False, False),
        ({"digest": "another call"}, "branch", True, False),
        ({"status": "approved"}, "ses_1", False, False),
        # Decided while the answer to another question of its turn was acted on.
        ({"status": "approved", "attempt": "att_1", "begun": False}, "ses_1", False, True),
        ({"status": "rejected", "attempt": "att_1", "begun": False}, "branch", False, True),
        ({"status": "cancelled", "attempt": "att_1", "begun": False}, "ses_1", False, False),
        ({"status": "approved"}, "ses_1", True, True),
        ({"status": "cancelled"}, "branch", True, True),
        ({"status": "approved"}, "ses_other", True, None),
        ({"owner": OTHER, "digest": "another call"}, "ses_1", False, None),
    ],
)
@pytest.mark.parametrize("released", [True, False], ids=["of a released version", "of this version"])
async def test_only_the_same_question_comes_again_in_its_session(
    known: dict[str, Any], place: str, may_repeat: bool, kept: bool | None, released: bool
) -> None:
    """Kept: it is the one that is known; not kept: it is refused; `None`: it is another question."""
    desk = TwoQuestions(may_repeat=may_repeat)
    shown = "q" if released else "apr_1"
    request = Content.from_function_approval_request("q", question().request.function_call)
    call: dict[str, Any] = {"digest": digest(request)}
    await desk.ask(shown, **(call | known), target_request_id=None if released else "q")
    where = session(place, parent=ForkPoint(session_id="ses_1", messages=0) if place == "branch" else None)
    asked = question("q", session_id=place, target_request_id="q", run_id="run_2", **call)
    if kept is False:
        with pytest.raises(ApprovalIdError) as caught:
            await desk.answers.new(where, [question("p", target_request_id="p"), asked], {"p": "apr_p", "q": "apr_q"})
        assert caught.value.code == "approval_id_taken"
    else:
        new = await desk.answers.new(where, [asked], {"q": "apr_q"})
        assert new == ([] if kept else [asked.replace(approval_id="apr_q")])
    ids: dict[str, str] = {}
    update = AgentResponseUpdate(contents=[request], role="assistant")
    (content,) = (await desk.answers.show(OWNER, where, ids, update)).contents
    assert (content.id == shown) is (kept is True)
    assert content.id == ids["q"]
    assert request.id == "q"
