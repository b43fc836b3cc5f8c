"""Computes the destinations of a result. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf

from frontdesk.models.delivery import Route, Skipped
from frontdesk.models.identity import ChannelIdentity, LastSeen
from frontdesk.models.reply import ORIGINATING_NAME, Address, ResponseTarget

ORIGINATING = Route(originating=True)
NOWHERE = Route(originating=False)
UNKNOWN = "the person is unknown on that channel"
MUTE = "the channel can't send messages outside a conversation"
KEPT_APART = "the link policy keeps the channels apart"
NOT_LATELY = "the person was not active there recently"
CODES = {
    UNKNOWN: "unknown_recipient",
    MUTE: "no_push_capability",
    KEPT_APART: "link_policy",
    NOT_LATELY: "not_active",
}
"""The code of each reason: the texts may change, the codes stay."""

Allow = Callable[[str, str], bool]
"""Tells whether messages of one channel may go to another."""


def allow_all(source: str, destination: str) -> bool:
    """Allow every channel to send to every other."""
    return True


def route(
    target: ResponseTarget,
    *,
    origin: ChannelIdentity,
    known: Sequence[ChannelIdentity] = (),
    last_seen: LastSeen | None = None,
    pushing: Collection[str] = (),
    allow: Allow = allow_all,
    active_since: float = -inf,
    waiting: bool = True,
) -> Route:
    """Return the destinations of an answer, and the skipped ones with the reason.

    `known` are the person's identities, `pushing` the channels that can push. If no destination is left, the answer
    goes back to its origin. For `active`, a person is where they were last seen, unless that was before `active_since`.
    `waiting` is True if a caller waits for the answer in the HTTP response.
    """
    if target.kind == "originating":
        return ORIGINATING
    if target.kind == "none":
        return NOWHERE
    if target.kind == "active":
        can_return = waiting or origin.channel in pushing
        return _route_to_active(origin, known, last_seen, pushing, allow, active_since, can_return)
    home = Address.of(origin)
    # Each once, in the order in which they were named.
    places: dict[Address, Address] = {}
    for address in list_addresses(target, known, origin):
        places.setdefault(address.plain, address)
    others = [address for place, address in places.items() if place != home]
    reasons = {address: _reason(address, origin.channel, pushing, allow) for address in others}
    return _build_route(reasons, back=home in places)


def _build_route(reasons: Mapping[Address, str | None], *, back: bool) -> Route:
    destinations = tuple(place for place, reason in reasons.items() if reason is None)
    skipped = [(place, reason) for place, reason in reasons.items() if reason is not None]
    is_fallback = not back and not destinations
    return Route(
        originating=back or is_fallback,
        destinations=destinations,
        skipped=tuple(Skipped(address=place, reason=reason, code=CODES[reason]) for place, reason in skipped),
        fallback=is_fallback,
    )


def _reason(address: Address, source: str, pushing: Collection[str], allow: Allow) -> str | None:
    if not address.native_id:
        return UNKNOWN
    if address.channel not in pushing:
        return MUTE
    return None if address.channel == source or allow(source, address.channel) else KEPT_APART


def _route_to_active(
    origin: ChannelIdentity,
    known: Sequence[ChannelIdentity],
    last_seen: LastSeen | None,
    pushing: Collection[str],
    allow: Allow,
    active_since: float,
    can_return: bool,
) -> Route:
    """Route to where a person is active, else back to the origin if reachable, else to all their addresses."""
    home, reasons = Address.of(origin), dict[Address, str | None]()
    if last_seen is not None and Address.of(last_seen.identity) != home:
        place = Address.of(last_seen.identity)
        reason = _reason(place, origin.channel, pushing, allow) if last_seen.at >= active_since else NOT_LATELY
        if reason is None:
            return Route(originating=False, destinations=(place,))
        reasons[place] = reason
    elif last_seen is not None and last_seen.at >= active_since and can_return:
        return ORIGINATING
    others = () if can_return else (address for address in map(Address.of, known) if address != home)
    reasons |= {address: _reason(address, origin.channel, pushing, allow) for address in others}
    return _build_route(reasons, back=False)


def list_addresses(target: ResponseTarget, known: Sequence[ChannelIdentity], origin: ChannelIdentity) -> list[Address]:
    """Return the addresses of a target, reachable or not. Empty for `active`, which is resolved later."""
    if target.kind == "identities":
        return list(target.addresses)
    if target.kind == "all_linked":
        return [Address.of(identity) for identity in known]
    return [address for name in target.names for address in _addresses_on(name, known, origin)]


def _addresses_on(channel: str, known: Sequence[ChannelIdentity], origin: ChannelIdentity) -> list[Address]:
    if channel == ORIGINATING_NAME:
        return [Address.of(origin)]
    addresses = [Address.of(identity) for identity in known if identity.channel == channel]
    return addresses or [Address(channel=channel, native_id="")]
