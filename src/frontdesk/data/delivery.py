"""What is on its way in and out."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.noun import Noun
from frontdesk.data.request import ChannelRequest
from frontdesk.data.response_target import Address

DeliveryStatus = Literal["pending", "sending", "accepted", "unknown", "dead", "cancelled"]


class InboxItem(Noun, frozen=True, kw_only=True):
    """An event that a platform sent us, kept before it is acknowledged; unique by channel and event id."""

    channel: str
    event_id: str
    conversation_id: str
    caller: Caller
    request: ChannelRequest
    received_at: float
    number: int = 0
    """The order of arrival, given by the store."""
    fence: int = 0
    """How often it was taken up; whoever took it up last has the say."""
    attempts: int = 0
    """How often it was tried, the present time included; a process that died while it answered it counts."""
    payload: Any = None
    """The platform's event, as JSON, for the channel's `run_hook`; kept where there is one."""


class WaitingEvent(NamedTuple):
    """An event that somebody could take up: where it came from, and its number."""

    channel: str
    conversation_id: str
    number: int


ANEW = "tried again"
"""The code of an attempt with which a part begins anew, because somebody wants it."""


class Attempt(Noun, frozen=True, kw_only=True):
    """One try to send a part, or what else happened to it, and how that ended."""

    at: float
    code: str
    waited: float | None = None
    """How many seconds the part had waited by then, at least, in the count of the processes that tried it."""


class Delivery(Noun, frozen=True, kw_only=True):
    """One part of an answer on its way to one destination."""

    delivery_id: str
    """Also the idempotency key: a part keeps it however often it is sent."""
    answer_id: str = ""
    """The id that the parts of one answer to one destination share."""
    run_id: str
    owner: str
    channel: str
    identity: ChannelIdentity
    conversation_id: str | None = None
    """Where the person is answered; without one, wherever the channel reaches them. An answer to an event goes back to
    the conversation that the event came from."""
    reference: Mapping[str, Any] = {}
    """The platform's own reference to that conversation, from the request; without any, the person's counts."""
    queue: str = ""
    """The queue in which it waits; that of the conversation or the person, if it does not say."""
    part: int
    parts: int = 1
    """How many parts the answer has, the echo included."""
    payload: Any
    is_echo: bool = False
    status: DeliveryStatus = "pending"
    attempts: int = 0
    """How often it was tried, since it was queued; a wait that the platform asked for does not count."""
    receipt: str | None = None
    error: str | None = None
    """Why it is where it is, in a word that may be shown."""
    history: tuple[Attempt, ...] = ()
    """The last tries, oldest first."""
    created_at: float
    queued_at: float | None = None
    """When it was last put into the queue: at its making, or when somebody asked for another try."""
    due_at: float
    ended_at: float | None = None
    """When nothing was left to be done; until then it stands in the queue of its destination."""
    fence: int = 0
    """How often it was changed; whoever changes it must know the last state."""
    held_for: float = 0.0
    """For how many seconds it is still somebody's, while it is being sent; given by the store."""
    number: int = 0
    """The order within a destination, given by the store."""

    @property
    def idempotency_key(self) -> str:
        """Return the key by which a platform knows a part that it was sent before."""
        return self.delivery_id

    @property
    def kind(self) -> "DestinationKind":
        """Return whether it goes to a group or to one person."""
        # A direct chat that is answered waits in the queue of its person, whatever its own name.
        return "direct" if self.conversation_id is None or self.queue else "group"

    @property
    def place(self) -> str:
        """Return the destination within the channel: a conversation, or the person."""
        return self.queue or self.conversation_id or self.identity.native_id

    @property
    def destination(self) -> "Destination":
        """Return where it goes: what has the same destination goes out in order."""
        return (self.channel, self.place)


DestinationKind = Literal["direct", "group"]
"""Whom a destination reaches: platforms limit groups otherwise than private chats."""
Destination = tuple[str, str]
"""A channel, and a place on it."""


class Skipped(Noun, frozen=True, kw_only=True):
    """A destination that gets nothing, and why."""

    address: Address
    reason: str
    code: str = ""
    """The reason for programs, one of the codes of `delivery.routing`; earlier versions wrote none."""


class Route(Noun, frozen=True, kw_only=True):
    """Where an answer goes after routing."""

    originating: bool
    destinations: tuple[Address, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    fallback: bool = False
    """Whether it goes back only because nothing else was left."""
