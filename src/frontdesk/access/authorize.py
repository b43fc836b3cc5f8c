"""Decides about callers by the allowlist of their channel, and the linker. It changes nothing."""

from collections.abc import Coroutine, Mapping
from typing import Any

from frontdesk.abc.allowlist import (
    AccessRule,
    Allowed,
    Allowlist,
    AllowlistDecision,
    AuthorizationContext,
    ClaimSource,
    Decision,
    Denied,
    IdentityAllowlist,
    LinkRequired,
)
from frontdesk.abc.linker import IdentityLinker
from frontdesk.access.allowlists import AllowAll, NativeIdAllowlist, evaluate
from frontdesk.access.decision import Linking, Verdict, after_link, before_link
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.policy import as_rule
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.link import LinkRecord
from frontdesk.kit.aio.calls import maybe_await
from frontdesk.kit.hooks import call_access
from frontdesk.loggers import access as log

REFUSED = Denied(reason_code="identity_refused", log_details="the identity resolver gave no isolation key")
REASONS = {
    "allowlist_denied_pre_link": "the allowlist denies this identity",
    "allowlist_denied_post_link": "the allowlist denies what was proved of this identity",
    "allowlist_abstained": "no allowlist lets this identity in",
    "link_unavailable": "a link is required, and this identity can't be linked",
}
_DENIED = {reason: Denied(reason_code=reason, log_details=why) for reason, why in REASONS.items()}


class Authorizer:
    """Decides who is allowed in."""

    def __init__(
        self,
        keys: IdentityKeys,
        rules: Mapping[str, AccessRule],
        default: AccessRule,
        linker: IdentityLinker | None,
    ) -> None:
        """Take the rule of each channel as `rules`, and one for all others as `default`."""
        self._keys = keys
        self._rules = rules
        self._default = default
        self._linker = linker
        # A channel that is open to everyone needs no decision for each caller.
        self._open = frozenset(name for name, rule in rules.items() if linker is None and _is_open(rule))

    def decide(
        self,
        caller: Caller,
        channel: str | None = None,
        identity: ChannelIdentity | None = None,
        rule: AccessRule | None = None,
        hooked: bool = False,
    ) -> Coroutine[Any, Any, Decision]:
        """Decide about a caller on a channel, or about another identity that the caller may act for.

        A decision only: it changes nothing. Without `channel` it is that of the identity; `rule` replaces the rule of
        the channel. `hooked` means that a hook runs next and may add attributes for the operator's resolver.
        """
        if channel in self._open and identity is None and rule is None:
            return self._with_key(caller.identity, caller.claims, "channel" if caller.claims else "none", hooked)
        subject = identity or caller.identity
        own = caller if identity is None else None
        return self._decide(subject, own, rule or self.rule(channel or subject.channel), hooked)

    def rule(self, channel: str) -> AccessRule:
        """Return the rule of a channel."""
        return self._rules.get(channel, self._default)

    async def ask(
        self,
        who: Caller | ChannelIdentity,
        require_link: bool | None,
        allowlist: Allowlist | None,
        claims: Mapping[str, Any] | None,
    ) -> Decision:
        """Decide for the operator's own code about a caller, or about an identity with claims that it has verified."""
        if isinstance(who, ChannelIdentity):
            who = Caller(identity=who, claims=claims or {})
        elif claims is not None:
            raise TypeError("a caller brings their own claims; verified_claims are those of an identity")
        own = self.rule(who.identity.channel)
        rule = own if allowlist is None else as_rule(allowlist)
        if require_link is not None:
            rule = rule.replace(require_link=require_link)
        return await self.decide(who, who.identity.channel, rule=rule)

    async def _with_key(
        self, identity: ChannelIdentity, claims: Mapping[str, Any], source: ClaimSource, hooked: bool = False
    ) -> Decision:
        keys = self._keys
        key, waits = await keys.ask_before_hook(identity) if hooked else (await keys.look_up(identity), False)
        if key is None and not keys.issues and not waits:
            # Decided here and not at `admit`, because a stranger must reach no hook.
            return REFUSED
        return Allowed(isolation_key=key, verified_claims=claims, claim_source=source)

    async def _decide(
        self, identity: ChannelIdentity, caller: Caller | None, rule: AccessRule, hooked: bool = False
    ) -> Decision:
        """Decide about an identity; `caller` is given if it is the caller's own, with its claims."""
        # All anonymous callers share one identity, which must not be linked to a person.
        linker = None if caller is not None and caller.anonymous else self._linker
        link = None if linker is None else await _link(linker, identity)
        claims: Mapping[str, Any] = {} if caller is None else caller.claims
        allowed = await self._with_key(identity, claims, "channel" if claims else "none", hooked)
        if not isinstance(allowed, Allowed):
            return allowed
        if link is not None:
            allowed = allowed.replace(isolation_key=link.isolation_key)
        context = _context(identity, allowed)
        verdict = before_link(await _evaluate(rule.allowlist, context), require_link=rule.require_link)
        proved = _proved(allowed, link)
        if verdict == "allowed":
            return allowed if claims else proved
        if verdict is None:
            # Without a link, only the channel's own claims are new in the second phase; and they are no link.
            has_news = link is not None or (bool(claims) and not rule.require_link)
            second = _context(identity, proved).replace(phase="post_link")
            decision = await _evaluate(rule.allowlist, second) if has_news else None
            linked, linking = link is not None, _linking(linker)
            verdict = after_link(decision, require_link=rule.require_link, linked=linked, linking=linking)
        return _decision(verdict, proved)


def _is_open(rule: AccessRule) -> bool:
    return not rule.require_link and (rule.allowlist is None or type(rule.allowlist) is AllowAll)


async def _link(linker: IdentityLinker, identity: ChannelIdentity) -> LinkRecord | None:
    link: Any = await call_access("linker", linker.resolve, identity)
    # The empty key owns the sessions of groups, and would open all of them.
    if link is None or (isinstance(link, LinkRecord) and link.isolation_key):
        return link
    log.error("the linker has returned %s, which is no link: not linked", type(link).__name__)
    return None


async def _evaluate(allowlist: IdentityAllowlist | None, context: AuthorizationContext) -> AllowlistDecision:
    if allowlist is None:
        return AllowlistDecision.ALLOW
    if type(allowlist) is NativeIdAllowlist:
        # By far the most frequent allowlist; a fixed one can't fail, and needs no await.
        decision = allowlist.evaluate(context)
        if isinstance(decision, AllowlistDecision):
            return decision
        return await call_access("allowlist", maybe_await, decision)
    return await call_access("allowlist", evaluate, allowlist, context)


def _context(identity: ChannelIdentity, allowed: Allowed) -> AuthorizationContext:
    return AuthorizationContext(
        identity=identity,
        isolation_key=allowed.isolation_key,
        verified_claims=allowed.verified_claims,
        claim_source=allowed.claim_source,
    )


def _proved(allowed: Allowed, link: LinkRecord | None) -> Allowed:
    """Return the decision with the claims of the link, if any; they replace the channel's, which may be another's."""
    if link is None or not link.claims:
        return allowed
    return allowed.replace(verified_claims=link.claims, claim_source="linker")


def _linking(linker: IdentityLinker | None) -> Linking:
    if linker is None:
        return "none"
    return "with_claims" if linker.gives_claims else "plain"


def _decision(verdict: Verdict, proved: Allowed) -> Decision:
    if verdict == "allowed":
        return proved
    return LinkRequired() if verdict == "link_required" else _DENIED[verdict]
