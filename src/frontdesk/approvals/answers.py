"""Takes answers to questions: each counts once, and only for what was asked."""

from collections.abc import Sequence
from hmac import compare_digest

from agent_framework import Message

from frontdesk.abc.channel import SettleAnswers
from frontdesk.abc.store import HostStateStore
from frontdesk.approvals.pending import answer, taken
from frontdesk.clock import Clock
from frontdesk.data.approval import ANSWERED, ApprovalAnswer, ApprovalStatus, PendingApproval
from frontdesk.data.request import AdmittedRequest, ChannelSession
from frontdesk.data.session import SessionRecord
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError, StoreError
from frontdesk.ids import new_secret


class Answers:
    """Finds what is answered, and uses answers up; and tells questions that are new from those that are known."""

    def __init__(self, store: HostStateStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def find(self, admitted: AdmittedRequest, settle: SettleAnswers | None = None) -> AdmittedRequest:
        """Return a request with the answers that count, and with the session that asked if it names none.

        The questions are those of whom it was admitted for; any other is a `NotFoundError`.
        """
        if settle is not None:
            pending = await self._store.approvals.pending(admitted.owner)
            admitted = admitted.with_request(approvals=tuple(await settle(admitted.request.approvals, pending)))
        request = admitted.request
        session = request.session or ChannelSession()
        if request.previous_run_id is not None or session.key or session.openai_conversation_id or session.session_id:
            return admitted
        session_id = await self._asking_session(admitted.owner, request.approvals)
        return admitted.with_request(session=session.replace(session_id=session_id))

    async def _asking_session(self, owner: str, answers: Sequence[ApprovalAnswer]) -> str:
        questions = [await self._store.approvals.get(owner, one.approval_id) for one in answers]
        sessions = {None if one is None else one.session_id for one in questions}
        session_id = sessions.pop() if len(sessions) == 1 else None
        if session_id is None:
            raise _unknown()
        return session_id

    async def asked(
        self, owner: str, session: SessionRecord | None, answers: Sequence[ApprovalAnswer]
    ) -> list[PendingApproval]:
        """Return the questions that are answered; a foreign, unknown or repeated answer refuses all of them.

        An answer is repeated once something was done with the first one; until then, the same answer counts again.
        """
        if session is None:
            raise InvalidRequestError("An approval needs the session that asked for it.", param="approvals")
        if len({one.approval_id for one in answers}) != len(answers):
            raise InvalidRequestError("An approval is answered twice in one request.", param="approvals")
        questions = [await self._question(owner, session, one) for one in answers]
        for question, one in zip(questions, answers, strict=True):
            if not question.waits or question.status not in ("pending", _decision(one)):
                raise answered()
        return questions

    async def new(
        self, session: SessionRecord | None, questions: Sequence[PendingApproval], *, may_repeat: bool
    ) -> list[PendingApproval]:
        """Return the questions that are not kept yet; an id that belongs to another question is an `ApprovalIdError`.

        A question may come again that waits where the session is, or where it branched from. One that was decided
        comes again only if the target tells again what it stands at (`may_repeat`), as a workflow does.
        """
        fresh: list[PendingApproval] = []
        for question in questions:
            known = await self._store.approvals.get(question.owner, question.approval_id)
            if known is None:
                fresh.append(question)
                continue
            same = compare_digest(known.digest, question.digest) and (may_repeat or known.status == "pending")
            if not same or session is None or not await self._asked_in(known, session):
                raise taken(question)
        return fresh

    async def take(self, owner: str, answers: Sequence[ApprovalAnswer]) -> str:
        """Write the decisions down, all or none; returns the attempt that may act on them."""
        now, attempt = self._clock.now(), new_secret()
        try:
            async with self._store.transaction() as transaction:
                for one in answers:
                    decision = _decision(one)
                    transaction.decide_approval(
                        owner, one.approval_id, decision, at=now, reason=one.reason, attempt=attempt
                    )
        except StoreError:
            raise answered() from None
        return attempt

    async def _question(self, owner: str, session: SessionRecord, answer: ApprovalAnswer) -> PendingApproval:
        question = await self._store.approvals.get(owner, answer.approval_id)
        if question is None or not await self._asked_in(question, session):
            raise _unknown()
        return question

    async def _asked_in(self, question: PendingApproval, session: SessionRecord) -> bool:
        """Whether a session, or one that it branched from, has asked the question."""
        place: SessionRecord | None = session
        while place is not None and place.session_id != question.session_id:
            parent = place.parent
            place = None if parent is None else await self._store.sessions.get(place.owner, parent.session_id)
        return place is not None


def resumed(questions: Sequence[PendingApproval], answers: Sequence[ApprovalAnswer]) -> list[Message]:
    """The messages that resume a run with answers, once these are used up."""
    return [answer(question, one.approved, one.reason) for question, one in zip(questions, answers, strict=True)]


def _decision(answer: ApprovalAnswer) -> ApprovalStatus:
    return "approved" if answer.approved else "rejected"


def _unknown() -> NotFoundError:
    return NotFoundError("There is no such approval.", param="approvals")


def answered() -> ConflictError:
    """Make the refusal of an answer to a question that was answered."""
    return ConflictError("This approval was answered before.", code=ANSWERED, param="approvals")
