"""Which destinations an answer has. Pure."""

from collections.abc import Callable, Collection, Sequence

from frontdesk.data.delivery import Route, Skipped
from frontdesk.data.identity import ChannelIdentity, LastSeen
from frontdesk.data.response_target import ORIGINATING_NAME, Address, ResponseTarget

ORIGINATING = Route(originating=True)
NOWHERE = Route(originating=False)
UNKNOWN = "the person is not known there"
MUTE = "the channel can't speak first"
KEPT_APART = "the link policy keeps the channels apart"
CODES = {UNKNOWN: "unknown_recipient", MUTE: "no_push_capability", KEPT_APART: "link_policy"}
"""The code of each reason: the words may change, the codes stay."""

Allow = Callable[[str, str], bool]
"""Whether what was said on one channel may be heard on another."""


def allow_all(source: str, destination: str) -> bool:
    """Everything may be heard everywhere."""
    return True


def route(
    target: ResponseTarget,
    *,
    origin: ChannelIdentity,
    known: Sequence[ChannelIdentity] = (),
    last_seen: LastSeen | None = None,
    pushing: Collection[str] = (),
    allow: Allow = allow_all,
) -> Route:
    """The destinations of an answer, and those that get nothing with the reason.

    `known` are the person's identities, `pushing` the channels that can speak first. When nothing is left, the answer
    goes back to where the request came from.
    """
    if target.kind == "originating":
        return ORIGINATING
    if target.kind == "none":
        return NOWHERE
    home = Address.of(origin)
    # Each once, in the order in which they were named.
    places: dict[Address, Address] = {}
    for one in wanted(target, known, last_seen, origin):
        places.setdefault(one.plain, one)
    others = [named for place, named in places.items() if place != home]
    reasons = {one: _reason(one, origin.channel, pushing, allow) for one in others}
    destinations = tuple(one for one, reason in reasons.items() if reason is None)
    skipped = tuple(_skipped(one, reason) for one, reason in reasons.items() if reason is not None)
    back = home in places
    lost = not back and not destinations
    return Route(originating=back or lost, destinations=destinations, skipped=skipped, fallback=lost)


def _skipped(address: Address, reason: str) -> Skipped:
    return Skipped(address=address, reason=reason, code=CODES[reason])


def _reason(address: Address, source: str, pushing: Collection[str], allow: Allow) -> str | None:
    """Why a destination gets nothing."""
    if not address.native_id:
        return UNKNOWN
    if address.channel not in pushing:
        return MUTE
    return None if address.channel == source or allow(source, address.channel) else KEPT_APART


def wanted(
    target: ResponseTarget, known: Sequence[ChannelIdentity], last_seen: LastSeen | None, origin: ChannelIdentity
) -> list[Address]:
    """Return the places that a target stands for, whether they can be reached or not."""
    if target.kind == "identities":
        return list(target.addresses)
    if target.kind == "active":
        return [] if last_seen is None else [Address.of(last_seen.identity)]
    if target.kind == "all_linked":
        return [Address.of(one) for one in known]
    return [address for name in target.names for address in _on(name, known, origin)]


def _on(channel: str, known: Sequence[ChannelIdentity], origin: ChannelIdentity) -> list[Address]:
    if channel == ORIGINATING_NAME:
        return [Address.of(origin)]
    found = [Address.of(one) for one in known if one.channel == channel]
    return found or [Address(channel=channel, native_id="")]
