"""Families of linked identities that share an isolation key, and the changes of a link or unlink. Pure.

A family is a tree. The root is the identity whose own key all members share. Every other member was linked to a member
(`via`) and keeps its own earlier key (`previous_key`). A member that leaves takes its descendants along. Each of them
gets back its own key, so no member keeps a key without a link to it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from frontdesk.models.identity import ChannelIdentity, IdentityRecord
from frontdesk.models.link import LinkProof, LinkRecord

Key = tuple[str, str]


class Family(NamedTuple):
    """Identities that share one key, with their records and links. An unlinked identity forms its own family."""

    key: str
    records: Mapping[Key, IdentityRecord]
    links: Mapping[Key, LinkRecord]

    @property
    def identities(self) -> list[ChannelIdentity]:
        """Return the identities of all members."""
        return [record.identity for record in self.records.values()]


class Change(NamedTuple):
    """Changes to write in one transaction."""

    records: Sequence[tuple[IdentityRecord, IdentityRecord]]
    """Each record as it is to be, and as it must be now."""
    links: Sequence[LinkRecord] = ()
    gone: Sequence[LinkRecord] = ()
    """The links that end."""
    given_up: str | None = None
    """The key that no identity has any more."""
    divided: str | None = None
    """The key that the leaving members have shared with the staying ones."""


def find_first(links: Iterable[LinkRecord]) -> LinkRecord:
    """Return the root link of the family, or the oldest one."""
    return min(links, key=lambda link: (link.previous_key is not None, link.linked_at, link.identity.key))


def merge(survivor: Family, at: Key, other: Family, proof: LinkProof, now: float, new_id: Callable[[], str]) -> Change:
    """Merge two families under the survivor's key. Members with another key keep read access under it."""
    who = proof.identity.key
    links = {key: _add_proof(link, proof, now) if key == who else link for key, link in other.links.items()}
    if who not in links:
        links[who] = _first(proof.identity, other.key, proof, now, new_id())
    if survivor.key == other.key:
        return Change(_keep(other.records.values()), [links[who]])
    stays = survivor.links.get(at) or _root(survivor.records[at].identity, survivor.key, proof, now, new_id())
    moved = [
        link.replace(isolation_key=survivor.key, previous_key=_home(link), via=via)
        for link, via in _change_root(links, who, stays.link_id)
    ]
    arrived = [
        (
            record.replace(
                isolation_key=survivor.key, archived=_list_archived(record, survivor.key), version=_next(record)
            ),
            record,
        )
        for record in other.records.values()
    ]
    new = [] if at in survivor.links else [stays]
    return Change([*_keep(survivor.records.values()), *arrived], [*new, *moved], given_up=other.key)


def split(family: Family, who: Key) -> Change | None:
    """Remove a member from a family, with all members that were linked only through it."""
    if who not in family.links:
        return None
    staying = _list_staying(family.links, who)
    gone = [link for key, link in family.links.items() if key not in staying]
    lone = [family.links[key] for key in staying] if len(staying) == 1 else []
    # A root that is left alone keeps its link only if a subject was proved for it.
    gone += [link for link in lone if link.subject is None]
    lost = {_home(link) for link in gone if link.identity.key not in staying}
    left = [
        (record.replace(isolation_key=_home(family.links[key]), archived=(), version=_next(record)), record)
        for key, record in family.records.items()
        if key not in staying
    ]
    stayed = [
        (
            record.replace(archived=tuple(key for key in record.archived if key not in lost), version=_next(record)),
            record,
        )
        for key, record in family.records.items()
        if key in staying
    ]
    return Change([*left, *stayed], gone=gone, divided=family.key if left else None)


