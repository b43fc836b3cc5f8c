"""Stores link grants and changes links. The only code that changes links, each change in a transaction.

A change of a family writes a new version for each member, and commits only if all members still have the version that
was read. Of two concurrent changes, one is written and the other is recomputed from its result. A turn that runs during
a change ends under the key with which it began.
"""

import hashlib
import warnings
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from frontdesk.access.families import Change, Family, find_first, join_names, list_leaving, merge, split
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.policy import TierPolicy
from frontdesk.access.stored_requests import StoredRequests, release
from frontdesk.chat.commands import locale_of_person
from frontdesk.chat.i18n.texts import ENGLISH, Texts
from frontdesk.chat.i18n.wording import person_phrase
from frontdesk.clock import Clock
from frontdesk.errors import ConflictError, LinkRefusedError, Phrase, StoreError
from frontdesk.identifiers import digest
from frontdesk.ids import Ids
from frontdesk.interfaces.linker import IdentityLinker, ReadsClaims
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.loggers import audit
from frontdesk.models.approval import AuditLine, name_people
from frontdesk.models.delivery import Delivery
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord
from frontdesk.models.link import Grant, LinkProof, LinkRecord, Whoami

MAX_LINKED = 20
"""The number of identities that one person can have."""
_NAMES = ("name", "preferred_username", "email", "login")
"""The claims that name a person, the first that is there counts."""
_MAX_TRIES = 8
_GRACE_SECONDS = 5.0
_LINKED, _UNLINKED = ENGLISH["reason.linked"], ENGLISH["reason.unlinked"]
_OVER = "This proof was used before, or has expired. Start again."
_TAKEN = "This account is already linked with another one. Unlink it first."
_TOO_MANY = "No more accounts can be linked with this one."
_PARTED = Phrase("link.parted")
_BUSY = "These accounts are being changed. Try again."
_CHANGED = "The link has changed since it was read. Read it again."

T = TypeVar("T")
Named = Callable[[str, str], str | None]
"""Returns what people type on a channel for a command."""
OnLinksChanged = Callable[[Sequence[ChannelIdentity]], Awaitable[None]]
"""Takes note of the identities of a change, once it is written."""


class CancelsQuestions(Protocol):
    """Cancels pending questions of an owner and updates the messages that display them."""

    async def note_cancelled(
        self, owner: str, at: float, reason: str
    ) -> tuple[Callable[[StateTransaction], None], Callable[[], Awaitable[None]]]:
        """Return a transaction step that cancels all pending questions of an owner, and a follow-up for after the
        commit."""
        ...

    async def note_left(
        self, people: Sequence[ChannelIdentity]
    ) -> tuple[Callable[[StateTransaction], None], Callable[[], Awaitable[None]]]:
        """Return a transaction step that updates questions that unlinked people can no longer answer, and a
        follow-up."""
        ...


class Messenger(Protocol):
    """Sends messages that are not answers."""

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        """Send a text to a person's direct chat. Return True if that was possible."""
        ...

    def notes(self, people: Sequence[ChannelIdentity], text: str, *, owner: str) -> Sequence[Delivery]:
        """Return deliveries of a text to direct chats, to be written in the transaction of the change they announce."""
        ...

    async def send(self, notes: Sequence[Delivery]) -> None:
        """Send notes that are already written."""
        ...


