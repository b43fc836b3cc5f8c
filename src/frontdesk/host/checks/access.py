"""Who may come in, as the host was told, and what of it can be known to be wrong before anything runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from frontdesk.abc.allowlist import AccessRule, Allowlist, IdentityResolver
from frontdesk.abc.channel import Channel
from frontdesk.abc.link_policy import LinkPolicy
from frontdesk.abc.linker import IdentityLinker, SupportsLinkRoutes
from frontdesk.access.allowlists import (
    AllOfAllowlists,
    AnyOfAllowlists,
    LinkedClaimAllowlist,
    NativeIdAllowlist,
    is_allowlist,
    requires_linked_claims,
    walk,
)
from frontdesk.access.link_policy import ExplicitAllowList, SameConfidentialityTierOnly
from frontdesk.access.policy import as_rule, rules_of
from frontdesk.host.links.names import command_findings

_SOURCES = "neither a linker= of the host nor auth= of the channel"
_LINKER = ("name", "gives_claims", "use", "begin", "complete", "resolve", "unlink")
_NO_LIST = "is not an allowlist, a rule of AuthPolicy or None"


@dataclass(frozen=True)
class Access:
    """The host's settings of who comes in; they check themselves."""

    resolver: IdentityResolver | None = None
    linker: IdentityLinker | None = None
    default_allowlist: Allowlist | None = None
    link_policy: LinkPolicy | None = None
    link_verified_claims: bool = True

    def findings(self, channels: Sequence[Any]) -> list[str]:
        """What is wrong, a line each; channels that are none are told of elsewhere."""
        found = {one.name: one for one in channels if isinstance(one, Channel)}
        default = self.default_allowlist if _is_rule(self.default_allowlist) else None
        wrong = [*self._own_findings(), *self._policy_findings(found), *self._route_findings(found)]
        wrong += [f"default_allowlist: {one}" for one in _unknown(as_rule(default), found)]
        # Those that can't be asked are named by themselves, and asked nothing further.
        sound = {name: one for name, one in found.items() if one.allowlist == "inherit" or _is_rule(one.allowlist)}
        rules = rules_of(sound, default)
        for name, channel in found.items():
            here = [*_channel_findings(channel, found), *command_findings(channel, linker=self.linker is not None)]
            if name in rules:
                here += self._rule_findings(channel, rules[name])
            wrong += [f"channel {name!r}: {one}" for one in here]
        return wrong

    def _own_findings(self) -> Iterator[str]:
        if not _is_rule(self.default_allowlist):
            yield f"default_allowlist: {self.default_allowlist!r} {_NO_LIST}"
        if self.resolver is not None and not callable(self.resolver):
            yield "identity_resolver is not a function"
        missing = [] if self.linker is None else [name for name in _LINKER if not hasattr(self.linker, name)]
        if missing or isinstance(self.linker, type):
            yield f"linker: {self.linker!r} is not an IdentityLinker" + "".join(f"; it has no {one}" for one in missing)

    def _route_findings(self, channels: dict[str, Channel]) -> Iterator[str]:
        if isinstance(self.linker, SupportsLinkRoutes):
            for name, one in channels.items():
                if one.path == self.linker.path:
                    yield f"linker: its path {one.path!r} is also that of the channel {name!r}"

    def _policy_findings(self, channels: dict[str, Channel]) -> Iterator[str]:
        policy = self.link_policy
        if policy is not None and (isinstance(policy, type) or not callable(policy)):
            yield f"link_policy: {policy!r} is not a policy"
        if isinstance(policy, ExplicitAllowList):
            for finding in policy.findings({name: one.confidentiality_tier for name, one in channels.items()}):
                yield f"link_policy: {finding}"
        tiers = {one.confidentiality_tier for one in channels.values()}
        if isinstance(policy, SameConfidentialityTierOnly) and tiers == {None}:
            yield "link_policy: SameConfidentialityTierOnly has no effect, as no channel has a confidentiality_tier"

    def _rule_findings(self, channel: Channel, rule: AccessRule) -> Iterator[str]:
        if rule.require_link and self.linker is None:
            yield "a link is required, and the host has no linker="
        elif rule.require_link and channel.takes_http and channel.auth is None:
            yield "a link is required, and without auth= every caller is anonymous and has nothing to link"
        if getattr(self.linker, "gives_claims", False) or _proves_claims(channel):
            return
        for one in walk(rule.allowlist):
            if isinstance(one, LinkedClaimAllowlist):
                yield f"the claim {one.claim!r} is asked for, and nothing proves claims: {_SOURCES}"
            elif requires_linked_claims(one) and not isinstance(one, (AnyOfAllowlists, AllOfAllowlists)):
                yield f"{type(one).__name__} needs verified claims, and nothing proves claims: {_SOURCES}"


def _is_rule(given: Any) -> bool:
    if isinstance(given, AccessRule):
        given = given.allowlist
    return given is None or is_allowlist(given)


def _channel_findings(channel: Channel, channels: dict[str, Channel]) -> Iterator[str]:
    if channel.allowlist != "inherit":
        if _is_rule(channel.allowlist):
            yield from _unknown(as_rule(channel.allowlist), channels)
        else:
            yield f"allowlist: {channel.allowlist!r} {_NO_LIST}, or 'inherit'"
    tier: Any = channel.confidentiality_tier
    if tier is not None and (not isinstance(tier, str) or not tier):
        yield f"confidentiality_tier: {tier!r} is not a name"
    if channel.callers_of is not None and channel.callers_of not in channels:
        yield f"callers_of: the host has no channel called {channel.callers_of!r}"


def _unknown(rule: AccessRule, channels: dict[str, Channel]) -> Iterator[str]:
    """The channels that a rule speaks of, and that do not exist."""
    for one in walk(rule.allowlist):
        if isinstance(one, NativeIdAllowlist) and one.channel is not None and one.channel not in channels:
            yield f"NativeIdAllowlist: the host has no channel called {one.channel!r}"


def _proves_claims(channel: Channel) -> bool:
    """Whether a channel's callers can come with verified claims; an `auth` that does not say may give some."""
    given: Any = channel.auth or ()
    checks = cast("Sequence[Any]", given) if isinstance(given, Sequence) else (given,)
    return channel.emits_verified_claims or any(getattr(one, "gives_claims", True) for one in checks)
