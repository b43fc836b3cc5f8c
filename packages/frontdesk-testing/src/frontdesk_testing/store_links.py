"""The contract of stores for links and their changes."""

import asyncio
from typing import Any

import pytest

from frontdesk.errors import IdentityChangedError, StoreError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import claim_key
from frontdesk.models.identity import IdentityRecord
from frontdesk.models.link import LinkRecord
from frontdesk_testing.store_samples import (
    NOW,
    ODD_KEYS,
    OTHER,
    OWNER,
    build_identity,
    grant,
    identity,
    link,
    question,
    run,
)


async def keep(store: HostStateStore, *links: LinkRecord) -> None:
    """Store links."""
    async with store.transaction() as transaction:
        for record in links:
            transaction.add_link(record)


async def change(store: HostStateStore, record: IdentityRecord, known: IdentityRecord) -> bool:
    """Give an identity another key, together with a run. Return True if that was possible."""
    try:
        async with store.transaction() as transaction:
            transaction.save_run(run(f"run_{record.isolation_key}"))
            transaction.remember_identity(record, instead_of=known)
    except IdentityChangedError:
        return False
    return True


class Links:
    """Links between identities."""

    async def test_the_link_of_an_identity_is_found(self, store: HostStateStore) -> None:
        full = link(identity("1")).replace(
            subject="issuer|1", claims={"groups": ["a", "b"]}, previous_key=OTHER, via="lnk_2"
        )
        assert await store.identities.link(identity("1")) is None
        await keep(store, full, link(identity("2")))
        assert await store.identities.link(identity("1", name="any")) == full
        assert await store.identities.link(identity("2")) == link(identity("2"))
        assert await store.identities.link(identity("1", channel="slack")) is None

    async def test_an_identity_has_one_link(self, store: HostStateStore) -> None:
        await keep(store, link(identity()))
        assert await store.identities.link(identity()) == link(identity())
        await keep(store, link(identity(), key=OTHER))
        assert await store.identities.link(identity()) == link(identity(), key=OTHER)
        assert list(await store.identities.links(OWNER)) == []
        assert list(await store.identities.links(OTHER)) == [link(identity(), key=OTHER)]

    async def test_a_removed_link_is_found_nowhere(self, store: HostStateStore) -> None:
        await keep(store, link(identity()).replace(subject="s"))
        assert await store.identities.link(identity()) is not None
        async with store.transaction() as transaction:
            transaction.remove_link(OWNER, identity())
        assert await store.identities.link(identity()) is None
        assert await store.identities.linked_as("s") is None
        assert list(await store.identities.all_links()) == []

    async def test_the_first_link_of_a_subject_counts(self, store: HostStateStore) -> None:
        links = [
            link(identity(str(number))).replace(subject="s", linked_at=at) for number, at in enumerate((3.0, 1.0, 2.0))
        ]
        await keep(store, *links, link(identity("other")).replace(subject="t", linked_at=0.0))
        assert await store.identities.linked_as("s") == links[1]
        async with store.transaction() as transaction:
            transaction.remove_link(OWNER, links[1].identity)
        assert await store.identities.linked_as("s") == links[2]
        assert await store.identities.linked_as("S") is None

    async def test_odd_subjects_are_subjects_like_any_other(self, store: HostStateStore) -> None:
        links = [link(identity(str(number))).replace(subject=subject) for number, subject in enumerate(ODD_KEYS)]
        await keep(store, *links)
        for record, subject in zip(links, ODD_KEYS, strict=True):
            assert await store.identities.linked_as(subject) == record

    async def test_all_links_are_listed_page_by_page(self, store: HostStateStore) -> None:
        people = [identity(str(number), channel=channel) for channel in ("b", "a") for number in range(5)]
        await keep(store, *(link(person, key=f"key_{person.native_id}") for person in people))
        records: list[LinkRecord] = []
        while page := await store.identities.all_links(after=records[-1].identity if records else None, limit=3):
            assert len(page) <= 3
            records += page
        assert [record.identity.key for record in records] == sorted(person.key for person in people)

    async def test_a_change_is_made_only_by_who_knows_the_last_one(self, store: HostStateStore) -> None:
        first = await store.identities.remember(build_identity(identity()))
        second = first.replace(isolation_key=OTHER, version=1, archived=(OWNER,))
        assert await change(store, second, first)
        assert await store.identities.find(identity()) == second
        assert list(await store.identities.of_owner(OTHER)) == [identity()]
        for outdated in (first, second.replace(version=0), second.replace(isolation_key=OWNER)):
            assert not await change(store, second.replace(isolation_key="third", version=2), outdated)
        assert not await change(store, build_identity(identity("new"), "third"), build_identity(identity("new")))
        assert await store.identities.find(identity()) == second
        assert await store.identities.find(identity("new")) is None
        assert await store.runs.get(OWNER, "run_third") is None

    async def test_of_twenty_changes_at_once_one_counts(self, store: HostStateStore) -> None:
        record = await store.identities.remember(build_identity(identity()))
        changes = [record.replace(isolation_key=f"key_{number}", version=1) for number in range(20)]
        made = await asyncio.gather(*(change(store, changed, record) for changed in changes))
        assert made.count(True) == 1
        winner = changes[made.index(True)]
        assert await store.identities.find(identity()) == winner
        for changed in changes:
            assert (await store.runs.get(OWNER, f"run_{changed.isolation_key}") is not None) is (changed is winner)

    async def test_a_grant_takes_only_a_free_place_where_that_is_asked_for(self, store: HostStateStore) -> None:
        async def begin(state: str, at: float) -> None:
            async with store.transaction() as transaction:
                transaction.add_grant(grant("gra_1", state=state, expires_at=at + 10), free_at=at)

        await begin("first", NOW)
        with pytest.raises(StoreError):
            await begin("second", NOW + 9)
        assert await store.identities.grant("gra_1") == grant("gra_1", state="first", expires_at=NOW + 10)
        # A grant that has ended leaves its place free.
        await begin("third", NOW + 10)
        assert await store.identities.grant("gra_1") == grant("gra_1", state="third", expires_at=NOW + 20)

    async def test_of_twenty_for_one_free_place_one_gets_it(self, store: HostStateStore) -> None:
        async def begin(number: int) -> bool:
            try:
                async with store.transaction() as transaction:
                    transaction.add_grant(grant("gra_1", number=number), free_at=NOW)
            except StoreError:
                return False
            return True

        got = await asyncio.gather(*(begin(number) for number in range(20)))
        assert got.count(True) == 1
        stored = await store.identities.grant("gra_1")
        assert stored is not None
        assert stored.data["number"] == got.index(True)

    async def test_the_open_questions_of_an_owner_are_cancelled_together(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for number in range(3):
                transaction.add_approval(question(f"apr_{number}"))
            transaction.add_approval(question("apr_0", owner=OTHER))
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_0", "approved", at=NOW)
        async with store.transaction() as transaction:
            transaction.cancel_approvals(OWNER, at=NOW + 1, reason="linked")
            transaction.cancel_approvals("nobody", at=NOW + 1)
        states = [await store.approvals.get(OWNER, f"apr_{number}") for number in range(3)]
        assert [
            (approval.status, approval.decided_at, approval.reason) for approval in states if approval is not None
        ] == [
            ("approved", NOW, None),
            ("cancelled", NOW + 1, "linked"),
            ("cancelled", NOW + 1, "linked"),
        ]
        assert list(await store.approvals.pending(OWNER)) == []
        assert [approval.approval_id for approval in await store.approvals.pending(OTHER)] == ["apr_0"]

    async def test_a_secret_is_made_once(self, store: HostStateStore) -> None:
        made = await asyncio.gather(*(store.identities.secret("a", b"%d" % number) for number in range(20)))
        assert len(set(made)) == 1
        assert await store.identities.secret("a", b"later") == made[0]
        assert await store.identities.secret("b", b"\x00\xff") == b"\x00\xff"

    async def test_people_are_found_by_what_was_proved_of_them(self, store: HostStateStore) -> None:
        bob, kim = identity("1"), identity("2")
        async with store.transaction() as transaction:
            transaction.add_link(link(bob).replace(claims={"groups": ["finance", "sales"], "level": 1}))
            transaction.add_link(link(kim).replace(claims={"groups": ["finance"], "level": True, "more": {"a": 1.5}}))

        async def holders(claim: str, value: Any, limit: int = 10) -> list[str]:
            key = claim_key(claim, value)
            assert key is not None
            found = await store.identities.holders([key], channels=[bob.channel, "other"], limit=limit)
            return [one.identity.native_id for one in found]

        assert await holders("groups", "finance") == ["1", "2"]
        assert await holders("groups", "finance", limit=1) == ["1"]
        assert await holders("level", 1) == ["1"]
        assert await holders("level", True) == ["2"]
        assert await holders("groups", "nobody") == []
        for claims, channels in (([], [bob.channel]), ([claim_key("level", 1) or ""], ["other"])):
            assert list(await store.identities.holders(claims, channels=channels, limit=5)) == []
        async with store.transaction() as transaction:
            transaction.add_link(link(bob).replace(claims={"groups": ["sales"]}))
            transaction.remove_link(OWNER, kim)
        assert await holders("groups", "finance") == []
        assert await holders("groups", "sales") == ["1"]