class Links:
    def __init__(
        self,
        store: HostStateStore,
        keys: IdentityKeys,
        ids: Ids,
        clock: Clock,
        *,
        policy: TierPolicy | None = None,
        messenger: Messenger | None = None,
        questions: CancelsQuestions | None = None,
        named: Named = lambda channel, name: None,
        changed: OnLinksChanged | None = None,
        texts: Texts | None = None,
        public_url: str | None = None,
        requests: StoredRequests | None = None,
    ) -> None:
        self._store = store
        self._keys = keys
        self._ids = ids
        self._clock = clock
        self._policy = policy
        self._messenger = messenger
        self._questions: CancelsQuestions = questions or _UnseenQuestions()
        self._named = named
        self._changed = changed
        self._texts = texts or Texts()
        self.public_url = public_url
        self._requests = requests

    def now(self) -> float:
        return self._clock.now()

    def new_id(self, prefix: str) -> str:
        return self._ids.new(prefix)

    async def secret(self, name: str) -> bytes:
        random = "".join(self._ids.new(name) for _ in range(4))
        return await self._store.identities.secret(name, hashlib.sha256(random.encode()).digest())

    def command(self, channel: str, name: str) -> str | None:
        return self._named(channel, name)

    async def keep(self, grant: Grant) -> None:
        async with self._store.transaction() as transaction:
            transaction.add_grant(self._set_begin(grant), free_at=self.now())

    async def kept(self, grant_id: str) -> Grant | None:
        grant = await self._store.identities.grant(grant_id)
        if grant is None or grant.lasts(self.now()):
            return grant
        if grant.expires_at > self.now():
            # The clock was set back: the grant must not become valid again later, nor count as open until then.
            with suppress(StoreError):
                async with self._store.transaction() as transaction:
                    transaction.use_grant(grant_id)
        return None

    def _set_begin(self, grant: Grant) -> Grant:
        # A grant that replaces another keeps its beginning, and so its end.
        return grant if grant.begun_at is not None else grant.replace(begun_at=self.now())

    async def exchange(self, grant_id: str, *then: Grant) -> bool:
        if await self.kept(grant_id) is None:
            return False
        try:
            async with self._store.transaction() as transaction:
                transaction.use_grant(grant_id)
                for grant in then:
                    transaction.add_grant(self._set_begin(grant), free_at=self.now())
        except StoreError:
            return False
        return True

    async def find_link(self, identity: ChannelIdentity) -> LinkRecord | None:
        return await self._store.identities.link(identity)

    async def link_of(self, identity: ChannelIdentity) -> LinkRecord | None:
        warnings.warn("link_of is deprecated. Use find_link.", DeprecationWarning, stacklevel=2)
        return await self.find_link(identity)

    def say(self, identity: ChannelIdentity, key: str, /, **values: Any) -> str:
        return self._texts.say(key, locale_of_person(identity), **values)

    async def tell(self, identity: ChannelIdentity, text: str) -> bool:
        return self._messenger is not None and await self._messenger.tell(identity, text)

    async def join(self, proof: LinkProof, *, here: ChannelIdentity | None = None) -> LinkRecord:
        try:
            return await self._retry(lambda: self._join(proof, here))
        except LinkRefusedError as refusal:
            audit.info(
                "link refused: identity=%s linker=%s: %s", _format_identity(proof.identity), proof.linker, refusal.code
            )
            raise

    async def _join(self, proof: LinkProof, here: ChannelIdentity | None) -> LinkRecord:
        if proof.grant_id is not None and await self.kept(proof.grant_id) is None:
            raise LinkRefusedError(_OVER, code="link_expired")
        first = None if proof.subject is None else await self._store.identities.linked_as(proof.subject)
        survivor = proof.survivor or (proof.identity if first is None else first.identity)
        there, other = await self._family(survivor), await self._family(proof.identity)
        found_by_subject = proof.survivor is None and first is not None
        if found_by_subject and not _has_subject(there.links.get(survivor.key), proof.subject):
            raise StoreError("the identity linked with the subject has been unlinked")
        self._check(there, other, proof)
        await self._check_policy(there, other)
        change = merge(there, survivor.key, other, proof, self.now(), lambda: self._ids.new("lnk"))
        notes: list[Delivery] = []
        if there.key != other.key:
            notes += self._notes(other.identities, Phrase("link.now_with", _other(survivor)), here, there)
            notes += self._notes(there.identities, Phrase("link.now_here", _other(proof.identity)), here, there)
        made = next(link for link in change.links if link.identity.key == proof.identity.key)
        known = {link.link_id for link in (*there.links.values(), *other.links.values())}
        is_new = made.link_id not in known or there.key != other.key
        lines = [_build_linked_line(made, survivor, self.now())] if is_new or _newly_proved(made, other) else ()
        await self._write(change, notes, proof.grant_id, None if first is not None else proof.subject, lines)
        audit.info(
            "identities linked: identity=%s with=%s linker=%s link_id=%s",
            _format_identity(made.identity),
            _format_identity(survivor),
            made.linker,
            made.link_id,
        )
        return made

    def _check(self, there: Family, other: Family, proof: LinkProof) -> None:
        link = other.links.get(proof.identity.key)
        if link is not None and link.subject is not None and proof.subject not in (None, link.subject):
            raise LinkRefusedError(_TAKEN, code="already_linked")
        if there.key != other.key and len(there.records) + len(other.records) > MAX_LINKED:
            raise LinkRefusedError(_TOO_MANY, code="too_many_links")

    async def _check_policy(self, there: Family, other: Family) -> None:
        """Raise unless the policy lets all channels of both families share."""
        if self._policy is None or there.key == other.key:
            return
        sides = [self._list_channels(family) for family in (there, other)]
        for source in sides[0]:
            for destination in sides[1]:
                await self._policy.need("link", source, destination)

    def _list_channels(self, family: Family) -> list[str]:
        channels = {identity.channel for identity in family.identities}
        return sorted({name for channel in channels for name in self._keys.list_channels(channel)})

    async def part(self, identity: ChannelIdentity, *, here: ChannelIdentity | None = None) -> None:
        await self._retry(lambda: self._part(identity, here))

    async def revoke(self, link: LinkRecord, *, by: str) -> None:
        """End a link on behalf of an operator and write audit lines. Raise if the link was replaced meanwhile."""
        await self._retry(lambda: self._part(link.identity, None, link, by))

    async def _part(
        self,
        identity: ChannelIdentity,
        here: ChannelIdentity | None,
        seen: LinkRecord | None = None,
        by: str | None = None,
    ) -> None:
        if await self._store.identities.find(identity, fresh=True) is None:
            link = await self.find_link(identity)
            if link is None:
                return
            await self._record(identity, link)
        family = await self._family(identity)
        current = family.links.get(identity.key)
        if seen is not None and (
            current is None or current.link_id != seen.link_id or family.key != seen.isolation_key
        ):
            raise ConflictError(_CHANGED, code="changed")
        change = split(family, identity.key)
        if change is None:
            return
        left = list_leaving(family, identity.key)
        gone = {identity.key for identity in left}
        stayed = [identity for identity in family.identities if identity.key not in gone]
        gone_from = Phrase("link.gone", _other(identity))
        notes = [*self._notes(left, _PARTED, here, family), *self._notes(stayed, gone_from, here, family)]
        ended = [family.links[identity.key] for identity in left]
        lines = [_build_unlinked_line(link, family.key if by is None else by, self.now()) for link in ended]
        await self._write(change, notes, lines=lines)
        for identity in left:
            audit.info(
                "identity unlinked: identity=%s link_id=%s",
                _format_identity(identity),
                family.links[identity.key].link_id,
            )

    async def join_names(self, home: ChannelIdentity, other: ChannelIdentity, line: AuditLine) -> None:
        """Join two identities of one principal and write an audit line. `home` represents both."""
        await self._retry(lambda: self._join_names(home, other, line))

    async def _join_names(self, home: ChannelIdentity, other: ChannelIdentity, line: AuditLine) -> None:
        change = join_names(await self._family(home), home.key, await self._family(other), other.key)
        if change is None:
            raise LinkRefusedError(_TAKEN, code="already_linked")
        await self._write(change, (), lines=(line,))

    async def allows_name(self, home: ChannelIdentity, isolation_key: str) -> bool:
        """Return True if an identity may replace one in a family. Always False without the policy of a host."""
        if self._policy is None:
            return False
        linked = {link.identity.channel for link in await self._store.identities.links(isolation_key)}
        for source in self._keys.list_channels(home.channel):
            for channel in linked:
                if not await self._policy.allows("link", source, channel):
                    return False
        return True

    async def whoami(self, identity: ChannelIdentity) -> Whoami:
        links = await self._list_linked(identity)
        others = [each.identity for each in links if each.identity.key != identity.key]
        return Whoami(identity=identity, linked=bool(links), others=tuple(sorted(others, key=lambda other: other.key)))

    async def find_verified_name(self, identity: ChannelIdentity) -> str | None:
        """Return the provider-verified name of a person, from any of their identities."""
        claims = [link.claims for link in await self._list_linked(identity)]
        names = (one.get(name) for name in _NAMES for one in claims)
        return next((name for name in names if isinstance(name, str) and name), None)

    async def get_home(self, identity: ChannelIdentity, *, fresh: bool = False) -> ChannelIdentity:
        """Return the person's first identity on the same channel. `fresh` bypasses the cache."""
        linked = await self._list_linked(identity, fresh=fresh)
        links = [link for link in linked if link.identity.channel == identity.channel]
        return find_first(links).identity if links else identity

    async def _list_linked(self, identity: ChannelIdentity, *, fresh: bool = False) -> Sequence[LinkRecord]:
        link = await self._store.identities.link(identity, fresh=fresh)
        return () if link is None else await self._store.identities.links(link.isolation_key)

    async def greet(self, caller: Caller, linker: IdentityLinker) -> bool:
        """Link a caller by verified claims that are linked with another identity. Return True if linked."""
        subject = linker.get_subject(caller.claims) if isinstance(linker, ReadsClaims) else None
        if subject is None or caller.anonymous:
            return False
        link = await self.find_link(caller.identity)
        if link is not None and link.subject is not None:
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
        # Its record first: its version tells at the write whether the links that are read now are still the same.
        record = await self._record(identity)
        links = {link.identity.key: link for link in await self._store.identities.links(record.isolation_key)}
        if identity.key not in links:
            record = await self._present(record)
            return Family(record.isolation_key, {identity.key: record}, {})
        others = {key: await self._record(link.identity, link) for key, link in links.items() if key != identity.key}
        return Family(record.isolation_key, {identity.key: record, **others}, links)

    async def _record(self, identity: ChannelIdentity, link: LinkRecord | None = None) -> IdentityRecord:
        record = await self._store.identities.find(identity, fresh=True)
        if record is not None:
            return record
        own = await self._keys.issue(identity) if link is None else link.isolation_key
        if not own:
            raise LinkRefusedError
        new = IdentityRecord(identity=identity, isolation_key=own, created_at=self.now())
        return await self._store.identities.remember(new)

    async def _present(self, record: IdentityRecord) -> IdentityRecord:
        """Return the record of an unlinked identity with the key that the operator's resolver returns now."""
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
        self,
        change: Change,
        notes: Sequence[Delivery],
        grant_id: str | None = None,
        first: str | None = None,
        lines: Sequence[AuditLine] = (),
    ) -> None:
        """Write a change in one transaction. `first` is a subject that was not linked with any identity before."""
        now = self.now()
        # After an unlink it is not known which side was asked; from now on, neither can answer for the other.
        owners = ((change.given_up, _LINKED), (change.divided, _UNLINKED))
        cancelled = [
            await self._questions.note_cancelled(owner, now, reason) for owner, reason in owners if owner is not None
        ]
        kept = {link.identity.key for link in change.links}
        left = [link.identity for link in change.gone if link.identity.key not in kept]
        if left:
            cancelled.append(await self._questions.note_left(left))
        stored = () if self._requests is None else await self._requests.find([link.identity for link in change.links])
        async with self._store.transaction() as transaction:
            if grant_id is not None:
                transaction.use_grant(grant_id)
            if first is not None:
                # Of two at once only one can add the grant; the other finds the link when it tries again.
                transaction.add_grant(_first_grant(first, change, now + _GRACE_SECONDS), free_at=now)
            for subject in {link.subject for link in change.gone if link.subject is not None}:
                transaction.add_grant(_first_grant(subject, change, now))
            # Always in the same order, so that two changes can't deadlock.
            for record, before in sorted(change.records, key=lambda pair: pair[0].identity.key):
                transaction.remember_identity(record, instead_of=before)
            for link in change.gone:
                transaction.remove_link(link.isolation_key, link.identity)
            for link in change.links:
                transaction.add_link(link)
            for cancel, _ in cancelled:
                cancel(transaction)
            for note in notes:
                transaction.add_delivery(note)
            for line in lines:
                transaction.add_audit(line)
            release(transaction, stored)
        for _, finish in cancelled:
            await finish()
        if self._messenger is not None:
            await self._messenger.send(notes)
        if self._requests is not None:
            await self._requests.start(stored)
        if self._changed is not None:
            await self._changed([record.identity for record, _ in change.records])

    async def _retry(self, change: Callable[[], Awaitable[T]]) -> T:
        for _ in range(_MAX_TRIES):
            try:
                return await change()
            except StoreError:
                # A concurrent change came first; the next try reads what it has written.
                continue
        raise ConflictError(_BUSY, code="links_busy", retry_after=1.0)

    def _notes(
        self, people: Sequence[ChannelIdentity], phrase: Phrase, here: ChannelIdentity | None, family: Family
    ) -> Sequence[Delivery]:
        """Return deliveries of a phrase to all identities except `here`, which displays it anyway."""
        if self._messenger is None:
            return ()
        notes: list[Delivery] = []
        for person in people:
            if here is None or person.key != here.key:
                text = self._texts.say_phrase(phrase, locale_of_person(person))
                notes += self._messenger.notes([person], text, owner=family.key)
        return notes


