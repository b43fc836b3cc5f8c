"""What is on its way in and out."""

from typing import Any, Literal

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


class Delivery(Noun, frozen=True, kw_only=True):
    """One part of an answer on its way to one destination."""

    delivery_id: str
    run_id: str
    owner: str
    channel: str
    identity: ChannelIdentity
    part: int
    payload: Any
    is_echo: bool = False
    status: DeliveryStatus = "pending"
    attempts: int = 0
    receipt: str | None = None
    error: str | None = None
    created_at: float
    due_at: float


class Skipped(Noun, frozen=True, kw_only=True):
    """A destination that gets nothing, and why."""

    address: Address
    reason: str


class Route(Noun, frozen=True, kw_only=True):
    """Where an answer goes after routing."""

    originating: bool
    destinations: tuple[Address, ...] = ()
    skipped: tuple[Skipped, ...] = ()
