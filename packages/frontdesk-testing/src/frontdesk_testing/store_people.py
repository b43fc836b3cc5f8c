"""The contract of stores for people."""

import asyncio

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.identity import PushGroup, Reach
from frontdesk_testing.store_samples import NOW, ODD_KEYS, OTHER, OWNER, build_identity, build_last_seen, identity, link


class Identities:
    """Isolation keys, links and where people were last seen."""

    async def test_a_stranger_is_not_known(self, store: HostStateStore) -> None:
        assert await store.identities.find(identity()) is None
        assert list(await store.identities.of_owner(OWNER)) == []
        assert await store.identities.last_seen(OWNER) is None
        assert list(await store.identities.links(OWNER)) == []

    async def test_the_first_key_of_an_identity_stays(self, store: HostStateStore) -> None:
        assert await store.identities.remember(build_identity(identity(), OWNER)) == build_identity(identity(), OWNER)
        assert await store.identities.remember(build_identity(identity(), OTHER)) == build_identity(identity(), OWNER)
        assert await store.identities.find(identity()) == build_identity(identity(), OWNER)
        assert list(await store.identities.of_owner(OTHER)) == []

    async def test_of_twenty_keys_at_once_one_stays(self, store: HostStateStore) -> None:
        records = [build_identity(identity(), f"key_{number}") for number in range(20)]
        remembered = await asyncio.gather(*(store.identities.remember(record) for record in records))
        assert len({record.isolation_key for record in remembered}) == 1
        assert await store.identities.find(identity()) == remembered[0]

    async def test_names_and_other_attributes_make_no_other_person(self, store: HostStateStore) -> None:
        await store.identities.remember(build_identity(identity(name="Ann")))
        record = await store.identities.find(identity(name="Bea", language="de"))
        assert record is not None
        assert record.isolation_key == OWNER
        assert record.identity.attributes == {"name": "Ann"}

    async def test_an_identity_is_a_channel_and_an_id_not_their_sum(self, store: HostStateStore) -> None:
        pairs = [("a", "b:c"), ("a:b", "c"), ("a", "bc"), ("ab", "c"), ("c", "a"), ("", "abc"), ("abc", "")]
        for channel, native_id in pairs:
            await store.identities.remember(
                build_identity(identity(native_id, channel=channel), f"{channel}|{native_id}")
            )
        for channel, native_id in pairs:
            record = await store.identities.find(identity(native_id, channel=channel))
            assert record is not None
            assert record.isolation_key == f"{channel}|{native_id}"

    async def test_odd_ids_are_people_like_any_other(self, store: HostStateStore) -> None:
        for key in ODD_KEYS:
            await store.identities.remember(build_identity(identity(key), key))
        for key in ODD_KEYS:
            assert await store.identities.find(identity(key)) == build_identity(identity(key), key)
            assert list(await store.identities.of_owner(key)) == [identity(key)]

    async def test_all_identities_of_a_person_are_found(self, store: HostStateStore) -> None:
        mine = [identity("1"), identity("2"), identity("1", channel="slack")]
        for person in mine:
            await store.identities.remember(build_identity(person))
        await store.identities.remember(build_identity(identity("3"), OTHER))
        people = await store.identities.of_owner(OWNER)
        assert [person.key for person in people] == sorted(person.key for person in mine)

    async def test_an_identity_can_be_given_another_key(self, store: HostStateStore) -> None:
        await store.identities.remember(build_identity(identity(), OWNER))
        async with store.transaction() as transaction:
            transaction.remember_identity(build_identity(identity(), OTHER))
        assert await store.identities.find(identity()) == build_identity(identity(), OTHER)
        assert list(await store.identities.of_owner(OWNER)) == []
        assert list(await store.identities.of_owner(OTHER)) == [identity()]

    async def test_an_identity_that_has_its_key_keeps_what_else_is_known_of_it(self, store: HostStateStore) -> None:
        record = build_identity(identity(), OWNER).replace(archived=("before",), version=3)
        await store.identities.remember(record)
        async with store.transaction() as transaction:
            transaction.remember_identity(build_identity(identity(), OWNER))
        assert await store.identities.find(identity(), fresh=True) == record

    async def test_the_keys_of_joined_channels_are_kept(self, store: HostStateStore) -> None:
        record = build_identity(identity(), OWNER)
        await store.identities.remember(record)
        joined = record.replace(joined=("key_of_another_channel",), version=1)
        async with store.transaction() as transaction:
            transaction.remember_identity(joined, instead_of=record)
        assert await store.identities.find(identity(), fresh=True) == joined

    async def test_the_newest_attributes_take_the_place_of_the_first(self, store: HostStateStore) -> None:
        record = build_identity(identity(name="Ann"), OWNER).replace(archived=("before",), version=3)
        await store.identities.remember(record)
        newest = record.replace(identity=identity(name="Ann Lee"))
        async with store.transaction() as transaction:
            transaction.remember_identity(newest, instead_of=record)
        assert await store.identities.find(identity()) == newest
        assert list(await store.identities.of_owner(OWNER)) == [newest.identity]

    async def test_how_somebody_is_reached_is_kept_beside_their_record(self, store: HostStateStore) -> None:
        record = await store.identities.remember(build_identity(identity(name="Ann")))
        assert await store.identities.reach(identity()) == Reach()
        group = PushGroup(conversation_id="g\0", reference={"thread": "7"})
        async with store.transaction() as transaction:
            transaction.keep_reference(identity(), {"url": "one", "$": "\N{KEY}"})
            transaction.keep_group(identity(), group)
        reach = await store.identities.reach(identity(name="anything"))
        assert reach == Reach(reference={"url": "one", "$": "\N{KEY}"}, group=group)
        async with store.transaction() as transaction:
            transaction.keep_reference(identity(), {"url": "two"})
        assert await store.identities.reach(identity()) == Reach(reference={"url": "two"}, group=group)
        # Neither changes the other, nor the record, nor is it changed with the record.
        linked = record.replace(isolation_key=OTHER, version=1)
        async with store.transaction() as transaction:
            transaction.remember_identity(linked, instead_of=record)
            transaction.keep_group(identity(), None)
        assert await store.identities.reach(identity()) == Reach(reference={"url": "two"})
        assert await store.identities.find(identity(), fresh=True) == linked
        async with store.transaction() as transaction:
            transaction.keep_reference(identity(), {})
        assert await store.identities.reach(identity()) == Reach()

    async def test_who_is_introduced_can_be_reached_from_then_on(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.remember_identity(build_identity(identity()))
            transaction.keep_reference(identity(), {"url": "one"})
            transaction.keep_group(identity(), PushGroup(conversation_id="g"))
        reach = Reach(reference={"url": "one"}, group=PushGroup(conversation_id="g"))
        assert await store.identities.reach(identity()) == reach

    async def test_how_somebody_is_reached_is_nobody_elses(self, store: HostStateStore) -> None:
        for person in (identity("1"), identity("2"), identity("1", channel="slack")):
            await store.identities.remember(build_identity(person))
        async with store.transaction() as transaction:
            transaction.keep_reference(identity("1"), {"url": "one"})
        assert await store.identities.reach(identity("2")) == Reach()
        assert await store.identities.reach(identity("1", channel="slack")) == Reach()

    async def test_of_strangers_it_is_not_kept_how_they_are_reached(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.keep_reference(identity(), {"url": "one"})
            transaction.keep_group(identity(), PushGroup(conversation_id="g"))
        assert await store.identities.reach(identity()) == Reach()
        await store.identities.remember(build_identity(identity()))
        assert await store.identities.reach(identity()) == Reach()

    async def test_the_last_place_counts(self, store: HostStateStore) -> None:
        places = [build_last_seen(identity("1"), at=NOW - 1), build_last_seen(identity("1", channel="slack"), at=NOW)]
        for place in places:
            async with store.transaction() as transaction:
                transaction.see(place)
        assert await store.identities.last_seen(OWNER) == places[-1]
        assert await store.identities.last_seen(OTHER) is None

    async def test_a_place_that_is_told_of_late_does_not_count(self, store: HostStateStore) -> None:
        newest = build_last_seen(identity("1", channel="slack"), at=NOW)
        for place in (newest, build_last_seen(identity("1"), at=NOW - 1)):
            async with store.transaction() as transaction:
                transaction.see(place)
        assert await store.identities.last_seen(OWNER) == newest

    async def test_of_many_places_at_once_the_newest_counts(self, store: HostStateStore) -> None:
        async def see(number: int) -> None:
            async with store.transaction() as transaction:
                transaction.see(build_last_seen(identity(str(number)), at=NOW - number))

        await asyncio.gather(*(see(number) for number in range(20)))
        assert await store.identities.last_seen(OWNER) == build_last_seen(identity("0"), at=NOW)

    async def test_links_are_kept_until_they_are_removed(self, store: HostStateStore) -> None:
        first, second = link(identity("1")), link(identity("2"))
        async with store.transaction() as transaction:
            transaction.add_link(first)
            transaction.add_link(second)
        assert sorted(record.link_id for record in await store.identities.links(OWNER)) == [
            first.link_id,
            second.link_id,
        ]
        assert list(await store.identities.links(OTHER)) == []
        async with store.transaction() as transaction:
            transaction.remove_link(OWNER, first.identity)
            transaction.remove_link(OTHER, second.identity)
            transaction.remove_link(OWNER, identity("never linked"))
        assert list(await store.identities.links(OWNER)) == [second]
