"""The built-in policies on which channels may share a person's memory and answers, and their evaluation."""

from collections.abc import Collection, Mapping
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.link_policy import LinkOperation, LinkPolicy, LinkPolicyContext
from frontdesk.errors import LinkRefusedError
from frontdesk.kit.hooks import call_access
from frontdesk.loggers import access as log


class AllowAllLinks:
    """Lets every channel share with every other."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return True


class SameConfidentialityTierOnly:
    """Lets channels share that have the same `confidentiality_tier`; having none counts as a tier of its own."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return context.source_tier == context.destination_tier


class ExplicitAllowList:
    """Pairs that may share: `pairs` of channels in both directions, `allowed_pairs` of tiers or channels in one."""

    def __init__(
        self, pairs: Collection[tuple[str, str]] = (), *, allowed_pairs: Collection[tuple[str, str]] = ()
    ) -> None:
        """Allow `pairs` of channel names both ways, such as `[("teams", "webchat")]`, and `allowed_pairs` one way.

        `allowed_pairs` are `(source, destination)`, each a `confidentiality_tier` or the name of a channel, such as
        `{("public", "internal")}`: the second may learn what the first knows, and not the other way.
        """
        self.pairs = frozenset(frozenset(_pair(pair)) for pair in pairs)
        self.allowed_pairs = frozenset(_pair(pair) for pair in allowed_pairs)

    def findings(self, tiers: Mapping[str, str | None]) -> list[str]:
        """Return a line for each name that is unknown or ambiguous; `tiers` has the tier of each channel."""
        known_tiers = {tier for tier in tiers.values() if tier is not None}
        channels = {name for pair in self.pairs for name in pair}
        either = {name for pair in self.allowed_pairs for name in pair}
        wrong = [f"the host has no channel called {name!r}" for name in sorted(channels - tiers.keys())]
        wrong += [
            f"{name!r} is neither a confidentiality_tier nor a channel of the host"
            for name in sorted(either - tiers.keys() - known_tiers)
        ]
        return wrong + [
            f"{name!r} is a confidentiality_tier and a channel of the host; give one of them another name"
            for name in sorted(either & tiers.keys() & known_tiers)
        ]

    def __call__(self, context: LinkPolicyContext) -> bool:
        # Staying on one channel is no sharing.
        if context.source == context.destination or frozenset((context.source, context.destination)) in self.pairs:
            return True
        # No name is a tier and a channel at once: that is a finding when the host is built.
        return any(
            (source, destination) in self.allowed_pairs
            for source in (context.source, context.source_tier)
            for destination in (context.destination, context.destination_tier)
        )


def _pair(given: Any) -> tuple[str, str]:
    if isinstance(given, str) or len(given) != 2 or not all(isinstance(name, str) and name for name in given):
        raise ValueError(f"ExplicitAllowList takes pairs of names, not {given!r}")
    return tuple(given)


class DenyAllLinks:
    """Forbids all links, and answers on another channel."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return context.operation == "deliver" and context.source == context.destination


class TierPolicy:
    """A policy with the tiers of the channels that it decides about."""

    def __init__(self, policy: LinkPolicy | None, channels: Mapping[str, Channel]) -> None:
        self._policy = None if type(policy) is AllowAllLinks else policy
        self._tiers = {name: channel.confidentiality_tier for name, channel in channels.items()}

    async def allows(self, operation: LinkOperation, source: str, destination: str) -> bool:
        """Tell whether `destination` may learn what `source` knows; a link needs it both ways."""
        if self._policy is None:
            return True
        if source not in self._tiers or destination not in self._tiers:
            # The tier of a channel that the host does not have is unknown.
            return False
        directions = [(source, destination)]
        if operation == "link" and source != destination:
            directions.append((destination, source))
        for direction in directions:
            if not await self._evaluate(self._policy, operation, *direction):
                return False
        return True

    async def need(self, operation: LinkOperation, source: str, destination: str) -> None:
        """Raise a `LinkRefusedError` if the policy does not allow it."""
        if not await self.allows(operation, source, destination):
            log.info("the link policy refuses to %s from %s to %s", operation, source, destination)
            raise LinkRefusedError

    async def _evaluate(self, policy: LinkPolicy, operation: LinkOperation, source: str, destination: str) -> bool:
        context = LinkPolicyContext(
            operation=operation,
            source=source,
            destination=destination,
            source_tier=self._tiers[source],
            destination_tier=self._tiers[destination],
        )
        allowed: Any = await call_access("link_policy", policy, context)
        return allowed is True
