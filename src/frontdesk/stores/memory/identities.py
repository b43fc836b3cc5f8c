"""Identities of the in-memory store, with their isolation keys, links and grants."""

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from frontdesk.errors import IdentityChangedError, StoreError
from frontdesk.models.approval import claim_keys
from frontdesk.models.identity import ChannelIdentity, IdentityRecord, LastSeen, PushGroup, Reach
from frontdesk.models.link import Grant, LinkRecord
from frontdesk.stores.memory.bounded_dict import BoundedDict, FairBoundedDict

Key = tuple[str, str]


class MemoryIdentities:
    def __init__(self, limit: int) -> None:
        self.records: BoundedDict[Key, IdentityRecord] = BoundedDict(limit, self._drop_record)
        self._reach: dict[Key, Reach] = {}
        self.seen: BoundedDict[str, LastSeen] = BoundedDict(limit)
        self.owned: dict[str, dict[Key, ChannelIdentity]] = {}
        self.linked: BoundedDict[Key, LinkRecord] = BoundedDict(limit, self._forget_link)
        self.in_order: list[Key] = []
        """The identities that have a link, sorted for the operator's pages."""
        self.of_key: dict[str, dict[Key, None]] = {}
        self.of_subject: dict[str, dict[Key, None]] = {}
        self.of_claim: dict[str, dict[Key, None]] = {}
        self.grants: FairBoundedDict[str, Grant] = FairBoundedDict(limit, lambda _, grant: grant.identity.key)
        self.secrets: dict[str, bytes] = {}
        self._used: set[Key] = set()
        """The identities that were looked up since the last call of `drop_idle`."""
        self._used_at: dict[Key, float] = {}

    def drop_idle(self, now: float, seconds: float, owners: Callable[[], Collection[str]]) -> int:
        """Drop identities that were unused for that long and own nothing. `owners` returns the owning keys.

        Recording the time at each use would cost every request, so the time of the next call counts instead.
        """
        self._used_at = {
            key: now if key in self._used else self._used_at.get(key, now) for key, _ in self.records.items()
        }
        self._used.clear()
        old = [key for key, used_at in self._used_at.items() if used_at < now - seconds]
        if not old:
            return 0
        kept = {*owners(), *self.of_key, *(key for key, seen in self.seen.items() if seen.at >= now - seconds)}
        return sum(self._drop_unowned(key, kept) for key in old)

    def _drop_unowned(self, key: Key, kept: Collection[str]) -> bool:
        record = self.records.get(key)
        if record is None or record.version or record.isolation_key in kept or key in self.linked:
            return False
        self.records.pop(key)
        self._drop_record(key, record)
        self.seen.pop(record.isolation_key)
        return True

    def _drop_record(self, key: Key, record: IdentityRecord) -> None:
        self._reach.pop(key, None)
        self._forget(key, record)

    def _forget(self, key: Key, record: IdentityRecord) -> None:
        self._used.discard(key)
        self._used_at.pop(key, None)
        owned = self.owned.get(record.isolation_key, {})
        owned.pop(key, None)
        if not owned:
            self.owned.pop(record.isolation_key, None)

    async def find(self, identity: ChannelIdentity, *, fresh: bool = False) -> IdentityRecord | None:
        key = (identity.channel, identity.native_id)
        record = self.records.get(key)
        if record is not None:
            self.records.touch(key)
            self._used.add(key)
        return record

    async def reach(self, identity: ChannelIdentity) -> Reach:
        return self._reach.get(identity.key) or Reach()

    def keep_reference(self, identity: ChannelIdentity, reference: Mapping[str, Any]) -> None:
        if identity.key in self.records:
            self._reach[identity.key] = self._reach.get(identity.key, Reach()).replace(reference=reference)

    def keep_group(self, identity: ChannelIdentity, group: PushGroup | None) -> None:
        if identity.key in self.records:
            self._reach[identity.key] = self._reach.get(identity.key, Reach()).replace(group=group)

    async def remember(self, record: IdentityRecord) -> IdentityRecord:
        current = self.records.get(record.identity.key)
        if current is None:
            self.save(record)
            return record
        return current

    async def of_owner(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        return sorted(self.owned.get(isolation_key, {}).values(), key=lambda identity: identity.key)

    async def last_seen(self, isolation_key: str) -> LastSeen | None:
        return self.seen.get(isolation_key)

    async def links(self, isolation_key: str) -> Sequence[LinkRecord]:
        return self._links(self.of_key.get(isolation_key, ()))

    async def link(self, identity: ChannelIdentity, *, fresh: bool = False) -> LinkRecord | None:
        return self.linked.get(identity.key)

    async def linked_as(self, subject: str) -> LinkRecord | None:
        links = self._links(self.of_subject.get(subject, ()))
        return min(links, key=lambda link: (link.linked_at, link.identity.key), default=None)

    async def holders(self, claims: Sequence[str], *, channels: Sequence[str], limit: int) -> Sequence[LinkRecord]:
        keys = {key for claim in claims for key in self.of_claim.get(claim, ()) if key[0] in channels}
        return self._links(sorted(keys)[:limit])

    async def all_links(self, *, after: ChannelIdentity | None = None, limit: int = 100) -> Sequence[LinkRecord]:
        start = 0 if after is None else bisect_right(self.in_order, after.key)
        return self._links(self.in_order[start : start + limit])

    def _links(self, keys: Sequence[Key] | dict[Key, None]) -> list[LinkRecord]:
        links = (self.linked.get(key) for key in keys)
        return [link for link in links if link is not None]

    async def grant(self, grant_id: str) -> Grant | None:
        return self.grants.get(grant_id)

    async def secret(self, name: str, new: bytes) -> bytes:
        return self.secrets.setdefault(name, new)

    def check_grant(self, grant_id: str) -> None:
        if self.grants.get(grant_id) is None:
            raise StoreError("grant not found")

    def check_free(self, grant_id: str, at: float) -> None:
        current = self.grants.get(grant_id)
        if current is not None and current.expires_at > at:
            raise StoreError("the grant already exists")

    def drop_ended(self, now: float) -> None:
        """Drop expired grants, so that none becomes valid again after the clock is set back."""
        for grant_id, grant in list(self.grants.items()):
            if not grant.lasts(now):
                self.grants.pop(grant_id)

    def drop_grant(self, grant_id: str) -> None:
        self.grants.pop(grant_id)

    def check_record(self, record: IdentityRecord) -> None:
        current = self.records.get(record.identity.key)
        if current is None or (current.isolation_key, current.version) != (record.isolation_key, record.version):
            raise IdentityChangedError

    def introduce(self, record: IdentityRecord) -> None:
        current = self.records.get(record.identity.key)
        if current is None or current.isolation_key != record.isolation_key:
            self.save(record)

    def save(self, record: IdentityRecord) -> None:
        current = self.records.get(record.identity.key)
        if current is not None:
            self._forget(record.identity.key, current)
        self.owned.setdefault(record.isolation_key, {})[record.identity.key] = record.identity
        self.records.put(record.identity.key, record)
        self._used.add(record.identity.key)

    def see(self, seen: LastSeen) -> None:
        latest = self.seen.get(seen.isolation_key)
        if latest is None or latest.at <= seen.at:
            self.seen.put(seen.isolation_key, seen)

    def add_link(self, link: LinkRecord) -> None:
        key = link.identity.key
        current = self.linked.get(key)
        if current is not None:
            self._forget_link(key, current)
        insort(self.in_order, key)
        self.of_key.setdefault(link.isolation_key, {})[key] = None
        if link.subject is not None:
            self.of_subject.setdefault(link.subject, {})[key] = None
        for claim in claim_keys(link.claims):
            self.of_claim.setdefault(claim, {})[key] = None
        self.linked.put(key, link)

    def unlink(self, isolation_key: str, identity: ChannelIdentity) -> None:
        link = self.linked.get(identity.key)
        if link is not None and link.isolation_key == isolation_key:
            self.linked.pop(identity.key)
            self._forget_link(identity.key, link)

    def _forget_link(self, key: Key, link: LinkRecord) -> None:
        place = bisect_right(self.in_order, key) - 1
        if place >= 0 and self.in_order[place] == key:
            del self.in_order[place]
        _drop(self.of_key, link.isolation_key, key)
        if link.subject is not None:
            _drop(self.of_subject, link.subject, key)
        for claim in claim_keys(link.claims):
            _drop(self.of_claim, claim, key)


def _drop(index: dict[str, dict[Key, None]], name: str, key: Key) -> None:
    keys = index.get(name, {})
    keys.pop(key, None)
    if not keys:
        index.pop(name, None)
