"""Identifies and authorizes callers. `Gate` is the only code that creates an `AdmittedRequest`."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Literal, get_args

from frontdesk.access.allowlists import AllowAll, NativeIdAllowlist, evaluate
from frontdesk.access.contacts import Contacts
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.policy import TierPolicy, as_rule
from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import maybe_await
from frontdesk.errors import ForbiddenError, InvalidRequestError, LinkRequiredError, NotFoundError, UnlinkedError
from frontdesk.hooks import call_access
from frontdesk.http.idempotency import get_run_id
from frontdesk.ids import Ids
from frontdesk.interfaces.access import (
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
from frontdesk.interfaces.linker import IdentityLinker
from frontdesk.loggers import access as log
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord
from frontdesk.models.link import LinkRecord
from frontdesk.models.reply import Address
from frontdesk.models.request import AdmittedRequest, ChannelRequest, Operation

Verdict = Literal[
    "allowed",
    "link_required",
    "allowlist_denied_pre_link",
    "allowlist_denied_post_link",
    "allowlist_abstained",
    "link_unavailable",
]
Linking = Literal["none", "plain", "with_claims"]
"""Whether a caller could be linked, and whether that would prove claims."""


def before_link(decision: AllowlistDecision, *, require_link: bool) -> Verdict | None:
    """Return the verdict from the identity and the channel's own claims, or None if it depends on a link."""
    if decision is AllowlistDecision.DENY:
        return "allowlist_denied_pre_link"
    return "allowed" if decision is AllowlistDecision.ALLOW and not require_link else None


def after_link(
    decision: AllowlistDecision | None, *, require_link: bool, linked: bool, linking: Linking = "none"
) -> Verdict:
    """Return the verdict if `before_link` returned None. `decision` is that of the second phase, if there was one."""
    if not linked and require_link:
        return "link_unavailable" if linking == "none" else "link_required"
    if decision is AllowlistDecision.ALLOW:
        return "allowed"
    denied = decision is AllowlistDecision.DENY
    if not linked and (linking == "with_claims" or (linking == "plain" and not denied)):
        # The channel's own claims were not enough, and a link may prove others.
        return "link_required"
    return "allowlist_denied_post_link" if denied else "allowlist_abstained"


REFUSED = Denied(reason_code="identity_refused", log_details="the identity resolver returned no isolation key")
REASONS = {
    "allowlist_denied_pre_link": "the allowlist denies this identity",
    "allowlist_denied_post_link": "the allowlist denies the verified claims of this identity",
    "allowlist_abstained": "no allowlist allows this identity",
    "link_unavailable": "a link is required, but this identity can't be linked",
    "unknown_channel": "the host has no channel with this name",
}
_DENIED = {reason: Denied(reason_code=reason, log_details=why) for reason, why in REASONS.items()}


