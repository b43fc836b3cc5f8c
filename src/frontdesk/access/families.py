"""Who shares a key with whom, and what a link or its end changes of that. Pure.

A family is a tree. Its root is the identity whose own key all of them share. Every other has been linked to one of the
family (`via`), and has a key of its own to which it goes back (`previous_key`). Whoever leaves takes along those who
are in the family only because of them: each of these goes back to its own key, and nobody keeps a key of somebody to
whom no link leads.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from frontdesk.data.identity import ChannelIdentity, IdentityRecord
from frontdesk.data.link import LinkProof, LinkRecord

Key = tuple[str, str]


class Family(NamedTuple):
    """Everyone who has one key: the records of all, and their links; somebody who is not linked is one alone."""

    key: str
    records: Mapping[Key, IdentityRecord]
    links: Mapping[Key, LinkRecord]

    @property
    def identities(self) -> list[ChannelIdentity]:
        """All of them."""
        return [record.identity for record in self.records.values()]


class Change(NamedTuple):
    """What is to be written together."""

    records: Sequence[tuple[IdentityRecord, IdentityRecord]]
    """Each record as it is to be, and as it must be before."""
    links: Sequence[LinkRecord] = ()
    gone: Sequence[LinkRecord] = ()
    """Links that end."""
    given_up: str | None = None
    """The key that nobody has any more."""
    divided: str | None = None
    """The key that those who leave have shared with those who stay."""


def joined(survivor: Family, at: Key, other: Family, proof: LinkProof, now: float, new_id: Callable[[], str]) -> Change:
    """One family of two: all get the key of the survivor's, and those who had another can still read under it."""
    who = proof.identity.key
    links = {key: _proved(link, proof, now) if key == who else link for key, link in other.links.items()}
    if who not in links:
        links[who] = _first(proof.identity, other.key, proof, now, new_id())
    if survivor.key == other.key:
        return Change(_kept(other.records.values()), [links[who]])
    stays = survivor.links.get(at) or _root(survivor.records[at].identity, survivor.key, proof, now, new_id())
    moved = [
        link.replace(isolation_key=survivor.key, previous_key=_home(link), via=via)
        for link, via in _turned(links, who, stays.link_id)
    ]
    arrived = [
        (
            record.replace(isolation_key=survivor.key, archived=_archived(record, survivor.key), version=_next(record)),
            record,
        )
        for record in other.records.values()
    ]
    new = [] if at in survivor.links else [stays]
    return Change([*_kept(survivor.records.values()), *arrived], [*new, *moved], given_up=other.key)


def parted(family: Family, who: Key) -> Change | None:
    """The family without one of them, and without those who were linked to it only through that one."""
    if who not in family.links:
        return None
    staying = _staying(family.links, who)
    gone = [link for key, link in family.links.items() if key not in staying]
    lone = [family.links[key] for key in staying] if len(staying) == 1 else []
    # With nobody else, only what was proved about the root itself is still a link.
    gone += [link for link in lone if link.subject is None]
    lost = {_home(link) for link in gone if link.identity.key not in staying}
    left = [
        (record.replace(isolation_key=_home(family.links[key]), archived=(), version=_next(record)), record)
        for key, record in family.records.items()
        if key not in staying
    ]
    stayed = [
        (
            record.replace(archived=tuple(one for one in record.archived if one not in lost), version=_next(record)),
            record,
        )
        for key, record in family.records.items()
        if key in staying
    ]
    return Change([*left, *stayed], gone=gone, divided=family.key if left else None)


def leaving(family: Family, who: Key) -> list[ChannelIdentity]:
    """Who goes when one goes."""
    staying = _staying(family.links, who)
    return [link.identity for key, link in family.links.items() if key not in staying]


def _staying(links: Mapping[Key, LinkRecord], who: Key) -> set[Key]:
    """Those from whom a way leads to the root that does not lead over one of them."""
    by_id = {link.link_id: key for key, link in links.items() if key != who}
    staying: set[Key] = set()
    for key in by_id.values():
        seen: set[Key] = set()
        place: Key | None = key
        while place is not None and place not in seen and links[place].previous_key is not None:
            seen.add(place)
            place = by_id.get(links[place].via or "")
        if place is not None and place not in seen:
            staying.add(key)
    return staying


def _turned(links: Mapping[Key, LinkRecord], who: Key, via: str) -> Iterable[tuple[LinkRecord, str | None]]:
    """Each link with the one that it hangs on, once the tree hangs on another tree by one of its leaves."""
    by_id = {link.link_id: link for link in links.values()}
    hung: dict[str, str] = {}
    place: LinkRecord | None = links[who]
    while place is not None and place.link_id not in hung:
        hung[place.link_id] = via
        via, place = place.link_id, by_id.get(place.via or "")
    return [(link, hung.get(link.link_id, link.via)) for link in links.values()]


def _proved(link: LinkRecord, proof: LinkProof, now: float) -> LinkRecord:
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


def _kept(records: Iterable[IdentityRecord]) -> list[tuple[IdentityRecord, IdentityRecord]]:
    # The number changes all the same, so that of two changes to one family at once only one can be written.
    return [(record.replace(version=_next(record)), record) for record in records]


def _next(record: IdentityRecord) -> int:
    return record.version + 1


def _archived(record: IdentityRecord, key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in (*record.archived, record.isolation_key) if one != key))
