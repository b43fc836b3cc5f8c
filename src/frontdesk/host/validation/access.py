"""`Access`: the access settings of the host, and their validation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from frontdesk.access.allowlists import (
    AllOfAllowlists,
    AnyOfAllowlists,
    LinkedClaimAllowlist,
    NativeIdAllowlist,
    is_allowlist,
    requires_linked_claims,
    walk,
)
from frontdesk.access.policy import ExplicitAllowList, SameConfidentialityTierOnly, as_rule, list_rules
from frontdesk.host.links.names import command_findings
from frontdesk.host.validation.abilities import ability_findings
from frontdesk.interfaces.abilities import linker_ability
from frontdesk.interfaces.access import AccessRule, Allowlist, IdentityResolver, LinkPolicy
from frontdesk.interfaces.argument_types import type_finding
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.linker import IdentityLinker
from frontdesk.models.settings import count_finding

MAX_LINK_REQUEST_BYTES = 64 * 1024
_SOURCES = "neither a linker= of the host nor auth= of the channel"
_LINKER = ("name", "gives_claims", "use", "begin", "complete", "resolve", "unlink")
_NO_LIST = "is not an allowlist, such as NativeIdAllowlist([...]), a rule of AuthPolicy or None"


@dataclass(frozen=True)
class Access:
    """The host's access settings. They validate themselves."""

    resolver: IdentityResolver | None = None
    linker: IdentityLinker | None = None
    default_allowlist: Allowlist | None = None
    link_policy: LinkPolicy | None = None
    link_verified_claims: bool = True
    max_link_request_bytes: int | None = None

    def findings(self, channels: Sequence[Any]) -> list[str]:
        """Return the validation findings, one line each. Objects that are not channels are reported elsewhere."""
        usable = {channel.name: channel for channel in channels if isinstance(channel, Channel)}
        default = self.default_allowlist if _is_rule(self.default_allowlist) else None
        wrong = [*self._own_findings(), *self._policy_findings(usable)]
        wrong += [f"default_allowlist: {finding}" for finding in _unknown(as_rule(default), usable)]
        # Channels whose allowlist is wrong are reported below, and not checked further.
        sound = {
            name: channel
            for name, channel in usable.items()
            if channel.allowlist == "inherit" or _is_rule(channel.allowlist)
        }
        rules = list_rules(sound, default)
        for name, channel in usable.items():
            here = [*_channel_findings(channel, usable), *command_findings(channel, linker=self.linker is not None)]
            if name in rules:
                here += self._rule_findings(channel, rules[name])
            wrong += [f"channel {name!r}: {finding}" for finding in here]
        return wrong

    def _own_findings(self) -> Iterator[str]:
        if not _is_rule(self.default_allowlist):
            yield f"default_allowlist: {self.default_allowlist!r} {_NO_LIST}"
        if finding := type_finding("link_verified_claims", self.link_verified_claims, bool):
            yield finding
        most: Any = self.max_link_request_bytes
        if most is not None:
            if finding := count_finding("max_link_request_bytes", most):
                yield finding
            elif most > MAX_LINK_REQUEST_BYTES:
                yield f"max_link_request_bytes must be at most {MAX_LINK_REQUEST_BYTES}, got {most}"
            if self.linker is None:
                yield "max_link_request_bytes: the host has no linker=, so no request can wait for a link"
        if self.resolver is not None and not callable(self.resolver):
            yield "identity_resolver is not a function"
        missing = [] if self.linker is None else [name for name in _LINKER if not hasattr(self.linker, name)]
        if missing or isinstance(self.linker, type):
            yield f"linker: {self.linker!r} is not an IdentityLinker" + "".join(
                f"; it has no {name}" for name in missing
            )
        elif self.linker is not None:
            yield from (f"linker: {finding}" for finding in ability_findings(self.linker, linker_ability))

    def _policy_findings(self, channels: dict[str, Channel]) -> Iterator[str]:
        policy = self.link_policy
        if policy is not None and (isinstance(policy, type) or not callable(policy)):
            yield f"link_policy: {policy!r} is not a policy"
        if isinstance(policy, ExplicitAllowList):
            for finding in policy.findings({name: channel.confidentiality_tier for name, channel in channels.items()}):
                yield f"link_policy: {finding}"
        tiers = {channel.confidentiality_tier for channel in channels.values()}
        if isinstance(policy, SameConfidentialityTierOnly) and tiers == {None}:
            yield "link_policy: SameConfidentialityTierOnly has no effect, as no channel has a confidentiality_tier"

    def _rule_findings(self, channel: Channel, rule: AccessRule) -> Iterator[str]:
        if rule.require_link and self.linker is None:
            yield "a link is required, and the host has no linker="
        elif (
            rule.require_link
            and channel.requires_auth_when_public
            and channel.auth is None
            and not channel.identifies_anonymous_callers
        ):
            yield "a link is required, and without auth= every caller is anonymous and has nothing to link"
        if getattr(self.linker, "gives_claims", False) or _proves_claims(channel):
            return
        for allowlist in walk(rule.allowlist):
            if isinstance(allowlist, LinkedClaimAllowlist):
                yield f"the claim {allowlist.claim!r} is asked for, and nothing proves claims: {_SOURCES}"
            elif requires_linked_claims(allowlist) and not isinstance(allowlist, (AnyOfAllowlists, AllOfAllowlists)):
                yield f"{type(allowlist).__name__} needs verified claims, and nothing proves claims: {_SOURCES}"


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
        yield f"callers_of: the host has no channel named {channel.callers_of!r}"


def _unknown(rule: AccessRule, channels: dict[str, Channel]) -> Iterator[str]:
    for allowlist in walk(rule.allowlist):
        if (
            isinstance(allowlist, NativeIdAllowlist)
            and allowlist.channel is not None
            and allowlist.channel not in channels
        ):
            yield f"NativeIdAllowlist: the host has no channel named {allowlist.channel!r}"


def _proves_claims(channel: Channel) -> bool:
    """Return True if callers of a channel can have verified claims. An `auth` without a declaration may provide
    some."""
    given: Any = channel.auth or ()
    checks = cast("Sequence[Any]", given) if isinstance(given, Sequence) else (given,)
    return channel.emits_verified_claims or any(getattr(auth, "gives_claims", True) for auth in checks)