class Authorizer:
    def __init__(
        self,
        keys: IdentityKeys,
        rules: Mapping[str, AccessRule],
        linker: IdentityLinker | None,
    ) -> None:
        """Configure the access rule of each channel. Identities on other channels are denied."""
        self._keys = keys
        self._rules = rules
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
        """Return the access decision for a caller on a channel, or for another identity that the caller may act for.

        This changes nothing. `channel` defaults to the channel of the identity. `rule` replaces the rule of the
        channel. `hooked` means that a hook runs next and may add attributes for the operator's resolver. A channel
        unknown to the host is denied, even with a `rule`.
        """
        if channel in self._open and identity is None and rule is None:
            return self._with_key(caller.identity, caller.claims, "channel" if caller.claims else "none", hooked)
        subject = identity or caller.identity
        own = caller if identity is None else None
        where = channel or subject.channel
        if where not in self._rules:
            # Principals stay known by a channel that was removed.
            where = self._keys.list_channels(where)[0]
        channel_rule = self._rules.get(where)
        if channel_rule is None:
            return _deny_unknown_channel()
        return self._decide(subject, own, rule or channel_rule, hooked, where)

    async def ask(
        self,
        who: Caller | ChannelIdentity,
        require_link: bool | None,
        allowlist: Allowlist | None,
        claims: Mapping[str, Any] | None,
    ) -> Decision:
        """Return the decision about a caller, or about an identity with claims that operator code has verified."""
        if isinstance(who, ChannelIdentity):
            who = Caller(identity=who, claims=claims or {})
        elif claims is not None:
            raise TypeError("verified_claims can only be passed with a ChannelIdentity, a Caller has its own claims")
        rule = self._rules.get(who.identity.channel) if allowlist is None else as_rule(allowlist)
        if rule is not None and require_link is not None:
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
        self, identity: ChannelIdentity, caller: Caller | None, rule: AccessRule, hooked: bool, channel: str
    ) -> Decision:
        """Return the decision about an identity. `caller` is set if the identity is the caller's own, with its claims.

        Allowlists receive a principal as a user of `channel`, regardless of the channel under which the host stores it.
        """
        # All anonymous callers share one identity, which must not be linked to a person.
        linker = None if caller is not None and caller.anonymous else self._linker
        link = None if linker is None else await _link(linker, self._keys.get_principal(identity))
        claims: Mapping[str, Any] = {} if caller is None else caller.claims
        allowed = await self._with_key(identity, claims, "channel" if claims else "none", hooked)
        if not isinstance(allowed, Allowed):
            return allowed
        if link is not None:
            allowed = allowed.replace(isolation_key=link.isolation_key)
        seen = self._keys.find_alias(identity, channel)
        context = _context(seen, allowed)
        verdict = before_link(await _evaluate(rule.allowlist, context), require_link=rule.require_link)
        proved = _add_link_claims(allowed, link)
        if verdict == "allowed":
            return allowed if claims else proved
        if verdict is None:
            # Without a link, only the channel's own claims are new in the second phase; and they are no link.
            has_news = link is not None or (bool(claims) and not rule.require_link)
            second = _context(seen, proved).replace(phase="post_link")
            decision = await _evaluate(rule.allowlist, second) if has_news else None
            linked, linking = link is not None, _get_linking(linker)
            verdict = after_link(decision, require_link=rule.require_link, linked=linked, linking=linking)
        return _decision(verdict, proved)


async def _deny_unknown_channel() -> Decision:
    return _DENIED["unknown_channel"]


def _is_open(rule: AccessRule) -> bool:
    return not rule.require_link and (rule.allowlist is None or type(rule.allowlist) is AllowAll)


async def _link(linker: IdentityLinker, identity: ChannelIdentity) -> LinkRecord | None:
    link: Any = await call_access("linker", linker.resolve, identity)
    # The empty key owns the sessions of groups, and would open all of them.
    if link is None or (isinstance(link, LinkRecord) and link.isolation_key):
        return link
    log.error("linker returned no link, treating the caller as unlinked: value=%s", type(link).__name__)
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


def _add_link_claims(allowed: Allowed, link: LinkRecord | None) -> Allowed:
    """Return the decision with the claims of the link, if any.

    They replace the channel's claims, which may belong to another person.
    """
    if link is None or not link.claims:
        return allowed
    return allowed.replace(verified_claims=link.claims, claim_source="linker")


def _get_linking(linker: IdentityLinker | None) -> Linking:
    if linker is None:
        return "none"
    return "with_claims" if linker.gives_claims else "plain"


def _decision(verdict: Verdict, proved: Allowed) -> Decision:
    if verdict == "allowed":
        return proved
    return LinkRequired() if verdict == "link_required" else _DENIED[verdict]


LinkByClaims = Callable[[Caller], Awaitable[bool]]
"""Links a caller by their verified claims. Returns True if that changed anything."""
_OPERATIONS = frozenset[str](get_args(Operation))


class RunIds:
    """Creates the ids of runs, with the prefixes of their channels."""

    def __init__(self, ids: Ids, prefixes: Mapping[str, str]) -> None:
        self._ids, self._prefixes = ids, prefixes

    def new(self, channel: str) -> str:
        return self._ids.new(self._prefixes.get(channel, "run"))

    def of_key(self, request: ChannelRequest, owner: str, key: str) -> str:
        """Return the id of the run of an idempotency key."""
        return get_run_id(self._prefixes.get(request.channel, "run"), owner, request.channel, key)