def join_names(home: Family, at: Key, other: Family, who: Key) -> Change | None:
    """Join two identities of one principal: `at` represents both and can read what either owns.

    The other identity keeps the key of the first one, for hosts that still look it up. Return None if both are linked
    to different families, because the right one is then ambiguous.
    """
    mine, theirs = home.links.get(at), other.links.get(who)
    if mine is not None and theirs is not None and home.key != other.key:
        return None
    own, left = home.records[at], other.records[who]
    moves = mine is None and theirs is not None
    key = left.isolation_key if moves else own.isolation_key
    owned = [record.isolation_key if link is None else _home(link) for record, link in ((own, mine), (left, theirs))]
    joined = tuple(dict.fromkeys(each for each in (*own.joined, *left.joined, *owned) if each != key))
    archived = tuple(dict.fromkeys(each for each in (*own.archived, *left.archived) if each != key))
    stands = own.replace(isolation_key=key, archived=archived, joined=joined, version=_next(own))
    rest = left.replace(isolation_key=key, archived=(), joined=(), version=_next(left))
    members = {**home.records, **other.records}
    kept = _keep(record for name, record in members.items() if name not in (at, who))
    given_up = next((record.isolation_key for record in (own, left) if record.isolation_key != key), None)
    links, gone = ([], []) if theirs is None else _rename(other.links, theirs, mine, own.identity)
    return Change([(stands, own), (rest, left), *kept], links, gone, given_up=given_up)


def _rename(
    links: Mapping[Key, LinkRecord], old: LinkRecord, own: LinkRecord | None, identity: ChannelIdentity
) -> tuple[list[LinkRecord], list[LinkRecord]]:
    """Return the links that replace a linked identity by another one, and the link that ends."""
    if own is None:
        return [old.replace(identity=identity)], [old]
    # Both are in the family: who was linked through the one that goes is linked through the one that stays.
    others = [link for link in links.values() if link.link_id not in (old.link_id, own.link_id)]
    changed = [link.replace(via=own.link_id) for link in others if link.via == old.link_id]
    if old.previous_key is None:
        changed.append(own.replace(previous_key=None, via=None))
    elif own.via == old.link_id:
        changed.append(own.replace(via=old.via))
    return changed, [old]


def list_leaving(family: Family, who: Key) -> list[ChannelIdentity]:
    """Return the identities that leave with a member, including itself."""
    staying = _list_staying(family.links, who)
    return [link.identity for key, link in family.links.items() if key not in staying]


def _list_staying(links: Mapping[Key, LinkRecord], who: Key) -> set[Key]:
    """Return the members whose path to the root does not contain a given member."""
    by_id = {link.link_id: key for key, link in links.items() if key != who}
    staying: set[Key] = set()
    for key in by_id.values():
        seen: set[Key] = set()
        ancestor: Key | None = key
        while ancestor is not None and ancestor not in seen and links[ancestor].previous_key is not None:
            seen.add(ancestor)
            ancestor = by_id.get(links[ancestor].via or "")
        if ancestor is not None and ancestor not in seen:
            staying.add(key)
    return staying


def _change_root(links: Mapping[Key, LinkRecord], who: Key, via: str) -> Iterable[tuple[LinkRecord, str | None]]:
    by_id = {link.link_id: link for link in links.values()}
    parents: dict[str, str] = {}
    ancestor: LinkRecord | None = links[who]
    while ancestor is not None and ancestor.link_id not in parents:
        parents[ancestor.link_id] = via
        via, ancestor = ancestor.link_id, by_id.get(ancestor.via or "")
    return [(link, parents.get(link.link_id, link.via)) for link in links.values()]


def _add_proof(link: LinkRecord, proof: LinkProof, now: float) -> LinkRecord:
    if proof.subject is None:
        return link
    since = link.linked_at if link.subject == proof.subject else now
    return link.replace(linked_at=since, linker=proof.linker, subject=proof.subject, claims=proof.claims)


def _first(who: ChannelIdentity, key: str, proof: LinkProof, now: float, link_id: str) -> LinkRecord:
    return _root(who, key, proof, now, link_id).replace(subject=proof.subject, claims=proof.claims)


def _root(who: ChannelIdentity, key: str, proof: LinkProof, now: float, link_id: str) -> LinkRecord:
    return LinkRecord(link_id=link_id, isolation_key=key, identity=who, linked_at=now, linker=proof.linker)


def _home(link: LinkRecord) -> str:
    return link.isolation_key if link.previous_key is None else link.previous_key


def _keep(records: Iterable[IdentityRecord]) -> list[tuple[IdentityRecord, IdentityRecord]]:
    # The version changes all the same, so that of two concurrent changes to a family only one can be written.
    return [(record.replace(version=_next(record)), record) for record in records]


def _next(record: IdentityRecord) -> int:
    return record.version + 1


def _list_archived(record: IdentityRecord, key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(past for past in (*record.archived, record.isolation_key) if past != key))
