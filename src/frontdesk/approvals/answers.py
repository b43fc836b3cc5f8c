"""Takes answers to approvals: each counts once, and only for the call that was asked about."""

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
    """Finds the questions that are answered, records answers, and tells new questions from known ones."""

    def __init__(self, store: HostStateStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def find(self, admitted: AdmittedRequest, settle: SettleAnswers | None = None) -> AdmittedRequest:
        """Return a request with the answers that count, and with the session that asked if it names none.

        The questions must be those of the request's owner; any other is a `NotFoundError`.
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
        questions = [await self._store.approvals.get(owner, given.approval_id) for given in answers]
        sessions = {None if question is None else question.session_id for question in questions}
        session_id = sessions.pop() if len(sessions) == 1 else None
        if session_id is None:
            raise _unknown()
        return session_id

    async def asked(
        self, owner: str, session: SessionRecord | None, answers: Sequence[ApprovalAnswer]
    ) -> list[PendingApproval]:
        """Return the questions that are answered; a foreign, unknown or repeated answer refuses all of them.

        An answer is repeated once the first one was acted on; until then, the same answer counts again.
        """
        if session is None:
            raise InvalidRequestError("An approval needs the session that asked for it.", param="approvals")
        if len({given.approval_id for given in answers}) != len(answers):
            raise InvalidRequestError("An approval is answered twice in one request.", param="approvals")
        questions = [await self._question(owner, session, given) for given in answers]
        for question, given in zip(questions, answers, strict=True):
            if not question.waits or question.status not in ("pending", _decision(given)):
                raise answered()
        return questions

    async def new(
        self, session: SessionRecord | None, questions: Sequence[PendingApproval], *, may_repeat: bool
    ) -> list[PendingApproval]:
        """Return the questions that are not stored yet; an id that belongs to another question is an `ApprovalIdError`.

        A pending question of the session, or of one that it branched from, may come again. A decided one may only if
        the target repeats the requests that it waits for (`may_repeat`), as a workflow does.
        """
        fresh: list[PendingApproval] = []
        for question in questions:
            stored = await self._store.approvals.get(question.owner, question.approval_id)
            if stored is None:
                fresh.append(question)
                continue
            same = compare_digest(stored.digest, question.digest) and (may_repeat or stored.status == "pending")
            if not same or session is None or not await self._asked_in(stored, session):
                raise taken(question)
        return fresh

    async def take(self, owner: str, answers: Sequence[ApprovalAnswer]) -> str:
        """Record the decisions, all or none, and return the attempt that may act on them."""
        now, attempt = self._clock.now(), new_secret()
        try:
            async with self._store.transaction() as transaction:
                for given in answers:
                    decision = _decision(given)
                    transaction.decide_approval(
                        owner, given.approval_id, decision, at=now, reason=given.reason, attempt=attempt
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
        """Tell whether a session, or one that it branched from, has asked the question."""
        asking: SessionRecord | None = session
        while asking is not None and asking.session_id != question.session_id:
            parent = asking.parent
            asking = None if parent is None else await self._store.sessions.get(asking.owner, parent.session_id)
        return asking is not None


def resumed(questions: Sequence[PendingApproval], answers: Sequence[ApprovalAnswer]) -> list[Message]:
    """Return the messages that resume a run with answers."""
    return [answer(question, given.approved, given.reason) for question, given in zip(questions, answers, strict=True)]


def _decision(answer: ApprovalAnswer) -> ApprovalStatus:
    return "approved" if answer.approved else "rejected"


def _unknown() -> NotFoundError:
    return NotFoundError("There is no such approval.", param="approvals")


def answered() -> ConflictError:
    """Make the refusal of an answer to a question that was answered."""
    return ConflictError("This approval was answered before.", code=ANSWERED, param="approvals")