class Gate(Authorizer):
    def __init__(
        self,
        keys: IdentityKeys,
        ids: Ids,
        clock: Clock,
        rules: Mapping[str, AccessRule],
        *,
        linker: IdentityLinker | None = None,
        link_policy: TierPolicy | None = None,
        contacts: Contacts | None = None,
        run_ids: RunIds | None = None,
        link_by_claims: LinkByClaims | None = None,
    ) -> None:
        """Configure the access rules of the channels. `link_by_claims` links a caller without a linking flow."""
        super().__init__(keys, rules, linker)
        self._run_ids = run_ids or RunIds(ids, {})
        self.new_run_id, self.link_by_claims = self._run_ids.new, link_by_claims
        self._clock = clock
        self._link_policy = link_policy
        self._contacts = contacts

    async def authorize(self, caller: Caller, channel: str, *, hooked: bool = False) -> Allowed:
        """Return the decision that allows a caller, and raise otherwise. A verified claim may link the caller.

        Before a hook, a caller unknown to the operator's resolver has no key yet. `admit` calls the resolver again.
        """
        if channel in self._open and not caller.claims and self._keys.issues:
            # As `decide` does for a channel that is open to everyone, in one step: most requests come by here.
            record = await self._keys.find_record(caller.identity)
            return Allowed(isolation_key=None if record is None else record.isolation_key)
        decision = await self.decide(caller, channel, hooked=hooked)
        if caller.claims:
            decision = await self.link_and_decide(caller, channel, decision, hooked=hooked)
        return self.require_allowed(decision, caller.identity)

    async def link_and_decide(
        self, caller: Caller, channel: str, decision: Decision, *, hooked: bool = False
    ) -> Decision:
        """Link a caller by a verified claim and return the new decision. Denied callers are not linked."""
        if self.link_by_claims is None or isinstance(decision, Denied):
            return decision
        if not await call_access("linker", self.link_by_claims, caller):
            return decision
        return await self.decide(caller, channel, hooked=hooked)

    async def admit(
        self,
        request: ChannelRequest,
        caller: Caller,
        wire: ChannelRequest,
        allowed: Allowed,
        *,
        run_id: str | None = None,
        trace: str | None = None,
    ) -> AdmittedRequest:
        """Admit a request after the hook, and decide again about fields that the hook changed.

        `wire` is the request as received: all ids in it must belong to the caller. A field that only the hook set
        counts as granted by the operator. `run_id` is the id of the run if it was made earlier.
        """
        if request.operation not in _OPERATIONS:
            # It is stored, and a record with another one can't be read.
            known = ", ".join(sorted(_OPERATIONS))
            raise InvalidRequestError(f"operation must be one of {known}, got {request.operation!r}", param="operation")
        identity = caller.identity
        if request.response_target.addresses and request.response_target == wire.response_target:
            await self._check_destinations(wire, caller, allowed.isolation_key)
        hooked = request.identity
        if hooked is not None and hooked is not identity and hooked != identity:
            allowed = await self._decide_hooked(hooked, caller, wire.channel, allowed)
            identity = hooked
        granted = None if request.session is None else request.granted_key
        if allowed.isolation_key is None and granted is None:
            _refuse_continuation(request)
        own = owner = allowed.isolation_key or await self._keys.issue(identity)
        if owner and granted is not None:
            owner = granted
        if not owner:
            # The empty key owns the sessions of groups, and would open all of them.
            raise self.refusal(REFUSED, identity)
        contacts = self._contacts
        # Most requests have no contact data, and skip that step.
        may_reach = bool(identity.attributes or request.reference) or (contacts is not None and contacts.is_grouped)
        if own and contacts is not None and may_reach and contacts.says_something(caller, identity, request):
            await contacts.note(identity, request, own)
        return AdmittedRequest(
            request=request,
            caller=caller,
            identity=identity,
            owner=owner,
            run_id=request.run_id
            or (
                run_id or self.new_run_id(request.channel)
                if request.idempotency_key is None
                else self._run_ids.of_key(request, owner, request.idempotency_key)
            ),
            admitted_at=self._clock.now(),
            trace=trace,
        )

    async def requester(self, admitted: AdmittedRequest) -> IdentityRecord | None:
        """Return the record that gives the requester the owner's key. Raise if the requester was unlinked meanwhile.

        Return None if the host does not issue the key: it was set by a hook, or by the operator's own resolver or
        linker.
        """
        if admitted.request.granted_key is not None:
            return None
        identity, caller = admitted.identity, admitted.caller
        record = await self._keys.record(identity)
        if record is not None and record.isolation_key == admitted.owner:
            return record
        if not self._keys.issues or record is None or record.version == 0:
            other = None if identity.key == caller.identity.key else identity
            asking = caller if other is not None else caller.replace(identity=identity)
            decision = await self.decide(asking, admitted.request.channel, other)
            if isinstance(decision, Allowed) and decision.isolation_key == admitted.owner:
                return None
        raise UnlinkedError

    async def _decide_hooked(
        self, identity: ChannelIdentity, caller: Caller, channel: str, allowed: Allowed
    ) -> Allowed:
        """Return the decision about an identity set by a hook: the caller with other attributes, or another person."""
        if identity.key == caller.identity.key:
            return self.require_allowed(await self.decide(caller.replace(identity=identity), channel), identity)
        if allowed.isolation_key is None and not self._keys.issues:
            # The resolver has refused the caller, so a hook can't let them act for another person.
            raise self.refusal(REFUSED, caller.identity)
        return await self._decide_other(identity, caller, channel)

    async def _decide_other(self, identity: ChannelIdentity, caller: Caller, channel: str) -> Allowed:
        """Return the decision about a person on whose behalf a hook lets the caller act.

        The caller's channel gets access to that person's memory.
        """
        allowed = self.require_allowed(await self.decide(caller, channel, identity), identity)
        if self._link_policy is not None and identity.channel != caller.identity.channel:
            await self._link_policy.need("link", identity.channel, channel)
        return allowed

    async def issue(self, identity: ChannelIdentity) -> str | None:
        """Return the isolation key of an allowed person, or None if the operator's resolver refuses them."""
        return await self._keys.issue(identity)

    async def find_key(self, identity: ChannelIdentity) -> str | None:
        """Return the isolation key that the host issued to an identity earlier, or None."""
        return await self._keys.look_up(identity) if self._keys.issues else None

    async def _check_destinations(self, wire: ChannelRequest, caller: Caller, key: str | None) -> None:
        """Reject destinations from the unhooked request that are not the caller's own identities."""
        own = {Address.of(name) for name in self._keys.list_names(caller.identity)}
        others = {address.plain for address in wire.response_target.addresses} - own
        if others and key is not None:
            known = await self._keys.list_identities(key)
            others -= {Address.of(name) for identity in known for name in self._keys.list_names(identity)}
        if others:
            raise ForbiddenError(
                "A response target can only list identities of the caller.", code="not_yours", param="response_target"
            )

    def require_allowed(self, decision: Decision, identity: ChannelIdentity) -> Allowed:
        """Return the decision if it allows the caller. Otherwise raise an error that is safe to display."""
        if isinstance(decision, Allowed):
            return decision
        if isinstance(decision, Denied):
            raise self.refusal(decision, identity)
        raise LinkRequiredError

    def not_denied(self, decision: Decision, identity: ChannelIdentity) -> None:
        """Raise if a caller is denied. Callers that need a link pass, so that they can get one."""
        if isinstance(decision, Denied):
            raise self.refusal(decision, identity)

    def refusal(self, denied: Denied, identity: ChannelIdentity) -> ForbiddenError:
        """Log the reason of a denial and return an error that does not reveal it."""
        log.info(
            "caller denied: channel=%s code=%s detail=%s", identity.channel, denied.reason_code, denied.log_details
        )
        return ForbiddenError(denied.user_message, code="denied", group_message=denied.group_message)


def identify(request: ChannelRequest, caller: Caller) -> ChannelRequest:
    """Return the request with its verified identity. Reject fields that only the operator may set."""
    if request.session is not None and request.granted_key is not None:
        raise InvalidRequestError("A request can't set the owner of its session.", param="session")
    if request.isolation is not None:
        raise InvalidRequestError("A request can't set isolation keys.", param="isolation")
    return request if request.identity is caller.identity else request.replace(identity=caller.identity)


def _refuse_continuation(request: ChannelRequest) -> None:
    """Reject a continuation or an approval answer from a new caller, before a key is issued."""
    if request.previous_run_id is not None:
        raise NotFoundError("Run to continue not found.", param="previous_run_id")
    if request.approvals:
        raise NotFoundError("Approval not found.", param="approvals")
