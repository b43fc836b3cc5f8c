"""The desk of the linkers: it keeps what was begun, and alone changes who is who, each time in one transaction.

Every change of a family gives each of its members a new number, and is written only if all of them have the number that
was read. So of two changes at once one is made, and the other is planned anew on what the first has left. A turn that
runs meanwhile ends under the key with which it began.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from frontdesk.abc.linker import IdentityLinker, ReadsClaims
from frontdesk.abc.store import HostStateStore
from frontdesk.access.families import Change, Family, joined, leaving, parted
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.link_policy import TierPolicy
from frontdesk.clock import Clock
from frontdesk.data.delivery import Delivery
from frontdesk.data.identity import Caller, ChannelIdentity, IdentityRecord
from frontdesk.data.link import Grant, LinkProof, LinkRecord, Whoami
from frontdesk.errors import ConflictError, LinkRefusedError, StoreError
from frontdesk.ids import Ids
from frontdesk.kit.chat.people import told_as
from frontdesk.kit.names import digest
from frontdesk.loggers import audit

MOST_LINKED = 20
"""How many identities one person can have."""
_TRIES = 8
_A_MOMENT = 5.0
_LINKED = "The account was linked to another one."
_UNLINKED = "An account that shared this conversation was unlinked."
_OVER = "This proof has been used, or has ended. Begin again."
_TAKEN = "This account is linked with another one already. Unlink it first."
_TOO_MANY = "No more accounts can be linked with this one."
PARTED = "This account is no longer linked. It has a conversation of its own again."
_BUSY = "These accounts are being changed at the moment."

T = TypeVar("T")
Named = Callable[[str, str], str | None]
"""What people type on a channel for a command."""


class Messenger(Protocol):
    """Speaks first."""

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Says something to a person in their direct chat, if that can be done."""
        ...

    def notes(self, people: Sequence[ChannelIdentity], text: str, *, owner: str) -> Sequence[Delivery]:
        """What takes a word to people in their direct chats; to be written with what it tells of."""
        ...

    async def send(self, notes: Sequence[Delivery]) -> None:
        """Has notes sent that were written."""
        ...


