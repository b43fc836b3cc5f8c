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
    """Decides who may come in, and admits their requests."""

    link_by_claims: Callable[[Caller], Awaitable[bool]] | None = None
    """Links a caller whose verified claims say who they are, without a ceremony; true if that changed anything."""

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
        """`rules` has the rule of each channel, `run_prefixes` how the ids of its runs begin."""
        super().__init__(keys, rules, default, linker)
        self._run_prefixes = run_prefixes or {}
        self._ids = ids
        self._clock = clock
        self._link_policy = link_policy
        self._contacts = contacts

    async def authorize(self, caller: Caller, channel: str, *, hooked: bool = False) -> Allowed:
        """Let a caller in at a door, linked if a verified claim does that; an error for everyone else.

        Before a hook, one whom the operator's resolver does not know has no key yet: `admit` asks it again.
        """
        decision = await self.decide(caller, channel, hooked=hooked)
        if caller.claims:
            decision = await self.joined(caller, channel, decision, hooked=hooked)
        return self.require_allowed(decision, caller.identity)

    async def joined(self, caller: Caller, channel: str, decision: Decision, *, hooked: bool = False) -> Decision:
        """The decision, once a verified claim has linked the caller; whoever is denied is not linked."""
        if self.link_by_claims is None or isinstance(decision, Denied):
            return decision
        if not await call_access("linker", self.link_by_claims, caller):
            return decision
        return await self.decide(caller, channel, hooked=hooked)

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
        spoken_for = request.identity
        if spoken_for is not None and spoken_for is not identity and spoken_for != identity:
            allowed = await self._changed(spoken_for, caller, wire.channel, allowed)
            identity = spoken_for
        granted = request.granted_key
        if allowed.isolation_key is None and granted is None:
            _need_nothing_before(request)
        own = owner = allowed.isolation_key or await self._keys.issue(identity)
        if owner and granted is not None:
            owner = granted
        if not owner:
            # The empty key is that of groups: it would open everybody's.
            raise self.refusal(REFUSED, identity)
        contacts = self._contacts
        if own and contacts is not None and contacts.says_something(caller, identity, request):
            await contacts.note(identity, request, own)
        return AdmittedRequest(
            request=request,
            caller=caller,
            identity=identity,
            owner=owner,
            run_id=request.run_id or self._run_id(request, owner),
            admitted_at=self._clock.now(),
        )

    def _run_id(self, request: ChannelRequest, owner: str) -> str:
        prefix = self._run_prefixes.get(request.channel, "run")
        if request.idempotency_key is None:
            return self._ids.new(prefix)
        return run_id_of(prefix, owner, request.channel, request.idempotency_key)

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
            spoken_for = None if identity.key == caller.identity.key else identity
            asking = caller if spoken_for is not None else caller.replace(identity=identity)
            decision = await self.decide(asking, admitted.request.channel, spoken_for)
            if isinstance(decision, Allowed) and decision.isolation_key == admitted.owner:
                return None
        raise UnlinkedError

    async def _changed(self, identity: ChannelIdentity, caller: Caller, door: str, allowed: Allowed) -> Allowed:
        """Decides anew about an identity that a hook has set: the caller with other attributes, or somebody else."""
        if identity.key == caller.identity.key:
            return self.require_allowed(await self.decide(caller.replace(identity=identity), door), identity)
        if allowed.isolation_key is None and not self._keys.issues:
            # The resolver has not let the caller in, and a hook can't let them speak for another then.
            raise self.refusal(REFUSED, caller.identity)
        return await self._another(identity, caller, door)

    async def _another(self, identity: ChannelIdentity, caller: Caller, door: str) -> Allowed:
        """Decides about somebody for whom a hook lets the caller speak, and whose memory the caller's channel sees."""
        allowed = self.require_allowed(await self.decide(caller, door, identity), identity)
        if self._link_policy is not None and identity.channel != caller.identity.channel:
            await self._link_policy.need("link", identity.channel, caller.identity.channel)
        return allowed

    async def issue(self, identity: ChannelIdentity) -> str | None:
        """The isolation key of somebody who was let in; `None` when the operator's resolver refuses them."""
        return await self._keys.issue(identity)

    async def _own_destinations(self, wire: ChannelRequest, caller: Caller, key: str | None) -> None:
        """The wire sends an answer to nobody but the person who asks, wherever they are known."""
        others = {one.plain for one in wire.response_target.addresses} - {Address.of(caller.identity)}
        if others and key is not None:
            others -= {Address.of(one) for one in await self._keys.identities_of(key)}
        if others:
            raise ForbiddenError("An answer can only be sent to yourself.", code="not_yours", param="response_target")

    def require_allowed(self, decision: Decision, identity: ChannelIdentity) -> Allowed:
        """The decision if it lets the caller in, else an error in words that may be shown."""
        if isinstance(decision, Allowed):
            return decision
        if isinstance(decision, Denied):
            raise self.refusal(decision, identity)
        raise LinkRequiredError

    def not_denied(self, decision: Decision, identity: ChannelIdentity) -> None:
        """Lets pass who may come in or could by a link, for what belongs to linking itself."""
        if isinstance(decision, Denied):
            raise self.refusal(decision, identity)

    def refusal(self, denied: Denied, identity: ChannelIdentity) -> ForbiddenError:
        """Logs why, and says less."""
        log.info("denied on %s: %s (%s)", identity.channel, denied.reason_code, denied.log_details)
        return ForbiddenError(denied.user_message, code="denied", group_message=denied.group_message)


def identify(request: ChannelRequest, caller: Caller) -> ChannelRequest:
    """Return a request with its verified identity; refuse one that claims what only the operator may set."""
    if request.granted_key is not None:
        raise InvalidRequestError("A request can't name whose session it is.", param="session")
    if request.isolation is not None:
        raise InvalidRequestError("A request can't set the platform's keys.", param="isolation")
    return request if request.identity is caller.identity else request.replace(identity=caller.identity)


def _need_nothing_before(request: ChannelRequest) -> None:
    """Refuse what goes on from something: who was never here has nothing, and a refusal leaves nothing behind."""
    if request.previous_run_id is not None:
        raise NotFoundError("There is no such run to continue.", param="previous_run_id")
    if request.approvals:
        raise NotFoundError("There is no such approval.", param="approvals")
