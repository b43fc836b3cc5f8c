"""Sends messages that no one asked for."""

from collections.abc import Collection, Sequence

from agent_framework import Content, Message

from frontdesk.abc.store import HostStateStore
from frontdesk.access.gate import Gate
from frontdesk.clock import Clock
from frontdesk.data.approval import AuditLine
from frontdesk.data.codec import to_json
from frontdesk.data.delivery import Delivery, Route
from frontdesk.data.identity import Caller, ChannelIdentity, PushGroup
from frontdesk.data.response_target import Address
from frontdesk.data.run import RunRecord
from frontdesk.data.session import SessionName, SessionRecord
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.errors import (
    CodecError,
    ConflictError,
    DeliveryExistsError,
    ForbiddenError,
    InvalidRequestError,
    UnsupportedError,
)
from frontdesk.ids import Ids
from frontdesk.kit.aio.current import current_turn
from frontdesk.kit.framework.messages import stamped
from frontdesk.kit.names import digest
from frontdesk.sessions.record import answer_hosting
from frontdesk.sessions.scope import tracked_name
from frontdesk.sessions.turns import Turns

_UNREACHABLE = "There is no channel on which this person can be spoken to first."


class ProactiveSender:
    """Sends a person a message that they did not ask for: to their history and the outbox, in one transaction."""

    def __init__(
        self,
        store: HostStateStore,
        gate: Gate,
        turns: Turns,
        planner: Planner,
        outbox: OutboxSender,
        ids: Ids,
        clock: Clock,
    ) -> None:
        self._store = store
        self._gate = gate
        self._turns = turns
        self._planner = planner
        self._outbox = outbox
        self._ids = ids
        self._clock = clock

    async def deliver(
        self, to: str | ChannelIdentity, message: str | Message, idempotency_key: str | None, by: str | None = None
    ) -> Sequence[Delivery]:
        """Send a message; return its parts. The same key again returns the parts of the first time.

        With `by`, the name of an operator, a line of the audit log is written with it.
        """
        message = _checked(message)
        owner, who = await self._person(to)
        key = _digest(owner, idempotency_key) if idempotency_key is not None else self._ids.new("own")
        earlier = await self._sent(key)
        if earlier:
            return earlier
        now = self._clock.now()
        run = RunRecord(
            run_id=f"run_{key}", owner=owner, channel=who.channel, status="completed", created_at=now, finished_at=now
        )
        way = Route(originating=False, destinations=(Address.of(who),))
        recorded = stamped(message, answer_hosting("", way), self._ids.new("msg"))
        group = await self._planner.group_of(who)
        rows = await self._planner.proactive(owner, who, [message], run, key, group)
        name = self._session_of(owner, who, group)
        session_id = await self._store.sessions.reserve(name, self._ids.new("ses"))
        _refuse_own_turn(session_id)
        async with self._turns.held(session_id) as lease:
            session = await self._store.sessions.get(name.owner, session_id) or SessionRecord(
                session_id=session_id,
                owner=name.owner,
                key=name.conversation_id or session_id,
                created_at=now,
                updated_at=now,
            )
            try:
                async with self._store.transaction() as transaction:
                    transaction.save_session(session.replace(messages=session.messages + 1, updated_at=now), lease)
                    transaction.append_history(session_id, [recorded])
                    for row in rows:
                        transaction.add_delivery(row, once=True)
                    if by is not None:
                        # A channel may make no parts of a message.
                        subject = rows[0].delivery_id if rows else run.run_id
                        transaction.add_audit(
                            AuditLine(at=now, owner=owner, subject=subject, action="delivered", by=by)
                        )
            except DeliveryExistsError:
                return await self._sent(key)
        await self._outbox.wake(rows)
        return rows

    def _session_of(self, owner: str, who: ChannelIdentity, group: PushGroup | None) -> SessionName:
        """Return the session that gets the message: the person's, or that of the group in which it is sent."""
        conversation_id = None if group is None else group.conversation_id
        return tracked_name(
            "per_user" if group is None else "per_conversation",
            owner=owner,
            channel=who.channel,
            conversation_id=conversation_id,
            group=group is not None,
        )

    async def _sent(self, key: str) -> Sequence[Delivery]:
        first = await self._store.outbox.get(f"dlv_{key}_0")
        if first is None:
            return ()
        rest = [await self._store.outbox.get(f"dlv_{key}_{part}") for part in range(1, first.parts)]
        return [part for part in (first, *rest) if part is not None]

    async def _person(self, to: str | ChannelIdentity) -> tuple[str, ChannelIdentity]:
        """Return whose history it is, and the identity to send to; refuse a person who may not come in."""
        if isinstance(to, ChannelIdentity):
            who = await self._planner.with_attributes(to)
        else:
            who = await self._planner.reach(to)
        if who is None:
            raise UnsupportedError(_UNREACHABLE)
        if who.channel not in self._planner.pushing:
            raise UnsupportedError(_silent(who.channel, self._planner.pushing))
        allowed = await self._gate.authorize(Caller(identity=who), who.channel)
        if isinstance(to, str):
            return to, who
        owner = allowed.isolation_key or await self._gate.issue(who)
        if not owner:
            raise ForbiddenError
        return owner, who


def _silent(channel: str, pushing: Collection[str]) -> str:
    able = f"those that can: {', '.join(sorted(pushing))}" if pushing else "this host has no channel that can"
    return f"There is no channel {channel!r} that can speak to people first; {able}."


def _refuse_own_turn(session_id: str) -> None:
    """Refuse a message to the session of the present turn, which holds it: waiting for it would never end."""
    turn = current_turn.get()
    if turn is not None and turn.record is not None and turn.record.session_id == session_id:
        raise ConflictError("This very conversation is in the middle of a turn; answer it instead.", code="own_turn")


def _checked(message: str | Message) -> Message:
    checked = Message("assistant", [Content.from_text(message)]) if isinstance(message, str) else message
    if checked.role != "assistant" or not checked.contents:
        raise InvalidRequestError("A message to a person has the role assistant, and says something.", param="message")
    try:
        to_json(checked)
    except CodecError as error:
        raise InvalidRequestError(f"The message can't be stored: {error}.", param="message") from None
    return checked


def _digest(owner: str, idempotency_key: str) -> str:
    return digest(f"{len(owner)}:{owner}:{idempotency_key}")[:32]
