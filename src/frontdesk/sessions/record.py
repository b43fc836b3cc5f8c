"""Writes the end of a run: result, history, session, approvals and deliveries in one transaction."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

from agent_framework import AgentResponse, Content, Message

from frontdesk.clock import Clock
from frontdesk.errors import (
    CodecError,
    LostEventError,
    LostRunError,
    RunExistsError,
    StaleTurnError,
    StoreUnavailableError,
)
from frontdesk.framework.client_outputs import in_given_order
from frontdesk.framework.contents import RUN_ID, as_messages, build_said, stamp
from frontdesk.framework.workflow_requests import REQUEST_INFO, build_call_id, calls_in, extract_requests
from frontdesk.ids import Ids
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.loggers import runs as log
from frontdesk.models.approval import AuditLine, PendingApproval, name_people
from frontdesk.models.conversation import ConversationItem
from frontdesk.models.delivery import Delivery, Route
from frontdesk.models.reply import Address, ResponseTarget
from frontdesk.models.request import AdmittedRequest
from frontdesk.models.run import INTERRUPTED, RunFailure, RunRecord, RunStatus
from frontdesk.models.session import ClientCall, SessionRecord
from frontdesk.serialization.codec import encode
from frontdesk.serialization.json_tree import Prepared, Shared
from frontdesk.sessions.items import TurnItems
from frontdesk.sessions.job import Job
from frontdesk.sessions.snapshot import NOTHING, Snapshots, release, rewrite
from frontdesk.sessions.turn import AnswerAttempt, Turn

_MAX_TEXT_LENGTH = 10_000


def salvage(run: RunRecord) -> RunRecord:
    """Return the run without the parts that cannot be stored."""
    messages: Any = run.input
    return run.replace(
        input=salvage_messages(cast("list[Message]", messages)) if isinstance(messages, list) else None,
        metadata=_storable_fields(run.metadata),
        details=_storable_fields(run.details),
    )


def salvage_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages. Those that cannot be stored are replaced by the beginning of their text."""
    return [message if _is_storable(message) else _shorten(message) for message in messages]


def _shorten(message: Message) -> Message:
    text = message.text[:_MAX_TEXT_LENGTH].encode(errors="replace").decode()
    kept = ((name, message.additional_properties.get(name)) for name in ("hosting", RUN_ID))
    properties = {name: value for name, value in kept if value is not None and _is_storable(value)}
    return Message(
        str(message.role),
        [Content.from_text(text)],
        message_id=message.message_id,
        additional_properties=properties,
    )


def _storable_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if _is_storable(value)}


def _is_storable(value: Any) -> bool:
    try:
        encode(value)
    except CodecError:
        return False
    return True


CANCELLED = RunFailure(code="cancelled", message="The run was cancelled.")
INTERRUPTION = RunFailure(code=INTERRUPTED, message="The run was interrupted: the process that worked on it ended.")
_TAKEN = RunFailure(code="cancelled", message="The run belongs to another process.")
_LATE = RunFailure(code="cancelled", message="The run ended after its session lease was lost.")


class ListWatcherDeliveries(Protocol):
    """Returns the deliveries for the watchers of a run that ends with a status. `asks` is True if it requests input."""

    async def __call__(self, run: RunRecord, status: RunStatus, *, asks: bool) -> Sequence[Delivery]: ...


