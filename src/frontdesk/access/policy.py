"""The usual access rules, and the choice of a channel's rule."""

from collections.abc import Callable, Collection, Mapping

from frontdesk.abc.allowlist import AccessRule, Allowlist
from frontdesk.abc.channel import Channel
from frontdesk.access.allowlists import AnyOfAllowlists, ClaimValue, LinkedClaimAllowlist, NativeIdAllowlist
from frontdesk.access.loaded import Ids

NativeIds = Collection[str] | Callable[[], Ids]

OPEN = AccessRule()


class AuthPolicy:
    """Makes the usual rules, for a channel's `allowlist=` or the host's `default_allowlist=`."""

    @staticmethod
    def open() -> AccessRule:
        """Allow everyone whom the channel has verified."""
        return OPEN

    @staticmethod
    def require_link() -> AccessRule:
        """Allow everyone who has linked an account."""
        return AccessRule(require_link=True)

    @staticmethod
    def native_allowlist(
        native_ids: NativeIds, *, channel: str | None = None, cache_seconds: float = 60.0
    ) -> AccessRule:
        """Allow the users whose native ids are listed."""
        return AccessRule(allowlist=NativeIdAllowlist(native_ids, channel=channel, cache_seconds=cache_seconds))

    @staticmethod
    def linked_claim_allowlist(claim: str, values: ClaimValue | Collection[ClaimValue]) -> AccessRule:
        """Allow people with a verified claim that has one of the given values; ask those without claims to link."""
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
        """Allow the users who are listed, and the people with the claim."""
        listed = NativeIdAllowlist(native_ids, channel=channel, cache_seconds=cache_seconds)
        return AccessRule(allowlist=AnyOfAllowlists(listed, LinkedClaimAllowlist(claim, values)))


def as_rule(given: Allowlist | None) -> AccessRule:
    """Return the rule for a given allowlist; without one it is open."""
    return given if isinstance(given, AccessRule) else AccessRule(allowlist=given)


def rules_of(channels: Mapping[str, Channel], default: Allowlist | None) -> dict[str, AccessRule]:
    """Return the rule of each channel."""
    return {name: _rule(channel, channels, as_rule(default)) for name, channel in channels.items()}


def _rule(channel: Channel, channels: Mapping[str, Channel], default: AccessRule) -> AccessRule:
    if channel.allowlist != "inherit":
        rule = as_rule(channel.allowlist)
    else:
        # A channel whose callers are another channel's has that one's rule.
        other = channels.get(channel.callers_of or channel.name, channel)
        rule = default if other is channel else _rule(other, {}, default)
    return rule.replace(require_link=True) if channel.require_link else rule