class Links:
    """The `LinkDesk` of a host."""

    def __init__(
        self,
        store: HostStateStore,
        keys: IdentityKeys,
        ids: Ids,
        clock: Clock,
        *,
        policy: TierPolicy | None = None,
        messenger: Messenger | None = None,
        named: Named = lambda channel, name: None,
    ) -> None:
        self._store = store
        self._keys = keys
        self._ids = ids
        self._clock = clock
        self._policy = policy
        self._messenger = messenger
        self._named = named

    def now(self) -> float:
        return self._clock.now()

    def new_id(self, prefix: str) -> str:
        return self._ids.new(prefix)

    async def secret(self, name: str) -> bytes:
        drawn = "".join(self._ids.new(name) for _ in range(4))
        return await self._store.identities.secret(name, hashlib.sha256(drawn.encode()).digest())

    def command(self, channel: str, name: str) -> str | None:
        return self._named(channel, name)

    async def keep(self, grant: Grant) -> None:
        async with self._store.transaction() as transaction:
            transaction.add_grant(self._begun(grant), free_at=self.now())

    async def kept(self, grant_id: str) -> Grant | None:
        grant = await self._store.identities.grant(grant_id)
        if grant is None or grant.lasts(self.now()):
            return grant
        if grant.expires_at > self.now():
            # The clock was set back. It must not come to life when its time comes again, nor take a place until then.
            with suppress(StoreError):
                async with self._store.transaction() as transaction:
                    transaction.use_grant(grant_id)
        return None

    def _begun(self, grant: Grant) -> Grant:
        # What takes the place of another ends with it, and has begun with it.
        return grant if grant.begun_at is not None else grant.replace(begun_at=self.now())

    async def exchange(self, grant_id: str, *then: Grant) -> bool:
        if await self.kept(grant_id) is None:
            return False
        try:
            async with self._store.transaction() as transaction:
                transaction.use_grant(grant_id)
                for grant in then:
                    transaction.add_grant(self._begun(grant), free_at=self.now())
        except StoreError:
            return False
        return True

    async def link_of(self, identity: ChannelIdentity) -> LinkRecord | None:
        return await self._store.identities.link(identity)

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        return self._messenger is not None and await self._messenger.tell(identity, text)

    async def join(self, proof: LinkProof, *, here: ChannelIdentity | None = None) -> LinkRecord:
        try:
            return await self._tried(lambda: self._join(proof, here))
        except LinkRefusedError as refusal:
            audit.info("refused to link %s by %s: %s", _shown(proof.identity), proof.linker, refusal.code)
            raise

    async def _join(self, proof: LinkProof, here: ChannelIdentity | None) -> LinkRecord:
        if proof.grant_id is not None and await self.kept(proof.grant_id) is None:
            raise LinkRefusedError(_OVER, code="link_expired")
        first = None if proof.subject is None else await self._store.identities.linked_as(proof.subject)
        survivor = proof.survivor or (proof.identity if first is None else first.identity)
        there, other = await self._family(survivor), await self._family(proof.identity)
        if proof.survivor is None and first is not None and not _is(there.links.get(survivor.key), proof.subject):
            raise StoreError("who was linked with the subject is not any more")
        self._check(there, other, proof)
        await self._ask(there, other)
        change = joined(there, survivor.key, other, proof, self.now(), lambda: self._ids.new("lnk"))
        notes: list[Delivery] = []
        if there.key != other.key:
            notes += self._notes(other.identities, f"This account is now linked with {told_as(survivor)}.", here, there)
            told = f"{told_as(proof.identity)} is now linked with this account."
            notes += self._notes(there.identities, told, here, there)
        await self._write(change, notes, proof.grant_id, None if first is not None else proof.subject)
        made = next(one for one in change.links if one.identity.key == proof.identity.key)
        audit.info("linked %s with %s by %s (%s)", _shown(made.identity), _shown(survivor), made.linker, made.link_id)
        return made

    def _check(self, there: Family, other: Family, proof: LinkProof) -> None:
        known = other.links.get(proof.identity.key)
        if known is not None and known.subject is not None and proof.subject not in (None, known.subject):
            raise LinkRefusedError(_TAKEN, code="already_linked")
        if there.key != other.key and len(there.records) + len(other.records) > MOST_LINKED:
            raise LinkRefusedError(_TOO_MANY, code="too_many_links")

    async def _ask(self, there: Family, other: Family) -> None:
        """Whether everything that is known on either side may become known on the other."""
        if self._policy is None or there.key == other.key:
            return
        sides = [sorted({one.channel for one in family.identities}) for family in (there, other)]
        for source in sides[0]:
            for destination in sides[1]:
                await self._policy.need("link", source, destination)

    async def part(self, identity: ChannelIdentity, *, here: ChannelIdentity | None = None) -> None:
        await self._tried(lambda: self._part(identity, here))

    async def _part(self, identity: ChannelIdentity, here: ChannelIdentity | None) -> None:
        if await self._store.identities.find(identity, fresh=True) is None:
            link = await self.link_of(identity)
            if link is None:
                return
            await self._record(identity, link)
        family = await self._family(identity)
        change = parted(family, identity.key)
        if change is None:
            return
        left = leaving(family, identity.key)
        gone = {one.key for one in left}
        stayed = [one for one in family.identities if one.key not in gone]
        told = f"{told_as(identity)} is no longer linked with this account."
        notes = [*self._notes(left, PARTED, here, family), *self._notes(stayed, told, here, family)]
        await self._write(change, notes)
        for one in left:
            audit.info("unlinked %s (%s)", _shown(one), family.links[one.key].link_id)

    async def whoami(self, identity: ChannelIdentity) -> Whoami:
        """What a person may be told of themselves."""
        link = await self.link_of(identity)
        found: Sequence[LinkRecord] = ()
        if link is not None:
            found = await self._store.identities.links(link.isolation_key)
        others = sorted((one.identity for one in found if one.identity.key != identity.key), key=lambda one: one.key)
        return Whoami(identity=identity, linked=link is not None, others=tuple(others))

    async def greet(self, caller: Caller, linker: IdentityLinker) -> bool:
        """Links a caller whose verified claims are those of somebody who is linked; says whether that was done."""
        subject = linker.subject_of(caller.claims) if isinstance(linker, ReadsClaims) else None
        if subject is None or caller.anonymous:
            return False
        known = await self.link_of(caller.identity)
        if known is not None and known.subject is not None:
            return False
        first = await self._store.identities.linked_as(subject)
        if first is None or first.identity.key == caller.identity.key:
            return False
        proof = LinkProof(linker=linker.name, identity=caller.identity, subject=subject)
        try:
            await self.join(proof)
        except LinkRefusedError:
            return False
        return True

    async def _family(self, identity: ChannelIdentity) -> Family:
        # Its record first: the number in it tells whether the links that are read now are still those when it counts.
        mine = await self._record(identity)
        found = {one.identity.key: one for one in await self._store.identities.links(mine.isolation_key)}
        if identity.key not in found:
            mine = await self._present(mine)
            return Family(mine.isolation_key, {identity.key: mine}, {})
        others = {key: await self._record(link.identity, link) for key, link in found.items() if key != identity.key}
        return Family(mine.isolation_key, {identity.key: mine, **others}, found)

    async def _record(self, identity: ChannelIdentity, link: LinkRecord | None = None) -> IdentityRecord:
        known = await self._store.identities.find(identity, fresh=True)
        if known is not None:
            return known
        own = await self._keys.issue(identity) if link is None else link.isolation_key
        if not own:
            raise LinkRefusedError
        new = IdentityRecord(identity=identity, isolation_key=own, created_at=self.now())
        return await self._store.identities.remember(new)

    async def _present(self, record: IdentityRecord) -> IdentityRecord:
        """The record of somebody who is not linked, with the key that the operator's own resolver gives by now."""
        own = record.isolation_key if self._keys.issues else await self._keys.look_up(record.identity)
        if not own:
            raise LinkRefusedError
        if own == record.isolation_key:
            return record
        new = record.replace(isolation_key=own, version=record.version + 1)
        async with self._store.transaction() as transaction:
            transaction.remember_identity(new, instead_of=record)
        return new

    async def _write(
        self, change: Change, notes: Sequence[Delivery], grant_id: str | None = None, first: str | None = None
    ) -> None:
        """`first` is a subject that nobody was linked with so far."""
        now = self.now()
        async with self._store.transaction() as transaction:
            if grant_id is not None:
                transaction.use_grant(grant_id)
            if first is not None:
                # Of two at once only one is the first, and the other finds it when it tries again.
                transaction.add_grant(_being_first(first, change, now + _A_MOMENT), free_at=now)
            for subject in {link.subject for link in change.gone if link.subject is not None}:
                transaction.add_grant(_being_first(subject, change, now))
            # In one order for all, so that two changes wait for each other and never both.
            for record, known in sorted(change.records, key=lambda one: one[0].identity.key):
                transaction.remember_identity(record, instead_of=known)
            for link in change.gone:
                transaction.remove_link(link.isolation_key, link.identity)
            for link in change.links:
                transaction.add_link(link)
            if change.given_up is not None:
                transaction.cancel_approvals(change.given_up, at=now, reason=_LINKED)
            if change.divided is not None:
                # Nobody knows which of them has asked; after this, neither side can answer for the other.
                transaction.cancel_approvals(change.divided, at=now, reason=_UNLINKED)
            for note in notes:
                transaction.add_delivery(note)
        if self._messenger is not None:
            await self._messenger.send(notes)

    async def _tried(self, change: Callable[[], Awaitable[T]]) -> T:
        for _ in range(_TRIES):
            try:
                return await change()
            except StoreError:
                # Somebody else has changed one of them meanwhile; the next try begins with what is there now.
                continue
        raise ConflictError(_BUSY, code="links_busy", retry_after=1.0)

    def _notes(
        self, people: Sequence[ChannelIdentity], text: str, here: ChannelIdentity | None, family: Family
    ) -> Sequence[Delivery]:
        """What takes a word to everybody but who is told on the spot."""
        if self._messenger is None:
            return ()
        others = [one for one in people if here is None or one.key != here.key]
        return self._messenger.notes(others, text, owner=family.key)


def _is(link: LinkRecord | None, subject: str | None) -> bool:
    return link is not None and link.subject == subject


def _being_first(subject: str, change: Change, expires_at: float) -> Grant:
    name = digest(subject)
    return Grant(grant_id=f"link-first:{name}", identity=change.records[0][0].identity, expires_at=expires_at)


def _shown(identity: ChannelIdentity) -> str:
    # With the marks around it no id can pass for more than one line, or for another id.
    return f"{identity.channel}:{identity.native_id!r}"
