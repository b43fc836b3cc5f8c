"""Takes answers to approvals: each counts once, and only for the call that was asked about."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hmac import compare_digest
from typing import TypeVar

from agent_framework import Message

from frontdesk.abc.channel import SettleAnswers
from frontdesk.abc.store import HostStateStore
from frontdesk.approvals.decisions import Decisions
from frontdesk.approvals.pending import answer, digest, taken
from frontdesk.approvals.records import status_of
from frontdesk.approvals.voting import Voter
from frontdesk.clock import Clock
from frontdesk.data.approval import ANSWERED, EXPIRED, ApprovalAnswer, Decision, PendingApproval
from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import Caller
from frontdesk.data.request import AdmittedRequest, ChannelSession
from frontdesk.data.session import SessionRecord
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError, StoreError
from frontdesk.ids import Ids, new_secret
from frontdesk.kit.framework.approval_ids import requests_in, with_shown_ids
from frontdesk.kit.lineage import asked_as, descends_from

T = TypeVar("T")
Expire = Callable[[PendingApproval], Awaitable[None]]

_CHANGED = "The call is no longer the one that was asked about: its arguments, or its tool, have changed. Ask again."


class ApprovalAnswers:
    """Finds the questions that are answered, records answers, and tells new questions from known ones."""

    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        ids: Ids,
        decisions: Decisions,
        *,
        may_repeat: bool = False,
        lifetime: float | None = None,
        expire: Expire | None = None,
    ) -> None:
        """Take `may_repeat` for a target that asks again what it still waits for, as a workflow does.

        Without an answer for `lifetime` seconds it is a no; `expire` is called with a question whose time is over.
        """
        self._store = store
        self._clock = clock
        self._ids = ids
        self._decisions = decisions
        self._may_repeat = may_repeat
        self._lifetime = lifetime
        self._expire = expire

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
            raise unknown()
        return session_id

    async def asked(
        self,
        owner: str,
        session: SessionRecord | None,
        answers: Sequence[ApprovalAnswer],
        caller: Caller | None = None,
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
            if question.is_expired(self._clock.now()):
                if self._expire is not None:
                    await self._expire(question)
                raise _expired()
            if not question.waits or question.status not in ("pending", status_of(given)):
                raise answered()
            if question.terms is not None and question.status == "pending":
                if caller is None:
                    raise unknown()
                voter = Voter(identity=caller.identity, key=owner, claims=caller.claims)
                await self._decisions.need_deciding(question, given, voter)
        return questions

    def complete(self, questions: Sequence[PendingApproval]) -> list[PendingApproval]:
        """Return new questions with what their tools take at present, and with the end of their time."""
        return self._decisions.complete(questions, self._lifetime)

    def need_unchanged(self, questions: Sequence[PendingApproval], answers: Sequence[ApprovalAnswer]) -> None:
        """Refuse a yes to a call that is not the one that was shown; a no runs nothing, and always counts."""
        for question, given in zip(questions, answers, strict=True):
            if given.approved and self._decisions.has_changed(question):
                raise _changed()

    async def show(self, owner: str, session: SessionRecord | None, ids: dict[str, str], value: T) -> T:
        """Return an update or a result with ids of ours for its questions; `ids` has those of this run, and gets more.

        A question that the session has asked before, and that still waits, keeps the id under which it was shown.
        """
        for request in requests_in(value):
            if isinstance(request.id, str) and request.id not in ids:
                asked = await asked_as(self._store, owner, session, request.id)
                known = self._same(asked, digest(request))
                ids[request.id] = self._ids.new("apr") if known is None else known.approval_id
        return with_shown_ids(value, ids)

    def _same(self, asked: Sequence[PendingApproval], digest: str) -> PendingApproval | None:
        """Return the last question of those asked before that is the same, and may come again.

        One that was decided a moment ago may: a target that goes on with the answer to another question repeats it,
        until it has heard its answer too.
        """
        for question in reversed(asked):
            is_open = question.waits and question.status != "cancelled"
            if compare_digest(question.digest, digest) and (is_open or self._may_repeat):
                return question
        return None

    async def new(
        self, session: SessionRecord | None, questions: Sequence[PendingApproval], ids: Mapping[str, str]
    ) -> list[PendingApproval]:
        """Return the questions that are not stored yet, with ids of ours; the target may not use one of its ids twice.

        A question of the session, or of one that it branched from, may come again until its answer was acted on; later
        only if the target repeats the requests that it waits for, as a workflow does. Any other question under the same
        id of the target's is an `ApprovalIdError`.
        """
        fresh: list[PendingApproval] = []
        for question in questions:
            asked = await asked_as(self._store, question.owner, session, question.target_id)
            if self._same(asked, question.digest) is not None:
                continue
            if asked:
                raise taken(question)
            fresh.append(question.replace(approval_id=ids[question.target_id]))
        return fresh

    async def take(
        self,
        owner: str,
        answers: Sequence[ApprovalAnswer],
        caller: Caller | None = None,
        event: InboxItem | None = None,
    ) -> str:
        """Record the decisions, all or none, and return the attempt that may act on them.

        What is said to the `event` that they came with is written with them.
        """
        now, attempt = self._clock.now(), new_secret()
        questions = [await self._store.approvals.get(owner, given.approval_id) for given in answers]
        known = [question for question in questions if question is not None]
        if len(known) < len(questions):
            raise answered()
        note, finish = await self._decisions.note_answers(known, answers, caller, event)
        try:
            async with self._store.transaction() as transaction:
                for given in answers:
                    transaction.decide_approval(
                        owner, given.approval_id, status_of(given), at=now, reason=given.reason, attempt=attempt
                    )
                note(transaction)
        except StoreError:
            raise answered() from None
        await finish()
        return attempt

    async def _question(self, owner: str, session: SessionRecord, answer: ApprovalAnswer) -> PendingApproval:
        question = await self._store.approvals.get(owner, answer.approval_id)
        if question is None or not await descends_from(self._store, session, question.session_id):
            raise unknown()
        return question


def resumed(questions: Sequence[PendingApproval], answers: Sequence[ApprovalAnswer]) -> list[Message]:
    """Return the messages that resume a run with answers."""
    return [answer(question, given.approved, given.reason) for question, given in zip(questions, answers, strict=True)]


def unknown() -> NotFoundError:
    """Make the refusal of an answer to a question that is not there, or is not the caller's."""
    return NotFoundError("There is no such approval.", param="approvals")


def answered() -> ConflictError:
    """Make the refusal of an answer to a question that was answered."""
    return ConflictError("This approval was answered before.", code=ANSWERED, param="approvals")


def refused(decision: Decision) -> RequestError | None:
    """Return the refusal of an answer that was not recorded; `None` for one that was."""
    if decision.outcome in ("recorded", "needs_more"):
        return None
    if decision.outcome == "changed":
        return _changed()
    if decision.outcome == "not_yours" or decision.approval is None:
        return unknown()
    return _expired() if decision.approval.reason == EXPIRED else answered()


def _changed() -> ConflictError:
    return ConflictError(_CHANGED, code="approval_changed", param="approvals")


def _expired() -> ConflictError:
    return ConflictError("This answer comes too late.", code="approval_expired", param="approvals")