class Recorder:
    def __init__(
        self,
        store: HostStateStore,
        ids: Ids,
        clock: Clock,
        items: TurnItems | None = None,
        snapshots: Snapshots | None = None,
        list_watcher_deliveries: "ListWatcherDeliveries | None" = None,
    ) -> None:
        self._list_watcher_deliveries = list_watcher_deliveries
        self._store = store
        self._items = items
        self._snapshots = snapshots or Snapshots()
        self._ids = ids
        self._clock = clock

    @property
    def has_other_hosts(self) -> bool:
        return self._store.lease_seconds is not None

    def begin(self, turn: Turn, resumed: Sequence[Message] = ()) -> RunRecord:
        """Return the record of a starting run, with any answers that resume it. Write nothing."""
        admitted, request, job = turn.admitted, turn.admitted.request, turn.job
        hosting = _question_hosting(admitted)
        if job is not None and job.messages is not None:
            turn.messages = list(job.messages)
        elif isinstance(request.input, str) and not resumed:
            turn.messages = [build_said(request.input, hosting, self._ids.new("msg"), admitted.run_id)]
        else:
            messages = in_given_order(resumed, as_messages(request.input) or (), request.client_outputs)
            turn.messages = [stamp(message, hosting, self._ids.new("msg"), admitted.run_id) for message in messages]
        session = turn.parent_session or turn.record
        return RunRecord(
            run_id=admitted.run_id,
            owner=admitted.owner,
            channel=request.channel,
            status="running",
            created_at=admitted.admitted_at,
            session_id=None if session is None else session.session_id,
            session_key=None if session is None else session.key or None,
            previous_run_id=request.previous_run_id,
            background=request.background,
            stored=request.store,
            stream=request.stream,
            input=turn.messages,
            metadata=request.metadata,
            details=request.details,
            request_hash=request.request_hash,
            root_run_id=admitted.root_run_id,
            unknown_fields=None if job is None else job.unknown_fields,
        )

    async def record_start(self, turn: Turn, run: RunRecord) -> None:
        """Record the start of a background run before it starts."""
        if turn.job is not None:
            async with self._store.transaction() as transaction:
                transaction.save_run(run)
                transaction.save_job(turn.job.run)

    async def refuse_known(self, admitted: AdmittedRequest, run_id: str) -> None:
        """Reject a run id in the request that its owner has already used."""
        if await self.is_known(admitted.owner, run_id):
            raise RunExistsError

    async def is_known(self, owner: str, run_id: str) -> bool:
        return await self.find(owner, run_id) is not None

    async def find(self, owner: str, run_id: str) -> RunRecord | None:
        return await self._store.runs.get(owner, run_id)

    async def record_completed(
        self, turn: Turn, run: RunRecord, result: Any, route: Route, questions: Sequence[PendingApproval] = ()
    ) -> RunRecord:
        """Write the end of a completed run. If an end is already recorded, return that one."""
        outcome = turn.outcome
        if (outcome.writing or outcome.recorded is not None) and (recorded := await outcome.end()) is not None:
            return recorded
        hosting = answer_hosting(turn.admitted.request.channel, route)
        staged = turn.messages if turn.staged is None else turn.staged
        kept = [
            message if "hosting" in message.additional_properties else stamp(message, hosting) for message in staged
        ]
        if kept and RUN_ID not in kept[0].additional_properties:
            # Nothing came in that could name the run, or the target has left it out.
            kept[0] = stamp(kept[0], kept[0].additional_properties["hosting"], run_id=run.run_id)
        calls = _client_calls(turn, result)
        try:
            changes = {
                "status": "completed",
                "result": result,
                "client_calls": _still_waiting(turn) + calls if turn.parent_session is not None else calls,
                "checkpoint": turn.checkpoint,
            }
            return await self._write(turn, run, kept, questions, changes)
        except StaleTurnError:
            if turn.event is not None:
                # The event was acknowledged and is not answered: it goes back to the inbox.
                raise
            log.warning("result dropped, the session lease was lost: run_id=%s", run.run_id)
            return await self.record_end(turn, run, "cancelled", _LATE)

    async def record_end(
        self,
        turn: Turn,
        run: RunRecord,
        status: RunStatus,
        failure: RunFailure,
        deliveries: Sequence[Delivery] = (),
    ) -> RunRecord:
        """Write the end of a failed or cancelled run. Its input stays in the history with that status.

        If an end is already written, or being written, return that one.
        """
        if turn.outcome.is_ending() and (recorded := await turn.outcome.end()) is not None:
            return recorded
        turn.outcome.deliveries = deliveries
        hosting = {**_question_hosting(turn.admitted), "status": status}
        asked = [stamp(message, hosting) for message in _messages_to_keep(turn)]
        changes = {"status": status, "failure": failure, "stopped_at": turn.checkpoint}
        try:
            return await self._write_end(turn, run, asked, changes)
        except CodecError as error:
            log.error("approval request cannot be stored: run_id=%s: %s", run.run_id, error)
            return await self._write_end(turn, salvage(run), salvage_messages(asked), changes)

    async def _write_end(
        self, turn: Turn, run: RunRecord, asked: Sequence[Message], changes: Mapping[str, Any]
    ) -> RunRecord:
        try:
            return await self._write(turn, run, asked, (), {**changes})
        except StaleTurnError:
            turn.lease = None
            return await self._write(turn, run, asked, (), {**changes})
        except RunExistsError:
            if (
                turn.outcome.may_be_recorded
                and (known := await self._store.runs.get(run.owner, run.run_id)) is not None
            ):
                turn.outcome.recorded = known
                return known
            log.warning("run not recorded, its id is used by another run of the caller: run_id=%s", run.run_id)
            return run.replace(**changes)

    async def _write(
        self,
        turn: Turn,
        run: RunRecord,
        messages: Sequence[Message],
        questions: Sequence[PendingApproval],
        changes: dict[str, Any],
    ) -> RunRecord:
        outcome = turn.outcome
        outcome.writing = True
        changes["finished_at"] = self._clock.now()
        try:
            if turn.live is not None:
                outcome.deliveries = await turn.live.end(outcome.deliveries, changes["status"])
            if not turn.admitted.request.store:
                await self._send(turn, changes)
                outcome.recorded = run.replace(**changes)
                return outcome.recorded
            session, items = turn.record, ()
            if session is not None and session.openai_conversation_id is not None and self._items is not None:
                items = await self._items.of(turn.admitted, run.replace(**changes), session.openai_conversation_id)
            if session is not None and turn.lease is not None:
                blank = turn.parent_session is None and turn.is_blank()
                changes["state"] = NOTHING if blank else await self._state_after(turn, session, changes["status"])
            shared, known = turn.shared, None if session is None else session.shared_state
            if shared is not None and (shared.is_set or known is not None):
                changes["shared_state"] = shared.text
            if self._list_watcher_deliveries is not None and await self._store.watchers.may_exist():
                asks = bool(questions or changes.get("client_calls"))
                outcome.watcher_deliveries = await self._list_watcher_deliveries(run, changes["status"], asks=asks)
            if turn.job is not None:
                written = await self._write_job(turn.job, turn, run, messages, items, questions, changes)
            else:
                async with self._store.transaction() as transaction:
                    written = self._note(transaction, turn, run, messages, items, questions, changes)
            outcome.recorded = written
        except LostEventError:
            outcome.recorded = self._drop_taken(turn, run)
        except (StoreUnavailableError, asyncio.CancelledError):
            outcome.may_be_recorded = True
            raise
        finally:
            if type(changes.get("state")) is Prepared or type(run.details) is Prepared:
                release(changes.get("state"), run.details)
            outcome.mark_written()
        return outcome.recorded

    async def _state_after(self, turn: Turn, record: SessionRecord, status: RunStatus) -> Mapping[str, Any]:
        if turn.parent_session is not None:
            return await rewrite(record.state)
        if turn.session is None:
            return NOTHING
        return await self._snapshots.after(turn.session, record, completed=status == "completed")

    async def _send(self, turn: Turn, changes: Mapping[str, Any]) -> None:
        uses_up = _uses_up(turn, changes)
        if turn.outcome.deliveries or turn.event is not None or uses_up:
            async with self._store.transaction() as transaction:
                self._note_inbox_and_outbox(transaction, turn, changes)
                if uses_up is not None:
                    uses_up.use_up(transaction)

    async def _write_job(self, job: Job, turn: Turn, run: RunRecord, *noted: Any) -> RunRecord:
        try:
            async with job.write_events() as write, self._store.transaction() as transaction:
                write(transaction)
                transaction.end_job(job.run)
                written = self._note(transaction, turn, run, *noted)
            turn.outcome.settled = True
            return written
        except LostRunError:
            return self._drop_taken(turn, run)

    def _drop_taken(self, turn: Turn, run: RunRecord) -> RunRecord:
        turn.outcome.drop_deliveries()
        log.warning("run taken over by another process, dropping this result: run_id=%s", run.run_id)
        return run.replace(finished_at=self._clock.now(), status="cancelled", failure=_TAKEN, result=None)

    def _note(
        self,
        transaction: StateTransaction,
        turn: Turn,
        run: RunRecord,
        messages: Sequence[Message],
        items: Sequence[ConversationItem],
        questions: Sequence[PendingApproval],
        changes: dict[str, Any],
    ) -> RunRecord:
        outcome, session, now = turn.outcome, turn.record, changes["finished_at"]
        if turn.rebuilt_history:
            messages = [*turn.rebuilt_history, *messages]
        if session is not None and turn.lease is not None:
            session = _after(session, len(messages), now, changes)
            transaction.save_session(session, turn.lease, keep=turn.is_busy())
            transaction.append_history(session.session_id, messages)
            if items:
                transaction.add_items(session.owner, items)
            changes["messages"], changes["checkpoint"] = session.messages, session.checkpoint
        run = run.replace(**changes)
        is_chosen = turn.admitted.request.run_id is not None
        # What another end may have written before must not be in the session twice.
        transaction.save_run(run, new=turn.job is None and (is_chosen or outcome.may_be_recorded))
        if questions and outcome.requester is not None:
            # An unlink cancels the questions of a family: this makes it come before or after these, never between.
            transaction.remember_identity(outcome.requester, instead_of=outcome.requester)
        for question in questions:
            transaction.add_approval(question)
            if question.terms is not None:
                transaction.add_audit(_build_asked_line(question, now))
        for delivery in outcome.approval_deliveries if questions else ():
            transaction.add_delivery(delivery)
        for delivery in outcome.watcher_deliveries:
            transaction.add_delivery(delivery)
        uses_up = None if turn.answering is None else _uses_up(turn, changes)
        if uses_up is not None:
            uses_up.use_up(transaction)
        if outcome.deliveries or turn.event is not None or turn.live is not None:
            self._note_inbox_and_outbox(transaction, turn, changes)
        return run

    def _note_inbox_and_outbox(self, transaction: StateTransaction, turn: Turn, changes: Mapping[str, Any]) -> None:
        for delivery in turn.outcome.deliveries:
            transaction.add_delivery(delivery)
        if turn.event is not None:
            failure: RunFailure | None = changes.get("failure")
            transaction.finish(turn.event, error=None if failure is None else failure.code)
        if turn.live is not None:
            turn.live.close(transaction)


