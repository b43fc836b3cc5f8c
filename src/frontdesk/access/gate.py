"""The gate: the only place that makes an `AdmittedRequest`."""

from collections.abc import Awaitable, Callable, Mapping

from frontdesk.abc.allowlist import AccessRule, Allowed, Decision, Denied
from frontdesk.abc.linker import IdentityLinker
from frontdesk.access.authorize import REFUSED, Authorizer
from frontdesk.access.contacts import Contacts
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.link_policy import TierPolicy
from frontdesk.access.policy import OPEN
from frontdesk.clock import Clock
from frontdesk.data.identity import Caller, ChannelIdentity, IdentityRecord
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.response_target import Address
from frontdesk.errors import ForbiddenError, InvalidRequestError, LinkRequiredError, NotFoundError, UnlinkedError
from frontdesk.ids import Ids
from frontdesk.kit.hooks import call_access
from frontdesk.kit.http.idempotency import run_id_of
from frontdesk.loggers import access as log


class Gate(Authorizer):
    """Decides who is allowed in, and admits their requests."""

    link_by_claims: Callable[[Caller], Awaitable[bool]] | None = None
    """Links a caller by their verified claims, without a linking flow; returns whether that changed anything."""

    def __init__(
        self,
        keys: IdentityKeys,
        ids: Ids,
        clock: Clock,
        rules: Mapping[str, AccessRule],
        *,
        default: AccessRule = OPEN,
        linker: IdentityLinker | None = None,
        link_policy: TierPolicy | None = None,
        contacts: Contacts | None = None,
        run_prefixes: Mapping[str, str] | None = None,
    ) -> None:
        """Take the rule of each channel as `rules`, and the prefix of its run ids as `run_prefixes`."""
        super().__init__(keys, rules, default, linker)
        self._run_prefixes = run_prefixes or {}
        self._ids = ids
        self._clock = clock
        self._link_policy = link_policy
        self._contacts = contacts

    async def authorize(self, caller: Caller, channel: str, *, hooked: bool = False) -> Allowed:
        """Return the decision that allows a caller, linked if a verified claim does that; raise an error for others.

        Before a hook, a caller whom the operator's resolver does not know has no key yet: `admit` asks it again.
        """
        decision = await self.decide(caller, channel, hooked=hooked)
        if caller.claims:
            decision = await self.link_and_decide(caller, channel, decision, hooked=hooked)
        return self.require_allowed(decision, caller.identity)

    async def link_and_decide(
        self, caller: Caller, channel: str, decision: Decision, *, hooked: bool = False
    ) -> Decision:
        """Link a caller by a verified claim, and return the new decision; a caller who is denied is not linked."""
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
        """Admit a request after the hook, and decide again about the fields that the hook changed.

        `wire` is the request as it came in: everything it names must belong to the caller. A field that only the hook
        has set counts as granted by the operator. `run_id` is the id of the run, where it was made before.
        """
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
        if own and contacts is not None and contacts.says_something(caller, identity, request):
            await contacts.note(identity, request, own)
        return AdmittedRequest(
            request=request,
            caller=caller,
            identity=identity,
            owner=owner,
            run_id=request.run_id or self._run_id(request, owner, run_id),
            admitted_at=self._clock.now(),
            trace=trace,
        )

    def _run_id(self, request: ChannelRequest, owner: str, made: str | None) -> str:
        if request.idempotency_key is None:
            return made or self.new_run_id(request.channel)
        prefix = self._run_prefixes.get(request.channel, "run")
        return run_id_of(prefix, owner, request.channel, request.idempotency_key)

    def new_run_id(self, channel: str) -> str:
        """Make an id for a run of a channel."""
        return self._ids.new(self._run_prefixes.get(channel, "run"))

    async def requester(self, admitted: AdmittedRequest) -> IdentityRecord | None:
        """Return the record by which the requester still has the owner's key; refuse one who was unlinked meanwhile.

        There is none where the key is not the host's to give: set by a hook, or by a resolver or linker of the
        operator's own.
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
        """Decide about an identity that a hook has set: the caller with other attributes, or another person."""
        if identity.key == caller.identity.key:
            return self.require_allowed(await self.decide(caller.replace(identity=identity), channel), identity)
        if allowed.isolation_key is None and not self._keys.issues:
            # The resolver has refused the caller, so a hook can't let them act for another person.
            raise self.refusal(REFUSED, caller.identity)
        return await self._decide_other(identity, caller, channel)

    async def _decide_other(self, identity: ChannelIdentity, caller: Caller, channel: str) -> Allowed:
        """Decide about a person for whom a hook lets the caller act; the caller's channel sees that person's memory."""
        allowed = self.require_allowed(await self.decide(caller, channel, identity), identity)
        if self._link_policy is not None and identity.channel != caller.identity.channel:
            await self._link_policy.need("link", identity.channel, caller.identity.channel)
        return allowed

    async def issue(self, identity: ChannelIdentity) -> str | None:
        """Return the isolation key of a person who is allowed; `None` if the operator's resolver refuses them."""
        return await self._keys.issue(identity)

    async def _check_destinations(self, wire: ChannelRequest, caller: Caller, key: str | None) -> None:
        """Refuse addresses from the wire that are not the caller's own identities."""
        others = {address.plain for address in wire.response_target.addresses} - {Address.of(caller.identity)}
        if others and key is not None:
            others -= {Address.of(identity) for identity in await self._keys.identities_of(key)}
        if others:
            raise ForbiddenError("An answer can only be sent to yourself.", code="not_yours", param="response_target")

    def require_allowed(self, decision: Decision, identity: ChannelIdentity) -> Allowed:
        """Return a decision that allows the caller; raise an error that may be shown for any other."""
        if isinstance(decision, Allowed):
            return decision
        if isinstance(decision, Denied):
            raise self.refusal(decision, identity)
        raise LinkRequiredError

    def not_denied(self, decision: Decision, identity: ChannelIdentity) -> None:
        """Raise an error for a caller who is denied; one who needs a link passes, so that they can get it."""
        if isinstance(decision, Denied):
            raise self.refusal(decision, identity)

    def refusal(self, denied: Denied, identity: ChannelIdentity) -> ForbiddenError:
        """Log the reason of a denial, and make an error that does not reveal it."""
        log.info("denied on %s: %s (%s)", identity.channel, denied.reason_code, denied.log_details)
        return ForbiddenError(denied.user_message, code="denied", group_message=denied.group_message)


def identify(request: ChannelRequest, caller: Caller) -> ChannelRequest:
    """Return a request with its verified identity; refuse one that claims what only the operator may set."""
    if request.session is not None and request.granted_key is not None:
        raise InvalidRequestError("A request can't name whose session it is.", param="session")
    if request.isolation is not None:
        raise InvalidRequestError("A request can't set the platform's keys.", param="isolation")
    return request if request.identity is caller.identity else request.replace(identity=caller.identity)


def _refuse_continuation(request: ChannelRequest) -> None:
    """Refuse a new caller's request that continues a run or answers an approval, before a key is issued."""
    if request.previous_run_id is not None:
        raise NotFoundError("There is no such run to continue.", param="previous_run_id")
    if request.approvals:
        raise NotFoundError("There is no such approval.", param="approvals")
