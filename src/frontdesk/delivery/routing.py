"""Which destinations an answer has. Pure."""

from collections.abc import Collection, Sequence

from frontdesk.data.delivery import Route, Skipped
from frontdesk.data.identity import ChannelIdentity, LastSeen
from frontdesk.data.response_target import Address, ResponseTarget

_ORIGINATING = Route(originating=True)


def route(
    target: ResponseTarget,
    *,
    origin: ChannelIdentity,
    known: Sequence[ChannelIdentity] = (),
    last_seen: LastSeen | None = None,
    pushing: Collection[str] = (),
) -> Route:
    """The destinations of an answer, and those that get nothing with the reason.

    `known` are the person's identities, `pushing` the channels that can speak first. When nothing is left, the answer
    goes back to where the request came from.
    """
    if target.kind == "originating":
        return _ORIGINATING
    if target.kind == "none":
        return Route(originating=False)
    home = Address.of(origin)
    destinations: list[Address] = []
    skipped: list[Skipped] = []
    back = False
    for address in _wanted(target, known, last_seen):
        if address == home:
            back = True
        elif not address.native_id:
            skipped.append(Skipped(address=address, reason="the person is not known there"))
        elif address.channel not in pushing:
            skipped.append(Skipped(address=address, reason="the channel can't speak first"))
        elif address not in destinations:
            destinations.append(address)
    return Route(originating=back or not destinations, destinations=tuple(destinations), skipped=tuple(skipped))


def _wanted(target: ResponseTarget, known: Sequence[ChannelIdentity], last_seen: LastSeen | None) -> list[Address]:
    if target.kind == "identities":
        return list(target.addresses)
    if target.kind == "active":
        return [] if last_seen is None else [Address.of(last_seen.identity)]
    if target.kind == "all_linked":
        return [Address.of(one) for one in known]
    return [address for name in target.names for address in _on(name, known)]


def _on(channel: str, known: Sequence[ChannelIdentity]) -> list[Address]:
    found = [Address.of(one) for one in known if one.channel == channel]
    return found or [Address(channel=channel, native_id="")]
