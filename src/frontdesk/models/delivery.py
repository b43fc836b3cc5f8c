"""Inbox events, deliveries and routes."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from frontdesk.models.approval import ApprovalPlace
from frontdesk.models.base import FrozenStruct, StoredRecord
from frontdesk.models.channel_storage import SealedToken
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.reply import Address
from frontdesk.models.request import ChannelRequest

EventKind = Literal["turn", "control", "resume"]
"""Whether an event waits for its turn in its conversation, acts on the turns themselves, such as `/cancel`, or is the
host's own, and goes on with a run after a decision."""
CANCELLED = "cancelled"
"""The error of an event that somebody cancelled."""
DeliveryStatus = Literal["pending", "sending", "accepted", "unknown", "dead", "cancelled"]
DeliveryAction = Literal["send", "settle", "retract"]
"""`send` sends a message, or replaces an earlier one. `settle` takes the buttons off an earlier one, and shows the text
that it brings, if it brings one. `retract` removes one."""


class InboxItem(StoredRecord, frozen=True, kw_only=True):
    """A platform event, stored before it is acknowledged. Unique by channel and event id."""

    channel: str
    event_id: str
    conversation_id: str
    caller: Caller
    request: ChannelRequest
    received_at: float
    number: int = 0
    """The order of arrival, given by the store."""
    fence: int = 0
    """The number of claims; only the last claim may write."""
    attempts: int = 0
    """The number of tries, the present one included; one that its process did not survive counts too."""
    lost: int = 0
    """The number of tries whose process ended, or lost the event to another one. After the first it is quarantined."""
    alone: int = 0
    """The number of those in which its process worked on no other event, so that nothing else can have ended it."""
    payload: Any = None
    """The platform's event, as JSON, for the channel's `run_hook`; kept where there is one."""
    run_id: str | None = None
    """The id of the run that answers it, made by the host when the event is accepted; each retry is the same run.

    Hosts of earlier versions made a new one for each try.
    """
    kind: EventKind = "turn"
    """Control events don't wait for the turns of their conversation, and are done in order among themselves."""
    cancelled: str | None = None
    """Set by the store when somebody cancelled it while it was worked on: empty, or the id of the session that it
    belongs to, if its conversation goes on in another one."""
    not_before: float | None = None
    """Until when more messages of its sender are waited for, to be answered with it; each of them moves it."""
    due_by: float | None = None
    """When it is answered at the latest, however many come."""
    reply_by: float | None = None
    """Until when its sender waits on the wire, so that its answer is kept for the reply and not pushed before."""
    trace: str | None = None
    """The trace that it belongs to, as the telemetry has given it."""
    reply_token: SealedToken | None = None
    """The right to answer it, which the platform takes for a while; every delivery back to it has the same."""
    bundle: tuple["InboxItem", ...] = ()
    """The messages behind it that are answered in the same turn; set by the store when they are taken up together."""
    album_id: str | None = None
    """The platform's id of the album that it is a part of; the messages of an album are answered in one turn."""
    album_position: int = 0
    """Its place among the messages of its album, which may come in another order, such as the number of its message."""
    addressed: bool = True
    """Whether it was meant for us. Otherwise it is a part of an album, and answered only with a part that was."""

    @property
    def is_message(self) -> bool:
        """Return True for a user's message. Commands and buttons are not messages."""
        return self.kind == "turn" and self.request.operation in ("message", "message.create")

    @property
    def waits_for_album(self) -> bool:
        """Return True if it waits for more of its album and will be answered together with it."""
        return self.album_id is not None and self.not_before is not None

    @property
    def members(self) -> tuple["InboxItem", ...]:
        """Return this event and the other events of its batch."""
        return (self, *self.bundle)

    @property
    def ordered_members(self) -> tuple["InboxItem", ...]:
        """Return its members in arrival order, but with each album together, in album order."""
        begins: dict[str, int] = {}
        places: list[tuple[int, int]] = []
        for place, member in enumerate(self.members):
            if member.album_id is not None:
                place = begins.setdefault(member.album_id, place)
            places.append((place, member.album_position))
        return tuple(member for _, member in sorted(zip(places, self.members, strict=True), key=lambda pair: pair[0]))

    @property
    def heard(self) -> tuple["InboxItem", ...]:
        """Return its members that are answered, in sent order: those addressed to the host, and their albums."""
        if all(member.addressed for member in self.members):
            return self.ordered_members
        albums = {member.album_id for member in self.members if member.addressed and member.album_id is not None}
        return tuple(member for member in self.ordered_members if member.addressed or member.album_id in albums)

    @property
    def protocol_request(self) -> Any:
        """Return the platform's event for the channel's `run_hook`, or a list if several are answered together."""
        return [member.payload for member in self.heard] if self.bundle else self.payload

    @property
    def is_cancelled(self) -> bool:
        """Return True if it, or a message that is answered with it, was cancelled."""
        return any(member.cancelled is not None for member in self.members)


class KnownEvent(NamedTuple):
    """An accepted event: the id of the run that answers it, and whether it is done."""

    run_id: str | None
    is_done: bool


class WaitingEvent(NamedTuple):
    """A claimable event: its origin and its number."""

    channel: str
    conversation_id: str
    number: int