def _uses_up(turn: Turn, changes: Mapping[str, Any]) -> AnswerAttempt | None:
    """Return the answers that a result uses up, if no tool has. A rejection, for example, runs no tool."""
    if turn.answering is None or turn.answering.begun or changes["status"] != "completed":
        return None
    return turn.answering


def _messages_to_keep(turn: Turn) -> Sequence[Message]:
    """Return the messages without answers that were not acted on. Those may be repeated and recorded later."""
    if turn.answering is None or turn.answering.begun:
        return turn.messages
    return [
        message
        for message in turn.messages
        if all(content.type != "function_approval_response" for content in message.contents)
    ]


def _still_waiting(turn: Turn) -> tuple[ClientCall, ...]:
    """Return the client calls that a session still waits for, because a run left it for a branch."""
    return () if turn.parent_session is None or turn.record is None else turn.record.client_calls


def _client_calls(turn: Turn, result: Any) -> tuple[ClientCall, ...]:
    chain = turn.admitted.root_run_id or turn.admitted.run_id
    if not isinstance(result, AgentResponse):
        requests = calls_in(extract_requests(result))
        return tuple(ClientCall(call_id=build_call_id(call), name=REQUEST_INFO, root_run_id=chain) for call in requests)
    client_tools = turn.admitted.request.client_tools
    # Only a workflow that is run as an agent has saved a checkpoint, and it takes no tools.
    if not client_tools and turn.checkpoint is None:
        return ()
    offered = {REQUEST_INFO} if turn.checkpoint is not None else {tool.name for tool in client_tools}
    calls = [call for call in result.user_input_requests if call.type == "function_call" and call.name in offered]
    return tuple(ClientCall(call_id=str(call.call_id), name=str(call.name), root_run_id=chain) for call in calls)


