"""Sends proactive messages."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from agent_framework import Content, Message

from frontdesk.access.gate import Gate
from frontdesk.access.recipients import Recipients
from frontdesk.chat.commands import parse_locale
from frontdesk.chat.i18n.texts import ENGLISH, Texts
from frontdesk.clock import Clock
from frontdesk.concurrency.current import current_turn
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.push import build_reference, read_payload, send
from frontdesk.errors import (
    CodecError,
    ConflictError,
    DeliveryExistsError,
    ForbiddenError,
    FrontdeskError,
    InvalidRequestError,
    UnsupportedError,
)
from frontdesk.framework.contents import stamp
from frontdesk.identifiers import digest
from frontdesk.ids import Ids
from frontdesk.interfaces.channel import Channel, ChannelCommand
from frontdesk.interfaces.linker import ObservesLinks
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import host as log
from frontdesk.models.approval import AuditLine
from frontdesk.models.delivery import Delivery, InboxItem, Route
from frontdesk.models.identity import ChannelIdentity, PushGroup
from frontdesk.models.reply import Address
from frontdesk.models.request import AdmittedRequest
from frontdesk.models.run import RunRecord
from frontdesk.models.session import SessionName, SessionRecord
from frontdesk.serialization.codec import to_json
from frontdesk.sessions.record import answer_hosting
from frontdesk.sessions.scope import build_tracked_name
from frontdesk.sessions.turns import Turns

_UNREACHABLE = "No channel can send messages to this person."


class ProactiveSender:
    """Sends a proactive message: writes it to the history and the outbox in one transaction."""

    def __init__(
        self,
        store: HostStateStore,
        gate: Gate,
        turns: Turns,
        planner: Planner,
        outbox: OutboxSender,
        ids: Ids,
        clock: Clock,
        recipients: Recipients,
    ) -> None:
        self._store = store
        self._recipients = recipients
        self._gate = gate
        self._turns = turns
        self._planner = planner
        self._outbox = outbox
        self._ids = ids
        self._clock = clock

    async def deliver(
        self, to: str | ChannelIdentity, message: str | Message, idempotency_key: str | None, by: str | None = None
    ) -> Sequence[Delivery]:
        """Send a message and return its parts. The same key again returns the parts of the first call.

        With `by`, the name of an operator, an audit log entry is written in the same transaction.
        """
        message = _check_message(message)
        owner, who = await self._person(to)
        key = _digest(owner, idempotency_key) if idempotency_key is not None else self._ids.new("own")
        earlier = await self._list_sent(key)
        if earlier:
            return earlier
        now = self._clock.now()
        run = RunRecord(
            run_id=f"run_{key}", owner=owner, channel=who.channel, status="completed", created_at=now, finished_at=now
        )
        way = Route(originating=False, destinations=(Address.of(who),))
        recorded = stamp(message, answer_hosting("", way), self._ids.new("msg"))
        group = await self._planner.get_group(who)
        rows = await self._planner.proactive(owner, who, [message], run, key, group)
        name = self._get_session(owner, who, group)
        session_id = await self._store.sessions.reserve(name, self._ids.new("ses"))
        _refuse_own_turn(session_id)
        async with self._turns.hold(session_id) as lease:
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
                return await self._list_sent(key)
        await self._outbox.wake(rows)
        return rows

    def _get_session(self, owner: str, who: ChannelIdentity, group: PushGroup | None) -> SessionName:
        """Return the session that gets the message: the person's, or that of the group to which it is sent."""
        conversation_id = None if group is None else group.conversation_id
        return build_tracked_name(
            "per_user" if group is None else "per_conversation",
            owner=owner,
            channel=who.channel,
            conversation_id=conversation_id,
            group=group is not None,
        )

    async def _list_sent(self, key: str) -> Sequence[Delivery]:
        first = await self._store.outbox.get(f"dlv_{key}_0")
        if first is None:
            return ()
        rest = [await self._store.outbox.get(f"dlv_{key}_{part}") for part in range(1, first.parts)]
        return [part for part in (first, *rest) if part is not None]

    async def _person(self, to: str | ChannelIdentity) -> tuple[str, ChannelIdentity]:
        """Return the owner of the history and the identity to send to. Rejects a person without access."""
        if isinstance(to, ChannelIdentity):
            who = await self._planner.with_attributes(to)
        else:
            who = await self._planner.reach(to)
        if who is None:
            raise UnsupportedError(_UNREACHABLE)
        if who.channel not in self._planner.pushing:
            raise UnsupportedError(_silent(who.channel, self._planner.pushing))
        allowed = await self._recipients.authorize(who)
        if isinstance(to, str):
            return to, who
        await self._recipients.require_known(who)
        owner = allowed.isolation_key or await self._gate.issue(who)
        if not owner:
            raise ForbiddenError
        return owner, who


