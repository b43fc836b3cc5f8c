"""The usual rules for a door, and which rule is a door's."""

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
        """Everyone whom the channel has verified."""
        return OPEN

    @staticmethod
    def require_link() -> AccessRule:
        """Everyone who has linked an account."""
        return AccessRule(require_link=True)

    @staticmethod
    def native_allowlist(
        native_ids: NativeIds, *, channel: str | None = None, cache_seconds: float = 60.0
    ) -> AccessRule:
        """The users whose native ids are listed."""
        return AccessRule(allowlist=NativeIdAllowlist(native_ids, channel=channel, cache_seconds=cache_seconds))

    @staticmethod
    def linked_claim_allowlist(claim: str, values: ClaimValue | Collection[ClaimValue]) -> AccessRule:
        """The people of whom a verified claim has one of some values; whoever has no claims yet is asked to link."""
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
        """The users who are listed, and the people with the claim."""
        listed = NativeIdAllowlist(native_ids, channel=channel, cache_seconds=cache_seconds)
        return AccessRule(allowlist=AnyOfAllowlists(listed, LinkedClaimAllowlist(claim, values)))


def as_rule(given: Allowlist | None) -> AccessRule:
    """What was given as an allowlist, as a rule; none is open."""
    return given if isinstance(given, AccessRule) else AccessRule(allowlist=given)


def rules_of(channels: Mapping[str, Channel], default: Allowlist | None) -> dict[str, AccessRule]:
    """The rule of each channel."""
    return {name: _rule(channel, channels, as_rule(default)) for name, channel in channels.items()}


def _rule(channel: Channel, channels: Mapping[str, Channel], default: AccessRule) -> AccessRule:
    if channel.allowlist != "inherit":
        rule = as_rule(channel.allowlist)
    else:
        # Whose callers another channel's are comes in by that one's rule.
        other = channels.get(channel.callers_of or channel.name, channel)
        rule = default if other is channel else _rule(other, {}, default)
    return rule.replace(require_link=True) if channel.require_link else rule