def _other(identity: ChannelIdentity) -> dict[str, Phrase]:
    return {"other": person_phrase(identity)}


class _UnseenQuestions:
    """Cancels questions that are not displayed in any message."""

    async def note_cancelled(
        self, owner: str, at: float, reason: str
    ) -> tuple[Callable[[StateTransaction], None], Callable[[], Awaitable[None]]]:
        async def finish() -> None:
            return None

        return lambda transaction: transaction.cancel_approvals(owner, at=at, reason=reason), finish

    async def note_left(
        self, people: Sequence[ChannelIdentity]
    ) -> tuple[Callable[[StateTransaction], None], Callable[[], Awaitable[None]]]:
        async def finish() -> None:
            return None

        return lambda transaction: None, finish


def _has_subject(link: LinkRecord | None, subject: str | None) -> bool:
    return link is not None and link.subject == subject


def _newly_proved(made: LinkRecord, before: Family) -> bool:
    """Return True if a subject was proved for an account that was linked without one."""
    known = before.links.get(made.identity.key)
    return known is not None and known.subject != made.subject


def _build_linked_line(link: LinkRecord, survivor: ChannelIdentity, at: float) -> AuditLine:
    accounts = [link.identity] if survivor.key == link.identity.key else [link.identity, survivor]
    owner, reason = link.isolation_key, f"{link.linker}: {name_people(accounts)}"
    return AuditLine(at=at, owner=owner, subject=link.link_id, action="linked", by=owner, reason=reason)


def _build_unlinked_line(link: LinkRecord, by: str, at: float) -> AuditLine:
    owner, reason = link.isolation_key, name_people([link.identity])
    return AuditLine(at=at, owner=owner, subject=link.link_id, action="unlinked", by=by, reason=reason)


def _first_grant(subject: str, change: Change, expires_at: float) -> Grant:
    name = digest(subject)
    return Grant(grant_id=f"link-first:{name}", identity=change.records[0][0].identity, expires_at=expires_at)


def _format_identity(identity: ChannelIdentity) -> str:
    # Quoted, so that an id can't look like several log lines, or like another id.
    return f"{identity.channel}:{identity.native_id!r}"