def _after(session: SessionRecord, added: int, now: float, changes: Mapping[str, Any]) -> SessionRecord:
    return session.replace(
        updated_at=now,
        turns=session.turns + 1,
        messages=session.messages + added,
        state=changes["state"],
        client_calls=changes.get("client_calls", session.client_calls),
        checkpoint=changes.get("checkpoint") or session.checkpoint,
        shared_state=changes.get("shared_state") or session.shared_state,
    )


def _build_asked_line(question: PendingApproval, now: float) -> AuditLine:
    """Return the audit line that records who was asked for an approval by others."""
    terms = question.terms
    asked = "" if terms is None else name_people((*terms.approvers, *terms.asked))
    return AuditLine(
        at=now, owner=question.owner, subject=question.approval_id, action="asked", by=question.owner, reason=asked
    )


def _question_hosting(admitted: AdmittedRequest) -> Mapping[str, Any]:
    target, identity = admitted.request.response_target, admitted.identity
    # Hashing a target looks at every field; nearly all targets are `originating`.
    other = target if target.kind != "originating" else None
    return _build_hosting(admitted.request.channel, identity.channel, identity.native_id, other)


# Most messages of a person have the same arguments, and share one mapping.
@lru_cache(maxsize=1024)
def _build_hosting(
    channel: str, identity_channel: str, native_id: str, other: ResponseTarget | None
) -> Mapping[str, Any]:
    target = other or ResponseTarget()
    return Shared(
        channel=channel,
        identity={"channel": identity_channel, "native_id": native_id},
        response_target={
            "kind": target.kind,
            "names": list(target.names),
            **({"identities": _places(target.addresses)} if target.addresses else {}),
            "echo_input": target.echo_input,
        },
    )


@lru_cache(maxsize=1024)
def answer_hosting(channel: str, route: Route) -> Mapping[str, Any]:
    return Shared(
        originating_channel=channel,
        includes_originating=route.originating,
        intended_targets=_places(route.destinations),
        skipped_targets=[
            {
                "channel": skipped.address.channel,
                "native_id": skipped.address.native_id,
                "reason": skipped.reason,
                "code": skipped.code,
            }
            for skipped in route.skipped
        ],
        # Left out when false: this is stored with every answer, and hardly any is a fallback.
        **({"fallback": True} if route.fallback else {}),
    )


def _places(addresses: Sequence[Address]) -> list[dict[str, str]]:
    return [{"channel": address.channel, "native_id": address.native_id} for address in addresses]
