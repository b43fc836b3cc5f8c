"""Which channels may share a person's memory and answers: the policies of the house, and how they are asked."""

from collections.abc import Collection, Mapping
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.link_policy import LinkOperation, LinkPolicy, LinkPolicyContext
from frontdesk.errors import LinkRefusedError
from frontdesk.kit.hooks import call_access
from frontdesk.loggers import access as log


class AllowAllLinks:
    """Every channel may share with every other."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return True


class SameConfidentialityTierOnly:
    """Channels share that have the same `confidentiality_tier`; those without any have none in common with the rest."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return context.source_tier == context.destination_tier


class ExplicitAllowList:
    """Pairs that may share: `pairs` of channels in both directions, `allowed_pairs` of tiers or channels in one."""

    def __init__(
        self, pairs: Collection[tuple[str, str]] = (), *, allowed_pairs: Collection[tuple[str, str]] = ()
    ) -> None:
        """`pairs` are names of channels, such as `[("teams", "webchat")]`.

        `allowed_pairs` are `(source, destination)`, each a `confidentiality_tier` or the name of a channel, such as
        `{("public", "internal")}`: what is known on the first may become known on the second, and not the other way.
        """
        self.pairs = frozenset(frozenset(_pair(one)) for one in pairs)
        self.allowed_pairs = frozenset(_pair(one) for one in allowed_pairs)

    def findings(self, tiers: Mapping[str, str | None]) -> list[str]:
        """Tell which names stand for nothing, or for two things; `tiers` has the tier of each channel."""
        known = {tier for tier in tiers.values() if tier is not None}
        channels = {name for pair in self.pairs for name in pair}
        either = {name for pair in self.allowed_pairs for name in pair}
        wrong = [f"the host has no channel called {name!r}" for name in sorted(channels - tiers.keys())]
        wrong += [
            f"{name!r} is neither a confidentiality_tier nor a channel of the host"
            for name in sorted(either - tiers.keys() - known)
        ]
        return wrong + [
            f"{name!r} is a confidentiality_tier and a channel of the host; give one of them another name"
            for name in sorted(either & tiers.keys() & known)
        ]

    def __call__(self, context: LinkPolicyContext) -> bool:
        # What stays on its channel is not shared.
        if context.source == context.destination or frozenset((context.source, context.destination)) in self.pairs:
            return True
        # No name is a tier and a channel at once: that is a finding when the host is built.
        return any(
            (source, destination) in self.allowed_pairs
            for source in (context.source, context.source_tier)
            for destination in (context.destination, context.destination_tier)
        )


def _pair(given: Any) -> tuple[str, str]:
    if isinstance(given, str) or len(given) != 2 or not all(isinstance(one, str) and one for one in given):
        raise ValueError(f"ExplicitAllowList takes pairs of names, not {given!r}")
    return tuple(given)


class DenyAllLinks:
    """Nobody is linked, and no answer goes to another channel."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return context.operation == "deliver" and context.source == context.destination


class TierPolicy:
    """A policy, and the tiers of the channels that it is asked about."""

    def __init__(self, policy: LinkPolicy | None, channels: Mapping[str, Channel]) -> None:
        self._policy = None if type(policy) is AllowAllLinks else policy
        self._tiers = {name: channel.confidentiality_tier for name, channel in channels.items()}

    async def allows(self, operation: LinkOperation, source: str, destination: str) -> bool:
        """Whether what is known on `source` may become known on `destination`; linking makes it so both ways."""
        if self._policy is None:
            return True
        if source not in self._tiers or destination not in self._tiers:
            # Nobody can say how confidential a channel is that the host does not have.
            return False
        ways = [(source, destination)]
        if operation == "link" and source != destination:
            ways.append((destination, source))
        for way in ways:
            if not await self._asked(self._policy, operation, *way):
                return False
        return True

    async def need(self, operation: LinkOperation, source: str, destination: str) -> None:
        """The same, as an error for the person: a `LinkRefusedError`."""
        if not await self.allows(operation, source, destination):
            log.info("the link policy refuses to %s from %s to %s", operation, source, destination)
            raise LinkRefusedError

    async def _asked(self, policy: LinkPolicy, operation: LinkOperation, source: str, destination: str) -> bool:
        context = LinkPolicyContext(
            operation=operation,
            source=source,
            destination=destination,
            source_tier=self._tiers[source],
            destination_tier=self._tiers[destination],
        )
        said: Any = await call_access("link_policy", policy, context)
        return said is True
