"""The built-in access rules and link policies, and the selection of a channel's rule."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from frontdesk.access.allowlists import AnyOfAllowlists, ClaimValue, Ids, LinkedClaimAllowlist, NativeIdAllowlist
from frontdesk.errors import LinkRefusedError
from frontdesk.hooks import call_access
from frontdesk.interfaces.access import AccessRule, Allowlist, LinkOperation, LinkPolicy, LinkPolicyContext
from frontdesk.interfaces.channel import Channel
from frontdesk.loggers import access as log

NativeIds = Collection[str] | Callable[[], Ids]

OPEN = AccessRule()


class AuthPolicy:
    """Makes the usual rules, for a channel's `allowlist=` or the host's `default_allowlist=`."""

    @staticmethod
    def open() -> AccessRule:
        return OPEN

    @staticmethod
    def require_link() -> AccessRule:
        return AccessRule(require_link=True)

    @staticmethod
    def native_allowlist(
        native_ids: NativeIds, *, channel: str | None = None, cache_seconds: float = 60.0
    ) -> AccessRule:
        """Allow users whose native ids are listed."""
        return AccessRule(allowlist=NativeIdAllowlist(native_ids, channel=channel, cache_seconds=cache_seconds))

    @staticmethod
    def linked_claim_allowlist(claim: str, values: ClaimValue | Collection[ClaimValue]) -> AccessRule:
        """Allow people with a verified claim that has one of the given values. Ask people without claims to link."""
        return AccessRule(allowlist=LinkedClaimAllowlist(claim, values))

    @staticmethod
    def mixed(
        native_ids: NativeIds,
        claim: str,
        values: ClaimValue | Collection[ClaimValue],
        *,
        channel: str | None = None,
        cache_seconds: float = 60.0,
    ) -> AccessRule:
        """Allow listed users and people with the claim."""
        listed = NativeIdAllowlist(native_ids, channel=channel, cache_seconds=cache_seconds)
        return AccessRule(allowlist=AnyOfAllowlists(listed, LinkedClaimAllowlist(claim, values)))


def as_rule(given: Allowlist | None) -> AccessRule:
    """Convert an allowlist to a rule. None becomes an open rule."""
    return given if isinstance(given, AccessRule) else AccessRule(allowlist=given)


def list_rules(channels: Mapping[str, Channel], default: Allowlist | None) -> dict[str, AccessRule]:
    return {name: _rule(channel, channels, as_rule(default)) for name, channel in channels.items()}


def _rule(channel: Channel, channels: Mapping[str, Channel], default: AccessRule) -> AccessRule:
    if channel.allowlist != "inherit":
        rule = as_rule(channel.allowlist)
    else:
        # A channel whose callers are another channel's has that one's rule.
        other = channels.get(channel.callers_of or channel.name, channel)
        rule = default if other is channel else _rule(other, {}, default)
    return rule.replace(require_link=True) if channel.require_link else rule


class AllowAllLinks:
    """Lets all channels share with each other."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return True


class SameConfidentialityTierOnly:
    """Lets channels with the same `confidentiality_tier` share. Channels without a tier form their own tier."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return context.source_tier == context.destination_tier


class ExplicitAllowList:
    """Lets listed pairs share: `pairs` of channels in both directions, `allowed_pairs` of tiers or channels in one."""

    def __init__(
        self, pairs: Collection[tuple[str, str]] = (), *, allowed_pairs: Collection[tuple[str, str]] = ()
    ) -> None:
        """Allow `pairs` of channel names both ways, such as `[("teams", "webchat")]`, and `allowed_pairs` one way.

        `allowed_pairs` are `(source, destination)` tuples of a `confidentiality_tier` or a channel name each, such as
        `{("public", "internal")}`. The destination gets access to data of the source, not the reverse.
        """
        self.pairs = frozenset(frozenset(_pair(pair)) for pair in pairs)
        self.allowed_pairs = frozenset(_pair(pair) for pair in allowed_pairs)

    def findings(self, tiers: Mapping[str, str | None]) -> list[str]:
        """Return one line for each unknown or ambiguous name. `tiers` maps channels to tiers."""
        known_tiers = {tier for tier in tiers.values() if tier is not None}
        channels = {name for pair in self.pairs for name in pair}
        either = {name for pair in self.allowed_pairs for name in pair}
        wrong = [f"the host has no channel named {name!r}" for name in sorted(channels - tiers.keys())]
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
        raise ValueError(f"ExplicitAllowList requires pairs of non-empty names, got {given!r}")
    return tuple(given)


class DenyAllLinks:
    """Forbids all links, and answers on other channels."""

    def __call__(self, context: LinkPolicyContext) -> bool:
        return context.operation == "deliver" and context.source == context.destination


class TierPolicy:
    def __init__(self, policy: LinkPolicy | None, channels: Mapping[str, Channel]) -> None:
        self._policy = None if type(policy) is AllowAllLinks else policy
        self._tiers = {name: channel.confidentiality_tier for name, channel in channels.items()}

    async def allows(self, operation: LinkOperation, source: str, destination: str) -> bool:
        """Return True if `destination` may receive data of `source`. A link needs both directions."""
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
        """Raise `LinkRefusedError` if the policy forbids the operation."""
        if not await self.allows(operation, source, destination):
            log.info("link policy refused: operation=%s source=%s destination=%s", operation, source, destination)
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
