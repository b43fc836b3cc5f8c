"""Looks up voters: the isolation key, the claims, and all keys of the person."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from frontdesk.approvals.records import (
    CLAIM_SEAT,
    CountedVote,
    FindsPeople,
    Voter,
    find_seat,
    is_requester,
    list_claims,
)
from frontdesk.interfaces.access import Allowed
from frontdesk.interfaces.linker import IdentityLinker, ReadsClaims
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.approval import (
    ApprovalVote,
    ApproverTerms,
    PendingApproval,
    owner_key,
    person_key,
    principal_key,
    subject_key,
)
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord
from frontdesk.models.link import LinkRecord

LookUpKey = Callable[[ChannelIdentity], Awaitable[str | None]]
"""Returns the isolation key of an account without a link, or None."""
Allow = Callable[[Caller], Awaitable[Allowed | None]]
"""Returns the decision of the gate about a caller, or None for a caller who is not allowed in."""


class VoterLookup:
    def __init__(
        self,
        store: HostStateStore,
        linker: IdentityLinker | None = None,
        look_up_key: LookUpKey | None = None,
        allow: Allow | None = None,
        get_principal: Callable[[ChannelIdentity], ChannelIdentity] = lambda identity: identity,
    ) -> None:
        """Use the host's linker, keys and gate. Without them, the records of the store decide.

        `get_principal` returns the canonical identity of a principal that several channels share.
        """
        self._store = store
        self._linker = linker
        self._build_union = get_principal
        self._look_up_key = look_up_key or self._find_key
        self._allow = allow or self._allow_stored

    async def _find_key(self, identity: ChannelIdentity) -> str | None:
        record = await self._store.identities.find(identity)
        return None if record is None else record.isolation_key

    async def _allow_stored(self, caller: Caller) -> Allowed | None:
        link = await self._store.identities.link(caller.identity)
        claims = caller.claims if link is None or not link.claims else link.claims
        return Allowed(isolation_key=await self.find_key(caller.identity), verified_claims=claims)

    async def _link(self, identity: ChannelIdentity) -> LinkRecord | None:
        return None if self._linker is None else await self._linker.resolve(self._build_union(identity))

    async def find_key(self, identity: ChannelIdentity) -> str | None:
        """Return the isolation key of an account as the gate returns it, or None."""
        link = await self._link(identity)
        return await self._look_up_key(identity) if link is None else link.isolation_key

    async def find_person_keys(self, caller: Caller) -> frozenset[str]:
        identity = caller.identity
        own = None if caller.anonymous else await self._link(identity)
        key = await self._look_up_key(identity) if own is None else own.isolation_key
        family: Sequence[LinkRecord] = await self._store.identities.links(key) if key else ()
        keys = {person_key(identity), *_keys_of_claims(caller, self._linker)}
        if key:
            keys.add(owner_key(key))
        for link in family if own is None else (own, *family):
            keys.add(person_key(link.identity))
            if link.subject is not None:
                keys.add(subject_key(link.linker, link.subject))
        return frozenset(keys)

    async def recognise(self, voter: Voter) -> Voter:
        if voter.person_keys:
            return voter
        known = await self.find_person_keys(voter.caller or Caller(identity=voter.identity))
        return voter.replace(person_keys=known | {owner_key(voter.key)} if voter.key else known)

    async def refresh(self, identity: ChannelIdentity) -> IdentityRecord | None:
        """Read the record of an account past the cache of the store.

        The record is read first. While it keeps its version, the links of the account have not changed.
        """
        identity = self._build_union(identity)
        record = await self._store.identities.find(identity, fresh=True)
        await self._store.identities.link(identity, fresh=True)
        return record

    @property
    def fresh(self) -> FindsPeople:
        """Return the same lookup without the cache of the store."""
        return _FreshLookup(self)

    async def update_voter(self, voter: Voter, *, keeps_key: bool) -> tuple[Voter | None, IdentityRecord | None]:
        """Return a voter with their current key and claims, and the identity record on which these depend.

        The voter is None if the gate denies them now. With `keeps_key` the gate does not look up the key, and a denied
        voter stays: a hook may have granted the key of the question's owner. The run that continues after the decision
        admits the owner again.
        """
        record = await self.refresh(voter.identity)
        caller = voter.caller or Caller(identity=voter.identity)
        allowed = await self._allow(caller)
        if allowed is None and not keeps_key:
            return None, record
        now = Voter(
            identity=voter.identity,
            key=voter.key if keeps_key or allowed is None else allowed.isolation_key or voter.key,
            claims=caller.claims if allowed is None else allowed.verified_claims,
            caller=caller,
        )
        return await self.recognise(now), record

    async def evaluate_vote(
        self, question: PendingApproval, terms: ApproverTerms, vote: ApprovalVote
    ) -> tuple[CountedVote, IdentityRecord | None]:
        """Return an earlier vote with its current validity, and the record that proves it."""
        if vote.identity is None:
            return CountedVote(vote, vote.voter == question.owner and terms.asks_requester), None
        caller = Caller(identity=vote.identity, claims=vote.claims)
        # Another account of the owner may have lost the owner's key since.
        keeps_key = vote.voter == question.owner and _is_account_of_requester(question, vote.identity)
        voter, record = await self.update_voter(
            Voter(identity=vote.identity, key=vote.voter, claims=vote.claims, caller=caller), keeps_key=keeps_key
        )
        if voter is None:
            return CountedVote(vote, False), record
        # The person is the one who has voted, even if the account belongs to somebody else now.
        voter = voter.replace(person_keys=voter.person_keys.union(vote.person_keys))
        if await find_seat(question, terms, voter, self.fresh) is not None:
            return CountedVote(vote, True, voter.person_keys), record
        if not _has_unstored_claims(vote, record) or not list_claims(question, terms):
            return CountedVote(vote, False), record
        voter = await self.recognise(Voter(identity=vote.identity, key=vote.voter))
        excluded = terms.exclude_requester and await is_requester(question, voter, self.fresh)
        return CountedVote(vote, not excluded, voter.person_keys), record


class _FreshLookup:
    def __init__(self, lookup: VoterLookup) -> None:
        self._lookup = lookup

    async def find_key(self, identity: ChannelIdentity) -> str | None:
        await self._lookup.refresh(identity)
        return await self._lookup.find_key(identity)

    async def find_person_keys(self, caller: Caller) -> frozenset[str]:
        await self._lookup.refresh(caller.identity)
        return await self._lookup.find_person_keys(caller)


def _is_account_of_requester(question: PendingApproval, identity: ChannelIdentity) -> bool:
    return question.requester is not None and question.requester.identity.key == identity.key


def _has_unstored_claims(vote: ApprovalVote, record: IdentityRecord | None) -> bool:
    """Return True if a vote of an earlier version was valid because of channel claims.

    Earlier versions did not store them. An account that was never linked had no others.
    """
    return not vote.person_keys and vote.seat.startswith(CLAIM_SEAT) and (record is None or record.version == 0)


def _keys_of_claims(caller: Caller, linker: IdentityLinker | None) -> list[str]:
    """Return the keys of the subject that the channel verified with the request."""
    claims: Mapping[str, Any] = caller.claims
    if caller.anonymous or not claims:
        return []
    keys: list[str] = []
    subject = linker.get_subject(claims) if isinstance(linker, ReadsClaims) else None
    if linker is not None and subject is not None:
        keys.append(subject_key(linker.name, subject))
    if caller.claim_source:
        keys.append(principal_key(caller.claim_source, caller.identity.native_id))
    return keys


def check_unchanged(transaction: StateTransaction, records: Sequence[IdentityRecord]) -> None:
    """Raise `IdentityChangedError` in a transaction if the key or the links of an account have changed.

    Must be the first step of the transaction, in a fixed order: link changes lock the same rows first.
    """
    unique = {record.identity.key: record for record in records}
    for _, record in sorted(unique.items()):
        transaction.remember_identity(record, instead_of=record)
