"""Accepts answers to approvals. Each answer counts once, and only for the call of its question."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from hmac import compare_digest
from typing import Any, TypeVar

from agent_framework import Message

from frontdesk.approvals.decisions import Decisions
from frontdesk.approvals.extraction import answer as answer_content
from frontdesk.approvals.extraction import build_taken_error, digest
from frontdesk.approvals.records import Voter, get_status
from frontdesk.clock import Clock
from frontdesk.concurrency.timeouts import until_available
from frontdesk.errors import (
    ConflictError,
    InvalidRequestError,
    LostRunError,
    NotFoundError,
    RequestError,
    SessionBusyError,
    StoreError,
    StoreUnavailableError,
)
from frontdesk.framework.approval_ids import requests_in, with_shown_ids
from frontdesk.framework.contents import stamp
from frontdesk.framework.workflow_requests import REQUEST_INFO
from frontdesk.ids import Ids, new_secret
from frontdesk.interfaces.channel import SettleAnswers
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.interfaces.target import GivesUpQuestions, Target
from frontdesk.loggers import runs as log
from frontdesk.models.approval import ANSWERED, EXPIRED, ApprovalAnswer, Decision, PendingApproval
from frontdesk.models.base import FrozenStruct
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import AdmittedRequest, ChannelSession
from frontdesk.models.session import Lease, SessionRecord
from frontdesk.sessions.job import Job
from frontdesk.sessions.session_list import descends_from, list_asked_as
from frontdesk.sessions.snapshot import rewrite
from frontdesk.sessions.turn import RecordsBeginning
from frontdesk.sessions.turns import Turns

_RETRY_INTERVAL_SECONDS = 1.0
_MAX_EXPIRY_TRIES = 3


class ApprovalAttempt:
    """One attempt to act on answers. Until it has begun, another attempt can use the same answers.

    An attempt is not a run: restarting a run, or retrying it under the same id, makes another attempt.
    """

    begun = False
    failure: BaseException | None = None
    """The error with which the beginning could not be written; then the attempt does nothing."""

    def __init__(
        self,
        store: HostStateStore,
        owner: str,
        answers: Sequence[ApprovalAnswer],
        attempt: str,
        beginning: RecordsBeginning | None = None,
    ) -> None:
        """Accept `beginning` for a run that is not in the store yet."""
        self._store = store
        self._beginning_record = beginning
        self._owner = owner
        self._answers = answers
        self._attempt = attempt
        self._beginning = asyncio.Lock()

    async def begin(self, job: Job | None) -> None:
        """Mark the answers as used, in one transaction with the start of the run. This happens before they are used."""
        # Of several tools at once, none goes ahead before it is written, nor after that has failed.
        async with self._beginning:
            if self.failure is not None:
                raise self.failure
            if self.begun:
                return
            try:
                await self._write(job)
            except BaseException as error:
                self.failure = error
                raise
            self.begun = True

    async def _write(self, job: Job | None) -> None:
        if job is not None and job.guarded:
            await job.begin(self.use_up)
            return
        if job is None and self._beginning_record is not None:
            await self._beginning_record.write(self.use_up)
            return
        async with self._store.transaction() as transaction:
            self.use_up(transaction)

    def use_up(self, transaction: StateTransaction) -> None:
        """Mark the answers as used in a transaction. It fails if another attempt has them."""
        for answer in self._answers:
            transaction.begin_approval(self._owner, answer.approval_id, self._attempt)

    async def give_back(self) -> None:
        """Release the answers if a failed start may have been written."""
        if self.failure is None or isinstance(self.failure, StoreError):
            return
        tries = iter(range(1, _MAX_EXPIRY_TRIES))

        async def write() -> None:
            record = self._beginning_record
            take_back = None if record is None else await record.find_written()
            async with self._store.transaction() as transaction:
                for answer in self._answers:
                    transaction.release_approval(self._owner, answer.approval_id, self._attempt)
                if take_back is not None:
                    take_back(transaction)

        try:
            # Another process that has claimed the run ends it as interrupted.
            with suppress(LostRunError):
                await until_available(write, pause=_RETRY_INTERVAL_SECONDS, give_up=lambda: next(tries, None) is None)
        except StoreUnavailableError:
            log.error("failed to release an unused approval answer, it may count as used")


T = TypeVar("T")
Expire = Callable[[PendingApproval], Awaitable[None]]

_MAX_TRIES = 100
"""The number of times that answers are recorded again because something has changed meanwhile."""
_CHANGED = "The tool or its arguments have changed since the approval was requested. Ask again."


class ApprovalAnswers:
    """Finds answered questions, records answers, and matches new questions to known ones."""

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
        """Set `may_repeat` for a target that repeats its pending requests, such as a workflow.

        A question without an answer for `lifetime` seconds is rejected. `expire` is called with expired questions.
        """
        self._store = store
        self._clock = clock
        self._ids = ids
        self._decisions = decisions
        self._may_repeat = may_repeat
        self._lifetime = lifetime
        self._expire = expire

    async def find(self, admitted: AdmittedRequest, settle: SettleAnswers | None = None) -> AdmittedRequest:
        """Return the request with its valid answers, and with the session that asked if it names none.

        All questions must belong to the owner of the request. Otherwise raise `NotFoundError`.
        """
        if settle is not None:
            pending = await self._store.approvals.pending(admitted.owner)
            admitted = admitted.with_request(approvals=tuple(await settle(admitted.request.approvals, pending)))
        request = admitted.request
        session = request.session or ChannelSession()
        if request.previous_run_id is not None or session.key or session.conversation_id or session.session_id:
            return admitted
        session_id = await self._find_session(admitted.owner, request.approvals)
        return admitted.with_request(session=session.replace(session_id=session_id))

    async def _find_session(self, owner: str, answers: Sequence[ApprovalAnswer]) -> str:
        questions = [await self._store.approvals.get(owner, given.approval_id) for given in answers]
        sessions = {None if question is None else question.session_id for question in questions}
        session_id = sessions.pop() if len(sessions) == 1 else None
        if session_id is None:
            raise unknown()
        return session_id

    async def find_questions(
        self,
        owner: str,
        session: SessionRecord | None,
        answers: Sequence[ApprovalAnswer],
        caller: Caller | None = None,
    ) -> list[PendingApproval]:
        """Return the answered questions. One foreign, unknown or repeated answer rejects all of them.

        An answer is repeated once the first one was acted on. Until then, the same answer is accepted again.
        Each answer to an expired question fails with `approval_expired`, not only the first.
        """
        if session is None:
            raise InvalidRequestError("An approval answer requires the session of the approval.", param="approvals")
        _require_distinct(answers)
        questions = [await self._question(owner, session, given) for given in answers]
        return await self._require_answerable(owner, questions, answers, caller)

    async def check(self, admitted: AdmittedRequest) -> list[PendingApproval]:
        """Reject answers that cannot take effect, before their run is queued. Return the answered questions.

        The run checks them again when it starts, together with its session.
        """
        owner, answers = admitted.owner, admitted.request.approvals
        _require_distinct(answers)
        questions: list[PendingApproval] = []
        for given in answers:
            question = await self._store.approvals.get(owner, given.approval_id)
            if question is None:
                raise unknown()
            questions.append(question)
        questions = await self._require_answerable(owner, questions, answers, admitted.caller)
        self.require_unchanged(questions, answers)
        return questions

    async def find_chain(self, owner: str, answers: Sequence[ApprovalAnswer]) -> str | None:
        """Return the chain of the first question that is answered, or None if it is unknown."""
        question = await self._store.approvals.get(owner, answers[0].approval_id)
        return None if question is None else question.chain_id

    async def _require_answerable(
        self,
        owner: str,
        questions: Sequence[PendingApproval],
        answers: Sequence[ApprovalAnswer],
        caller: Caller | None,
    ) -> list[PendingApproval]:
        questions = [await self._expire_if_due(question) for question in questions]
        for question, given in zip(questions, answers, strict=True):
            if not _accepts(question, given):
                raise _build_closed_error(question)
            if question.terms is not None and question.status == "pending":
                if caller is None:
                    raise unknown()
                await self._decisions.require_eligible(question, given, Voter.of_owner(caller, owner))
        return questions

    def complete(self, questions: Sequence[PendingApproval]) -> list[PendingApproval]:
        """Add the current tool schemas and the expiry time to new questions."""
        return self._decisions.complete(questions, self._lifetime)

    def require_unchanged(self, questions: Sequence[PendingApproval], answers: Sequence[ApprovalAnswer]) -> None:
        """Reject an approval if the call has changed since it was displayed. Rejections are always accepted."""
        for question, given in zip(questions, answers, strict=True):
            if given.approved and self._decisions.has_changed(question):
                raise _build_changed_error()

    async def show(self, owner: str, session: SessionRecord | None, ids: dict[str, str], value: T) -> T:
        """Replace the question ids in an update or result by host ids. `ids` maps those of this run and is extended.

        A pending question that the session asked before keeps the id under which it was displayed.
        """
        for request in requests_in(value):
            if isinstance(request.id, str) and request.id not in ids:
                asked = await list_asked_as(self._store, owner, session, request.id)
                known = self._same(asked, digest(request))
                ids[request.id] = self._ids.new("apr") if known is None else known.approval_id
        return with_shown_ids(value, ids)

    def _same(self, asked: Sequence[PendingApproval], digest: str) -> PendingApproval | None:
        """Return the last equal question that was asked before and may be repeated.

        A just-decided question may be repeated: a target that resumes with the answer to another question repeats it
        until it has received its answer too.
        """
        for question in reversed(asked):
            is_open = question.waits and question.status != "cancelled"
            if compare_digest(question.digest, digest) and (is_open or self._may_repeat):
                return question
        return None

    async def new(
        self, session: SessionRecord | None, questions: Sequence[PendingApproval], ids: Mapping[str, str]
    ) -> list[PendingApproval]:
        """Return the unstored questions with host ids. The target must not use one of its ids twice.

        A question of the session, or of a session it branched from, may be repeated until its answer was acted on.
        Later it may only be repeated if the target repeats pending requests, as a workflow does. Any other question
        under the same target id raises `ApprovalIdError`.
        """
        fresh: list[PendingApproval] = []
        for question in questions:
            asked = await list_asked_as(self._store, question.owner, session, question.target_id)
            if self._same(asked, question.digest) is not None:
                continue
            if asked:
                raise build_taken_error(question)
            fresh.append(question.replace(approval_id=ids[question.target_id]))
        return fresh

    async def take(
        self,
        owner: str,
        answers: Sequence[ApprovalAnswer],
        caller: Caller | None = None,
        event: InboxItem | None = None,
    ) -> str:
        """Record all decisions or none, and return the id of the attempt that may act on them.

        Replies to their `event` are written with them.
        """
        for _ in range(_MAX_TRIES):
            attempt = await self._take_once(owner, answers, caller, event)
            if attempt is not None:
                return attempt
        raise build_answered_error()

    def build_attempt(
        self, owner: str, answers: Sequence[ApprovalAnswer], attempt: str, beginning: RecordsBeginning | None
    ) -> ApprovalAttempt:
        return ApprovalAttempt(self._store, owner, answers, attempt, beginning)

    async def _take_once(
        self, owner: str, answers: Sequence[ApprovalAnswer], caller: Caller | None, event: InboxItem | None
    ) -> str | None:
        """Record the decisions. Return None if another request or voter has changed something meanwhile."""
        now, attempt = self._clock.now(), new_secret()
        questions: list[PendingApproval] = []
        for given in answers:
            question = await self._store.approvals.get(owner, given.approval_id)
            if question is None or not _accepts(question, given):
                raise build_answered_error() if question is None else _build_closed_error(question)
            questions.append(question)
        note, finish = await self._decisions.note_answers(questions, answers, caller, event)
        try:
            async with self._store.transaction() as transaction:
                note(transaction)
                for question, given in zip(questions, answers, strict=True):
                    # Of several requests with the same answer, the first has written its vote and its audit line.
                    transaction.decide_approval(
                        owner,
                        given.approval_id,
                        get_status(given),
                        at=now,
                        reason=given.reason,
                        attempt=attempt,
                        first=question.status == "pending",
                    )
        except StoreError:
            return None
        await finish()
        return attempt

    async def _expire_if_due(self, question: PendingApproval) -> PendingApproval:
        """Return a question, rejected if its deadline has passed and it has not been answered meanwhile."""
        if not question.is_expired(self._clock.now()):
            return question
        if self._expire is not None:
            await self._expire(question)
        # Another request may have been first with its answer.
        fresh = await self._store.approvals.get(question.owner, question.approval_id)
        if fresh is None or fresh.status == "pending":
            raise _build_expired_error()
        return fresh

    async def _question(self, owner: str, session: SessionRecord, answer: ApprovalAnswer) -> PendingApproval:
        question = await self._store.approvals.get(owner, answer.approval_id)
        if question is None or not await descends_from(self._store, session, question.session_id):
            raise unknown()
        return question


def _require_distinct(answers: Sequence[ApprovalAnswer]) -> None:
    if len({given.approval_id for given in answers}) != len(answers):
        raise InvalidRequestError("An approval can be answered only once per request.", param="approvals")


def build_resume_messages(questions: Sequence[PendingApproval], answers: Sequence[ApprovalAnswer]) -> list[Message]:
    """Return the messages that resume a run with answers."""
    return [
        answer_content(question, given.approved, given.reason)
        for question, given in zip(questions, answers, strict=True)
    ]


def _accepts(question: PendingApproval, answer: ApprovalAnswer) -> bool:
    """Return True if an answer counts. To an expired question, only the rejection by the host does."""
    if not question.waits or question.status not in ("pending", get_status(answer)):
        return False
    return question.status == "pending" or question.reason != EXPIRED or answer.reason == EXPIRED


def _build_closed_error(question: PendingApproval) -> ConflictError:
    """Return the error for an answer to a question that does not accept it any more."""
    return _build_expired_error() if question.reason == EXPIRED else build_answered_error()


def unknown() -> NotFoundError:
    return NotFoundError("Approval not found.", param="approvals")


def build_answered_error() -> ConflictError:
    return ConflictError("This approval has already been answered.", code=ANSWERED, param="approvals")


def find_error(decision: Decision) -> RequestError | None:
    """Return the error for an answer that was not recorded, or None if it was recorded."""
    if decision.outcome in ("recorded", "needs_more"):
        return None
    if decision.outcome == "changed":
        return _build_changed_error()
    if decision.outcome == "not_yours" or decision.approval is None:
        return unknown()
    return _build_closed_error(decision.approval)


def _build_changed_error() -> ConflictError:
    return ConflictError(_CHANGED, code="approval_changed", param="approvals")


def _build_expired_error() -> ConflictError:
    return ConflictError("This approval has expired.", code="approval_expired", param="approvals")


class AbandonedSession(FrozenStruct, frozen=True, kw_only=True):
    questions: int
    record: SessionRecord
    lease: Lease
    messages: Sequence[Any]

    def note(self, transaction: StateTransaction) -> None:
        """Write the session in the transaction of the event that abandons its questions."""
        transaction.save_session(self.record, self.lease)
        transaction.append_history(self.record.session_id, self.messages)


FindSession = Callable[[], Awaitable[SessionRecord | None]]


class OpenQuestions:
    """The open workflow questions of one session, as visible to one person."""

    def __init__(
        self,
        find: FindSession,
        identity: ChannelIdentity,
        *,
        target: Target,
        store: HostStateStore,
        turns: Turns,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._find, self._identity = find, identity
        self._target, self._store, self._turns, self._clock, self._ids = target, store, turns, clock, ids

    @asynccontextmanager
    async def abandon(self) -> AsyncGenerator[AbandonedSession | None]:
        """Lock the session and yield it without its questions. Yield None if it has none or is busy with a turn."""
        target, before = self._target, await self._find()
        if not isinstance(target, GivesUpQuestions) or before is None or before.checkpoint is None:
            yield None
            return
        async with AsyncExitStack() as stack:
            lease = None
            with suppress(SessionBusyError):
                lease = await stack.enter_async_context(self._turns.hold(before.session_id))
            yield None if lease is None else await self._without_questions(target, before, lease)

    async def _without_questions(
        self, target: GivesUpQuestions, before: SessionRecord, lease: Lease
    ) -> AbandonedSession | None:
        record = await self._store.sessions.get(before.owner, before.session_id)
        # A turn that came meanwhile has answered, and may have asked something else.
        if record is None or record.checkpoint != before.checkpoint:
            return None
        given_up = await target.give_up(record)
        if given_up is None:
            return None
        ids, now = self._ids, self._clock.now()
        identity = {"channel": self._identity.channel, "native_id": self._identity.native_id}
        hosting = {"channel": self._identity.channel, "identity": identity}
        messages = [stamp(message, hosting, ids.new("msg")) for message in given_up.messages]
        changed = record.replace(
            checkpoint=given_up.checkpoint,
            client_calls=tuple(call for call in record.client_calls if call.name != REQUEST_INFO),
            messages=record.messages + len(messages),
            updated_at=now,
            state=await rewrite(record.state),
        )
        return AbandonedSession(questions=given_up.questions, record=changed, lease=lease, messages=messages)
