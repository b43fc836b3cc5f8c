"""Two identities of one principal become one, whatever they were linked with."""

from frontdesk import ChannelIdentity
from frontdesk.access.families import Family, join_names, split
from frontdesk.models.identity import IdentityRecord
from frontdesk.models.link import LinkRecord

HOME, OTHER, PHONE = (ChannelIdentity(channel=name, native_id="a") for name in ("responses", "invocations", "phone"))


def record(identity: ChannelIdentity, key: str) -> IdentityRecord:
    return IdentityRecord(identity=identity, isolation_key=key, created_at=0.0)


def link(identity: ChannelIdentity, key: str, own: str | None, via: str | None) -> LinkRecord:
    name = f"lnk_{identity.channel}"
    return LinkRecord(
        link_id=name, isolation_key=key, identity=identity, linked_at=0.0, linker="code", previous_key=own, via=via
    )


def family(key: str, *members: tuple[ChannelIdentity, str | None, str | None]) -> Family:
    """A family with links, or an identity alone."""
    records = {identity.key: record(identity, key) for identity, _, _ in members}
    links = {one.key: link(one, key, own, via) for one, own, via in members} if len(members) > 1 else {}
    return Family(key, records, links)


def test_of_two_without_links_the_home_goes_on_and_reads_the_other() -> None:
    change = join_names(family("h", (HOME, None, None)), HOME.key, family("o", (OTHER, None, None)), OTHER.key)
    assert change is not None
    (stands, _), (rest, _) = change.records
    assert (stands.isolation_key, stands.joined, rest.isolation_key) == ("h", ("o",), "h")
    assert (change.given_up, change.links, change.gone) == ("o", [], [])


def test_the_home_takes_the_place_of_the_other_in_its_family() -> None:
    linked = family("p", (PHONE, None, None), (OTHER, "o", "lnk_phone"))
    change = join_names(family("h", (HOME, None, None)), HOME.key, linked, OTHER.key)
    assert change is not None
    (moved,), (gone,) = change.links, change.gone
    assert (moved.identity, moved.previous_key, moved.via) == (HOME, "o", "lnk_phone")
    assert gone.identity == OTHER
    stands = change.records[0][0]
    # The key of the family is read by the link alone: after its end, only what was the principal's own.
    assert (stands.isolation_key, stands.joined) == ("p", ("h", "o"))
    after = Family("p", {PHONE.key: record(PHONE, "p"), HOME.key: stands}, {**linked.links, HOME.key: moved})
    parted = split(Family(after.key, after.records, {PHONE.key: linked.links[PHONE.key], HOME.key: moved}), HOME.key)
    assert parted is not None
    left = next(new for new, _ in parted.records if new.identity == HOME)
    assert (left.isolation_key, left.joined) == ("o", ("h", "o"))


def test_both_in_one_family_become_one_member_of_it() -> None:
    # The home was linked through the other, and the phone through the home.
    both = family("o", (OTHER, None, None), (HOME, "h", "lnk_invocations"), (PHONE, "p", "lnk_responses"))
    change = join_names(both, HOME.key, both, OTHER.key)
    assert change is not None
    assert [one.identity for one in change.gone] == [OTHER]
    root = next(one for one in change.links if one.identity == HOME)
    assert (root.previous_key, root.via, change.given_up) == (None, None, None)
    assert change.records[0][0].joined == ("h",)


def test_whoever_was_linked_through_the_other_is_linked_through_the_home() -> None:
    both = family("h", (HOME, None, None), (OTHER, "o", "lnk_responses"), (PHONE, "p", "lnk_invocations"))
    change = join_names(both, HOME.key, both, OTHER.key)
    assert change is not None
    assert [(one.identity, one.via) for one in change.links] == [(PHONE, "lnk_responses")]


def test_two_families_are_a_conflict() -> None:
    one = family("h", (HOME, None, None), (PHONE, "p", "lnk_responses"))
    phone = PHONE.replace(native_id="b")
    other = family("o", (OTHER, None, None), (phone, "q", "lnk_invocations"))
    assert join_names(one, HOME.key, other, OTHER.key) is None