def _silent(channel: str, pushing: Collection[str]) -> str:
    able = f"those that can: {', '.join(sorted(pushing))}" if pushing else "this host has no channel that can"
    return f"There is no channel {channel!r} that can speak to people first; {able}."


def _refuse_own_turn(session_id: str) -> None:
    """Reject a message to the session of the current turn. The turn holds the session, so it would deadlock."""
    turn = current_turn.get()
    if turn is not None and turn.record is not None and turn.record.session_id == session_id:
        raise ConflictError("This conversation has a running turn. Answer in that turn instead.", code="own_turn")


def _check_message(message: str | Message) -> Message:
    checked = Message("assistant", [Content.from_text(message)]) if isinstance(message, str) else message
    if checked.role != "assistant" or not checked.contents:
        raise InvalidRequestError("A message to a person must have the role assistant and content.", param="message")
    try:
        to_json(checked)
    except CodecError as error:
        raise InvalidRequestError(f"The message can't be stored: {error}.", param="message") from None
    return checked


def _digest(owner: str, idempotency_key: str) -> str:
    return digest(f"{len(owner)}:{owner}:{idempotency_key}")[:32]


WORK_GOES_ON = ENGLISH["background.works"]
"""The text for a caller in a chat whose run goes on in the background, in English."""
_CANCEL = "cancel"
TIMEOUT_SECONDS = 10.0
"""The seconds that a platform may take for it."""


class DirectNotifier:
    def __init__(
        self,
        channels: Mapping[str, Channel],
        store: HostStateStore,
        planner: Planner,
        outbox: OutboxSender,
        texts: Texts | None = None,
    ) -> None:
        self._texts = texts or Texts()
        self._channels = channels
        self._store = store
        self._planner = planner
        self._outbox = outbox
        self._cancelling: set[str] = set()
        """The channels that have a command with which a person cancels background runs."""

    def offer(self, channel: str, commands: Sequence[ChannelCommand]) -> None:
        """Store the commands of a channel, to mention them in notices."""
        if any(command.name == _CANCEL for command in commands):
            self._cancelling.add(channel)

    def work_goes_on(self, admitted: AdmittedRequest, event: InboxItem) -> Sequence[Delivery]:
        """Build the notice that a run continues in the background. It must be written together with the run."""
        can_cancel = admitted.request.channel in self._cancelling
        locale = parse_locale(admitted.request, admitted.caller.identity)
        text = self._texts.say("background.works", locale)
        if can_cancel:
            text = f"{text} {self._texts.say('background.cancel', locale, command=_CANCEL)}"
        return self._planner.for_event(self._planner.progress(admitted, text), event)

    async def links_changed(self, people: Sequence[ChannelIdentity]) -> None:
        """Notify the channels that identities of theirs were linked or separated. Failures are only logged."""
        for name, channel in self._channels.items():
            theirs = [identity for identity in people if identity.channel == name]
            if not theirs or not isinstance(channel, ObservesLinks):
                continue
            try:
                await channel.links_changed(theirs)
            except FrontdeskError as error:
                log.warning("channel failed to handle a link change: channel=%s: %s", name, error)

    def can_tell(self, identity: ChannelIdentity) -> bool:
        return identity.channel in self._planner.pushing

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Send a text to a person's direct chat if possible. Failures are only logged."""
        parts = self._planner.notice(identity, text, owner="")
        if not parts:
            return False
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                # Not in the context of the present request: the notice is for another person.
                await spawn_clean(self._push(self._channels[identity.channel], parts))
        except Exception as error:  # A platform's client may raise anything; what was done before stays done.
            log.warning("failed to notify a person of a change: channel=%s: %s", identity.channel, type(error).__name__)
            return False
        return True

    def notes(self, people: Sequence[ChannelIdentity], text: str, *, owner: str) -> Sequence[Delivery]:
        """Build notices for direct chats. They must be written together with the change that they report."""
        return [row for person in people for row in self._planner.notice(person, text, owner=owner)]

    async def send(self, notes: Sequence[Delivery]) -> None:
        await self._outbox.wake(notes)

    async def _push(self, channel: Channel, parts: Sequence[Delivery]) -> None:
        for part in parts:
            await send(channel, part, read_payload(part), await build_reference(self._store.identities, part))