class Cancelled(FrozenStruct, frozen=True, kw_only=True):
    """The number of cancelled turns of a conversation."""

    running: int = 0
    """Those that were taken up; each is recorded as cancelled, and its question stays in the history."""
    dropped: int = 0
    """Those that waited; nothing of them was begun."""
    questions: int = 0
    """The questions of a workflow that were given up, because there was no turn to cancel."""


ANEW = "tried again"
"""The code of the entry with which a part starts again, because an operator asked for it."""


class Attempt(StoredRecord, frozen=True, kw_only=True):
    """An attempt to send a part, or another event in its history, with the outcome."""

    at: float
    code: str
    waited: float | None = None
    """The seconds that the part had waited by then, at least, as measured by the processes that tried it."""


class Delivery(StoredRecord, frozen=True, kw_only=True):
    """One part of an answer for one destination."""

    delivery_id: str
    """Also the idempotency key: a part keeps it however often it is sent."""
    answer_id: str = ""
    """The id that the parts of one answer to one destination share."""
    run_id: str
    owner: str
    channel: str
    identity: ChannelIdentity
    conversation_id: str | None = None
    """The conversation of the answer; without one, the channel chooses where to reach the person. An answer to an event
    goes back to the conversation that the event came from."""
    reference: Mapping[str, Any] = {}
    """The platform's own reference to that conversation, from the request; without one, the person's is used."""
    queue: str = ""
    """The queue in which it waits; if empty, that of the conversation or the person."""
    part: int
    parts: int = 1
    """The number of parts of the answer, the echo included."""
    payload: Any
    is_echo: bool = False
    action: DeliveryAction = "send"
    replaces: str | None = None
    """The receipt or handle of the earlier message that it changes.

    It is unset when the platform can't change that message any more; what has to be said is then sent as a new one.
    """
    is_repeat: bool = False
    """Whether it makes a change once more that another delivery makes. It never becomes a new message."""
    approval_id: str | None = None
    """The approval that it asks about; when it is accepted, the store keeps where the question is shown."""
    status: DeliveryStatus = "pending"
    attempts: int = 0
    """The number of tries since it was queued; a wait that the platform asked for does not count."""
    receipt: str | None = None
    error: str | None = None
    """The reason of its status, as a code that may be shown."""
    history: tuple[Attempt, ...] = ()
    """The last tries, oldest first."""
    created_at: float
    queued_at: float | None = None
    """The time when it was last queued: when it was made, or when an operator asked for another try."""
    due_at: float
    reply_by: float | None = None
    """Until when it is kept for the reply to its event; from then on it is pushed."""
    reply_token: SealedToken | None = None
    """The token of the event that it answers, if the platform gave one."""
    trace: str | None = None
    """The trace that it belongs to, as the telemetry has given it."""
    ended_at: float | None = None
    """The time when it ended; until then it is in the queue of its destination."""
    fence: int = 0
    """The number of changes; a change must be made to the last state."""
    held_for: float = 0.0
    """The seconds for which it is still claimed, while it is being sent; given by the store."""
    number: int = 0
    """The order within a destination, given by the store."""

    @property
    def idempotency_key(self) -> str:
        """Return the key by which a platform recognizes a part that was sent before."""
        return self.delivery_id

    @property
    def shown_question(self) -> "ApprovalPlace | None":
        """Return where its approval is shown, if it shows one and was accepted with a receipt."""
        if self.approval_id is None or self.status != "accepted" or self.receipt is None:
            return None
        return ApprovalPlace(
            owner=self.owner,
            approval_id=self.approval_id,
            channel=self.channel,
            place=self.place,
            handle=self.receipt,
            identity=self.identity,
            conversation_id=self.conversation_id,
            reference=self.reference,
            queue=self.queue,
            at=self.ended_at or self.created_at,
        )

    @property
    def edits(self) -> bool:
        """Return True if it changes a sent message, so that a retry does no harm."""
        return self.replaces is not None or self.action != "send"

    @property
    def kind(self) -> "DestinationKind":
        # A direct chat that is answered waits in the queue of its person, whatever its own name.
        return "direct" if self.conversation_id is None or self.queue else "group"

    @property
    def place(self) -> str:
        return self.queue or self.conversation_id or self.identity.native_id

    @property
    def destination(self) -> "Destination":
        """Return its destination. Deliveries to the same destination are sent in order."""
        return (self.channel, self.place)


class EditDelivery(StoredRecord, frozen=True, kw_only=True):
    """Stored form of a delivery that edits a message. Hosts of earlier versions cannot read it and ignore it.

    Otherwise they would send it as a new message.
    """

    delivery: Delivery


DestinationKind = Literal["direct", "group"]
"""The kind of a destination: platforms limit groups otherwise than private chats."""
Destination = tuple[str, str]
"""A channel, and a place on it."""


class Skipped(StoredRecord, frozen=True, kw_only=True):
    """A skipped destination, and the reason."""

    address: Address
    reason: str
    code: str = ""
    """The reason for programs, one of the codes of `delivery.routing`; earlier versions wrote none."""


class Route(StoredRecord, frozen=True, kw_only=True):
    originating: bool
    destinations: tuple[Address, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    fallback: bool = False
    """Whether it goes back only because nothing else was left."""
