"""The gate: the only place that makes an `AdmittedRequest`."""

from collections.abc import Mapping
from typing import Any

from frontdesk.abc.allowlist import (
    Allowed,
    AllowlistDecision,
    AuthorizationContext,
    Decision,
    Denied,
    IdentityAllowlist,
)
from frontdesk.access.allowlists import AllowAll
from frontdesk.access.identify import IdentityKeys
from frontdesk.clock import Clock
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.response_target import Address
from frontdesk.errors import ForbiddenError, InvalidRequestError, NotFoundError
from frontdesk.ids import Ids
from frontdesk.loggers import access as log

_REFUSED = Denied(reason_code="identity_refused", log_details="the identity resolver gave no isolation key")
_NOT_ALLOWED = Denied(reason_code="not_allowed", log_details="no allowlist lets this identity in")


class Gate:
    """Decides who may come in, and admits their requests."""

    def __init__(
        self,
        keys: IdentityKeys,
        ids: Ids,
        clock: Clock,
        allowlist: IdentityAllowlist,
        run_prefixes: Mapping[str, str] | None = None,
    ) -> None:
        """`run_prefixes` is how the ids of a channel's runs begin."""
        self._run_prefixes = run_prefixes or {}
        self._keys = keys
        self._ids = ids
        self._clock = clock
        self._allowlist = allowlist
        # Who lets everyone in need not be asked about each.
        self._open_house = type(allowlist) is AllowAll

    async def authorize(self, caller: Caller, identity: ChannelIdentity | None = None) -> Decision:
        """Decides about a caller, or about another identity for which the operator lets the caller speak.

        A decision only: it changes nothing.
        """
        who = caller.identity if identity is None else identity
        own = identity is None
        if own and self._open_house:
            return await self._known(who, caller.claims, caller.claim_source)
        context = AuthorizationContext(
            identity=who,
            verified_claims=caller.claims if own else {},
            claim_source=caller.claim_source if own else None,
        )
        decision = self._allowlist.evaluate(context)
        if not isinstance(decision, AllowlistDecision):
            decision = await decision
        if decision is not AllowlistDecision.ALLOW:
            return _NOT_ALLOWED
        return await self._known(who, context.verified_claims, context.claim_source)

    async def _known(self, who: ChannelIdentity, claims: Mapping[str, Any], source: str | None) -> Decision:
        key = await self._keys.look_up(who)
        if key is None and not self._keys.issues:
            # Decided here and not at `admit`, because a stranger reaches no hook.
            return _REFUSED
        return Allowed(isolation_key=key, verified_claims=claims, claim_source=source)

    async def admit(
        self, request: ChannelRequest, caller: Caller, wire: ChannelRequest, allowed: Allowed
    ) -> AdmittedRequest:
        """Admits a request after the hook, deciding again about what the hook changed.

        `wire` is the request as it came in: what it names must belong to the caller. What only the hook has set counts
        as granted by the operator.
        """
        identity = caller.identity
        if request.response_target.addresses and request.response_target == wire.response_target:
            await self._own_destinations(wire, caller, allowed.isolation_key)
        if request.identity is not None and request.identity.key != identity.key:
            identity = request.identity
            allowed = self.passed(await self.authorize(caller, identity), identity)
        if allowed.isolation_key is None and request.previous_run_id is not None:
            # Who was never here has nothing to continue, and a refused request leaves nothing behind.
            raise NotFoundError("There is no such run to continue.", param="previous_run_id")
        owner = allowed.isolation_key or await self._keys.issue(identity)
        if request.session is not None and request.session.isolation_key is not None:
            owner = request.session.isolation_key
        if not owner:
            # The empty key is that of groups: it would open everybody's.
            raise self.refusal(_REFUSED, identity)
        return AdmittedRequest(
            request=request,
            caller=caller,
            identity=identity,
            owner=owner,
            run_id=request.run_id or self._ids.new(self._run_prefixes.get(request.channel, "run")),
            admitted_at=self._clock.now(),
        )

    async def issue(self, identity: ChannelIdentity) -> str | None:
        """The isolation key of somebody who was let in; `None` when the operator's resolver refuses them."""
        return await self._keys.issue(identity)

    async def _own_destinations(self, wire: ChannelRequest, caller: Caller, key: str | None) -> None:
        """The wire sends an answer to nobody but the person who asks, wherever they are known."""
        others = set(wire.response_target.addresses) - {Address.of(caller.identity)}
        if others and key is not None:
            others -= {Address.of(one) for one in await self._keys.identities_of(key)}
        if others:
            raise InvalidRequestError("An answer can only be sent to yourself.", param="response_target")

    def passed(self, decision: Decision, identity: ChannelIdentity) -> Allowed:
        """The decision if it lets the caller in, else an error in words that may be shown."""
        if isinstance(decision, Allowed):
            return decision
        if isinstance(decision, Denied):
            raise self.refusal(decision, identity)
        raise ForbiddenError("Link your account first.", code="link_required")

    def refusal(self, denied: Denied, identity: ChannelIdentity) -> ForbiddenError:
        """Logs why, and says less."""
        log.info("denied on %s: %s (%s)", identity.channel, denied.reason_code, denied.log_details)
        return ForbiddenError(denied.user_message, code="denied")


def as_claimed(request: ChannelRequest, caller: Caller) -> ChannelRequest:
    """The request as the wire may claim it: the identity is the verified one, and nobody else's memory is named."""
    session = request.session
    if session is not None and session.isolation_key is not None:
        raise InvalidRequestError("A request can't name whose session it is.", param="session")
    return request if request.identity is caller.identity else request.replace(identity=caller.identity)
