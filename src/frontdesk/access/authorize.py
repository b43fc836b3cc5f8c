"""Decides about callers: asks the allowlist of the door, and the linker. It changes nothing."""

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
from frontdesk.kit.aio.calls import settle
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
    """Says who may come in."""

    def __init__(
        self,
        keys: IdentityKeys,
        rules: Mapping[str, AccessRule],
        default: AccessRule,
        linker: IdentityLinker | None,
    ) -> None:
        """`rules` has the rule of each channel."""
        self._keys = keys
        self._rules = rules
        self._default = default
        self._linker = linker
        # Who lets everyone in need not be asked about each.
        self._open = frozenset(name for name, rule in rules.items() if linker is None and _is_open(rule))

    def decide(
        self,
        caller: Caller,
        channel: str | None = None,
        identity: ChannelIdentity | None = None,
        rule: AccessRule | None = None,
        hooked: bool = False,
    ) -> Coroutine[Any, Any, Decision]:
        """Decide about a caller at a door, or about another identity for which the operator lets the caller speak.

        A decision only: it changes nothing. Without `channel` the door is that of the identity; `rule` is asked instead
        of the door's own. `hooked` says that a hook comes next and may tell the operator's resolver more.
        """
        if channel in self._open and identity is None and rule is None:
            return self._known(caller.identity, caller.claims, "channel" if caller.claims else "none", hooked)
        who = identity or caller.identity
        door = channel or who.channel
        return self._decide(who, caller if identity is None else None, rule or self.rule(door), hooked)

    def rule(self, channel: str) -> AccessRule:
        """The rule of a door."""
        return self._rules.get(channel, self._default)

    async def ask(
        self,
        who: Caller | ChannelIdentity,
        require_link: bool | None,
        allowlist: Allowlist | None,
        claims: Mapping[str, Any] | None,
    ) -> Decision:
        """The decision for the operator's own code: about a caller, or an identity with claims that it has verified."""
        if isinstance(who, ChannelIdentity):
            who = Caller(identity=who, claims=claims or {})
        elif claims is not None:
            raise TypeError("a caller brings their own claims; verified_claims are those of an identity")
        own = self.rule(who.identity.channel)
        rule = own if allowlist is None else as_rule(allowlist)
        if require_link is not None:
            rule = rule.replace(require_link=require_link)
        return await self.decide(who, who.identity.channel, rule=rule)

    async def _known(
        self, who: ChannelIdentity, claims: Mapping[str, Any], source: ClaimSource, hooked: bool = False
    ) -> Decision:
        key, waits = await self._keys.ask_before_hook(who) if hooked else (await self._keys.look_up(who), False)
        if key is None and not self._keys.issues and not waits:
            # Decided here and not at `admit`, because a stranger reaches no hook.
            return REFUSED
        return Allowed(isolation_key=key, verified_claims=claims, claim_source=source)

    async def _decide(
        self, who: ChannelIdentity, caller: Caller | None, rule: AccessRule, hooked: bool = False
    ) -> Decision:
        """`caller` is there if the decision is about the caller's own identity, with what was proved of it."""
        # All who are anonymous have one identity, which must not become somebody's.
        linker = None if caller is not None and caller.anonymous else self._linker
        link = None if linker is None else await _link(linker, who)
        claims: Mapping[str, Any] = {} if caller is None else caller.claims
        known = await self._known(who, claims, "channel" if claims else "none", hooked)
        if not isinstance(known, Allowed):
            return known
        if link is not None:
            known = known.replace(isolation_key=link.isolation_key)
        asked = _question(who, known)
        verdict = before_link(await _said(rule.allowlist, asked), require_link=rule.require_link)
        proved = _proved(known, link)
        if verdict == "allowed":
            return known if claims else proved
        if verdict is None:
            # Without a link, claims of the channel's own are all that is new; and they are no link.
            asks_again = link is not None or (bool(claims) and not rule.require_link)
            again = _question(who, proved).replace(phase="post_link")
            said = await _said(rule.allowlist, again) if asks_again else None
            linked, linking = link is not None, _linking(linker)
            verdict = after_link(said, require_link=rule.require_link, linked=linked, linking=linking)
        return _decision(verdict, proved)


def _is_open(rule: AccessRule) -> bool:
    return not rule.require_link and (rule.allowlist is None or type(rule.allowlist) is AllowAll)


async def _link(linker: IdentityLinker, who: ChannelIdentity) -> LinkRecord | None:
    link: Any = await call_access("linker", linker.resolve, who)
    # The empty key is that of groups: it would open everybody's.
    if link is None or (isinstance(link, LinkRecord) and link.isolation_key):
        return link
    log.error("the linker has answered with %s, which is no link: not linked", type(link).__name__)
    return None


async def _said(allowlist: IdentityAllowlist | None, context: AuthorizationContext) -> AllowlistDecision:
    if allowlist is None:
        return AllowlistDecision.ALLOW
    if type(allowlist) is NativeIdAllowlist:
        # By far the most frequent list, and one that is fixed can't fail: it need not be waited for.
        said = allowlist.evaluate(context)
        if isinstance(said, AllowlistDecision):
            return said
        return await call_access("allowlist", settle, said)
    return await call_access("allowlist", evaluate, allowlist, context)


def _question(who: ChannelIdentity, known: Allowed) -> AuthorizationContext:
    return AuthorizationContext(
        identity=who,
        isolation_key=known.isolation_key,
        verified_claims=known.verified_claims,
        claim_source=known.claim_source,
    )


def _proved(known: Allowed, link: LinkRecord | None) -> Allowed:
    """With the claims of the link, if it has any; they are not mixed with the channel's, which may be another's."""
    if link is None or not link.claims:
        return known
    return known.replace(verified_claims=link.claims, claim_source="linker")


def _linking(linker: IdentityLinker | None) -> Linking:
    if linker is None:
        return "none"
    return "with_claims" if linker.gives_claims else "plain"


def _decision(verdict: Verdict, proved: Allowed) -> Decision:
    if verdict == "allowed":
        return proved
    return LinkRequired() if verdict == "link_required" else _DENIED[verdict]
