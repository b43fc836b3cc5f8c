"""The desk of the linkers: one transaction a change, on every store, whatever else happens meanwhile."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from frontdesk.access import links as module
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.links import Links
from frontdesk.errors import ConflictError, LinkRefusedError, StoreError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.linker import ReadsClaims
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord
from frontdesk.models.link import Grant, LinkProof
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW, question, run
from tests.access.linking import NAMES, Said, desk, home, introduce, join, keys, play_for_real, who
from tests.databases import patient_store

KINDS = ["memory", "sqlite", "postgres"]


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[HostStateStore]]:
    """The store of each replica; one only, where there can be only one."""
    clock: Any = FakeClock()
    if request.param == "memory":
        found: list[Any] = [InMemoryStateStore()]
    elif request.param == "sqlite":
        found = [SqliteStateStore(tmp_path / "frontdesk.db", clock=clock)]
    else:
        place = request.getfixturevalue("postgres_tables")
        found = [patient_store(place, clock=clock) for _ in range(2)]
    async with AsyncExitStack() as stack:
        for one in found:
            await one.open()
            stack.push_async_callback(one.close)
        yield found


@pytest.fixture
async def store(stores: list[HostStateStore]) -> HostStateStore:
    await introduce(stores[0])
    return stores[0]


async def list_archived(store: HostStateStore, name: str) -> tuple[str, ...]:
    record = await store.identities.find(who(name))
    assert record is not None
    return record.archived


async def test_the_survivors_key_goes_to_both(store: HostStateStore) -> None:
    links = desk(store)
    made = await links.join(LinkProof(linker="test", identity=who("b"), survivor=who("a")))
    assert await keys(store) == {"a": "a", "b": "a", "c": "c", "d": "d"}
    assert (made.isolation_key, made.previous_key) == (home("a"), home("b"))
    first = await links.find_link(who("a"))
    assert first is not None
    assert (first.isolation_key, first.previous_key, made.via) == (home("a"), None, first.link_id)
    assert (await list_archived(store, "a"), await list_archived(store, "b")) == ((), (home("b"),))


async def test_the_questions_of_the_other_are_cancelled_and_its_runs_stay(store: HostStateStore) -> None:
    async with store.transaction() as transaction:
        for name in "ab":
            transaction.add_approval(question(owner=home(name)))
            transaction.save_run(run(owner=home(name)))
    await join(desk(store), "b", "a")
    cancelled = await store.approvals.get(home("b"), "apr_1")
    assert cancelled is not None
    assert (cancelled.status, cancelled.reason) == ("cancelled", "The account was linked to another one.")
    assert [one.status for one in await store.approvals.pending(home("a"))] == ["pending"]
    assert await store.runs.get(home("b"), "run_1") is not None


@pytest.mark.parametrize("leaver", ["a", "b", "c"])
async def test_after_an_unlink_nobody_can_answer_what_was_asked_while_linked(
    store: HostStateStore, leaver: str
) -> None:
    links = desk(store)
    for name in "bc":
        await join(links, name, "a")
    async with store.transaction() as transaction:
        for number in range(3):
            transaction.add_approval(question(f"apr_{number}", owner=home("a")))
        transaction.add_approval(question(owner=home("d")))
    await links.part(who(leaver))
    for number in range(3):
        cancelled = await store.approvals.get(home("a"), f"apr_{number}")
        assert cancelled is not None
        assert cancelled.status == "cancelled"
        assert cancelled.reason == "An account that shared this conversation was unlinked."
    assert [one.owner for one in await store.approvals.pending(home("d"))] == [home("d")]


async def test_an_unlink_that_changes_nothing_cancels_nothing(store: HostStateStore) -> None:
    async with store.transaction() as transaction:
        transaction.add_approval(question(owner=home("a")))
    await desk(store).part(who("a"))
    assert [one.status for one in await store.approvals.pending(home("a"))] == ["pending"]


async def test_unlinking_gives_the_old_key_back(store: HostStateStore) -> None:
    links = desk(store)
    await join(links, "b", "a")
    await links.part(who("b"))
    assert await keys(store) == {name: name for name in NAMES}
    assert [await links.find_link(who(name)) for name in NAMES] == [None] * 4
    assert await list_archived(store, "b") == ()


async def test_when_the_owner_of_the_key_goes_everybody_has_their_own_again(store: HostStateStore) -> None:
    links = desk(store)
    for name in "bcd":
        await join(links, name, "a")
    await links.part(who("a"))
    assert await keys(store) == {name: name for name in NAMES}
    assert list(await store.identities.all_links()) == []


async def test_a_stranger_and_somebody_without_a_link_stay_as_they_are(store: HostStateStore) -> None:
    links = desk(store)
    for name in ("a", "z"):
        await links.part(who(name))
    assert await store.identities.find(who("z")) is None
    assert await keys(store) == {name: name for name in NAMES}


async def test_somebody_who_was_never_here_gets_a_key_when_they_link(store: HostStateStore) -> None:
    links = desk(store)
    await links.join(LinkProof(linker="test", identity=who("z"), survivor=who("a")))
    found = await store.identities.find(who("z"))
    assert found is not None
    assert found.isolation_key == home("a")
    await links.part(who("z"))
    again = await store.identities.find(who("z"))
    assert again is not None
    assert again.isolation_key not in {home(name) for name in NAMES}


async def test_the_first_with_a_subject_keeps_its_key_and_later_ones_get_it(store: HostStateStore) -> None:
    links = desk(store)
    claims = {"groups": ["staff"]}
    first = await links.join(LinkProof(linker="test", identity=who("a"), subject="s", claims=claims))
    assert (first.isolation_key, first.previous_key, first.subject, first.claims) == (home("a"), None, "s", claims)
    second = await links.join(LinkProof(linker="test", identity=who("b"), subject="s"))
    assert (second.isolation_key, second.previous_key, second.via) == (home("a"), home("b"), first.link_id)
    await links.part(who("b"))
    # What was proved about the first holds without the second.
    assert await links.find_link(who("a")) == first


async def test_of_two_who_are_first_with_a_subject_at_once_one_is(stores: list[HostStateStore]) -> None:
    await introduce(stores[0])
    for number in range(5):
        proofs = [LinkProof(linker="test", identity=who(name), subject=f"s{number}") for name in NAMES]
        desks = [desk(stores[place % len(stores)]) for place in range(len(NAMES))]
        made = await asyncio.gather(*(one.join(proof) for one, proof in zip(desks, proofs, strict=True)))
        assert len({one.isolation_key for one in made}) == 1
        forget(stores[0])
        await assert_whole(stores[0])
        for name in NAMES:
            for one in stores:
                forget(one)
            await desk(stores[0]).part(who(name))
        forget(stores[0])
        assert await keys(stores[0]) == {name: name for name in NAMES}


async def test_somebody_who_was_unlinked_at_that_moment_is_not_joined(
    store: HostStateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = desk(store)
    await links.join(LinkProof(linker="test", identity=who("a"), subject="s"))
    plain = store.identities.linked_as
    left: list[str] = []

    async def linked_as(subject: str) -> Any:
        found = await plain(subject)
        if not left:
            left.append("a")
            await links.part(who("a"))
        return found

    monkeypatch.setattr(store.identities, "linked_as", linked_as)
    made = await links.join(LinkProof(linker="test", identity=who("b"), subject="s"))
    assert (made.isolation_key, made.previous_key) == (home("b"), None)


async def test_an_account_that_is_linked_to_one_subject_is_not_linked_to_another(store: HostStateStore) -> None:
    links = desk(store)
    for name, subject in (("a", "s"), ("b", "t")):
        await links.join(LinkProof(linker="test", identity=who(name), subject=subject))
    with pytest.raises(LinkRefusedError, match="Unlink it first") as refused:
        await links.join(LinkProof(linker="test", identity=who("a"), subject="t"))
    assert refused.value.code == "already_linked"
    assert await keys(store) == {name: name for name in NAMES}


async def test_proving_the_same_again_brings_the_claims_up_to_date(store: HostStateStore) -> None:
    links = desk(store)
    first = await links.join(LinkProof(linker="test", identity=who("a"), subject="s", claims={"tier": 1}))
    again = await links.join(LinkProof(linker="test", identity=who("a"), subject="s", claims={"tier": 2}))
    assert again == first.replace(claims={"tier": 2})
    assert await links.find_link(who("a")) == again


async def test_a_proof_counts_once(store: HostStateStore) -> None:
    links = desk(store)
    await links.keep(Grant(grant_id="g", identity=who("b"), expires_at=NOW + 60))
    proof = LinkProof(grant_id="g", linker="test", identity=who("b"), survivor=who("a"))
    ends = await asyncio.gather(*(links.join(proof) for _ in range(10)), return_exceptions=True)
    assert sum(isinstance(one, LinkRefusedError) for one in ends) == 9
    assert await links.kept("g") is None


async def test_a_proof_that_has_ended_links_nobody(store: HostStateStore) -> None:
    clock = FakeClock()
    links = desk(store, clock=clock)
    await links.keep(Grant(grant_id="g", identity=who("b"), expires_at=clock.now() + 60))
    clock.advance(60)
    with pytest.raises(LinkRefusedError):
        await links.join(LinkProof(grant_id="g", linker="test", identity=who("b"), survivor=who("a")))
    assert not await links.exchange("g")
    assert await keys(store) == {name: name for name in NAMES}


async def test_what_is_kept_is_not_overwritten(store: HostStateStore) -> None:
    links = desk(store)
    grant = Grant(grant_id="g", identity=who("a"), expires_at=NOW + 60, begun_at=NOW)
    await links.keep(grant)
    with pytest.raises(StoreError):
        await links.keep(grant.replace(identity=who("b")))
    assert await links.kept("g") == grant
    assert not await links.exchange("unknown", grant.replace(grant_id="h"))
    await links.keep(grant.replace(grant_id="taken"))
    assert not await links.exchange("g", grant.replace(grant_id="h"), grant.replace(grant_id="taken"))
    assert await links.kept("h") is None
    # What is used up leaves its place to what follows it.
    assert await links.exchange("g", grant.replace(data={"step": 2}))
    assert await links.exchange("g", grant.replace(grant_id="h"))
    assert [await links.kept(one) is not None for one in "gh"] == [False, True]


async def test_both_sides_are_told_but_the_one_that_is_answered(store: HostStateStore) -> None:
    said = Said()
    links = desk(store, said=said)
    await links.join(LinkProof(linker="test", identity=who("b"), survivor=who("a")), here=who("a"))
    assert said.words == [("b", "This account is now linked with “A” (id a) on chat-a.")]
    await links.join(LinkProof(linker="test", identity=who("c"), survivor=who("b")))
    assert said.to("a") == said.to("b")[1:] == ["“C” (id c) on chat-c is now linked with this account."]
    said.words.clear()
    await links.part(who("b"), here=who("b"))
    assert sorted(said.words) == [
        ("a", "“B” (id b) on chat-b is no longer linked with this account."),
        ("c", "This account is no longer linked. It has a conversation of its own again."),
    ]


async def test_every_change_is_audited_without_claims(store: HostStateStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "frontdesk.audit")
    links = desk(store)
    await links.join(LinkProof(linker="test", identity=who("a"), subject="subject", claims={"email": "a@example.com"}))
    await links.join(LinkProof(linker="test", identity=who("b"), subject="subject"))
    await links.part(who("a"))
    with pytest.raises(LinkRefusedError):
        await links.join(LinkProof(grant_id="none", linker="test", identity=who("b")))
    lines = [one.getMessage() for one in caplog.records]
    assert [line.split(" link_id=")[0] for line in lines] == [
        "identities linked: identity=chat-a:'a' with=chat-a:'a' linker=test",
        "identities linked: identity=chat-b:'b' with=chat-a:'a' linker=test",
        "identity unlinked: identity=chat-a:'a'",
        "identity unlinked: identity=chat-b:'b'",
        "link refused: identity=chat-b:'b' linker=test: link_expired",
    ]
    assert "example.com" not in caplog.text


async def test_a_person_has_a_bounded_number_of_identities(
    store: HostStateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LINKED", 3)
    links = desk(store)
    await join(links, "b", "a")
    await join(links, "c", "a")
    with pytest.raises(LinkRefusedError) as refused:
        await join(links, "d", "a")
    assert refused.value.code == "too_many_links"
    assert (await keys(store))["d"] == "d"


async def test_the_link_of_a_broken_record_can_still_be_ended(store: HostStateStore) -> None:
    links = desk(store)
    await join(links, "b", "a")
    plain = store.identities.find

    async def find(identity: Any, **options: Any) -> Any:
        return None if identity.key == who("b").key and not remembered else await plain(identity, **options)

    remembered: list[IdentityRecord] = []
    remember = store.identities.remember

    async def note(record: IdentityRecord) -> IdentityRecord:
        remembered.append(record)
        return await remember(record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.identities, "find", find)
        patch.setattr(store.identities, "remember", note)
        await links.part(who("a"))
    assert [one.isolation_key for one in remembered] == [home("a")]
    assert await keys(store) == {name: name for name in NAMES}


async def test_the_key_of_an_operators_resolver_is_what_comes_back(store: HostStateStore) -> None:
    given = {"b": "from directory"}
    ids, clock = RandomIds(), FakeClock()
    resolver = IdentityKeys(store, ids, clock, lambda one: given.get(one.native_id, home(one.native_id)))
    links = Links(store, resolver, ids, clock)
    made = await links.join(LinkProof(linker="test", identity=who("b"), survivor=who("a")))
    assert (made.isolation_key, made.previous_key) == (home("a"), "from directory")
    given["c"] = ""
    with pytest.raises(LinkRefusedError):
        await join(links, "c", "a")


class Claims(ReadsClaims):
    """A linker that reads claims."""

    name = "test"

    def get_subject(self, claims: Any) -> str | None:
        return claims.get("sub")


async def test_a_verified_claim_links_silently(store: HostStateStore) -> None:
    links, linker = desk(store), Claims()
    greet: Any = links.greet
    caller = Caller(identity=who("b"), claims={"sub": "s"})
    assert await greet(caller, linker) is False
    await links.join(LinkProof(linker="test", identity=who("a"), subject="s"))
    for stranger in (caller.replace(claims={}), caller.replace(claims={"sub": "t"}), caller.replace(anonymous=True)):
        assert await greet(stranger, linker) is False
    assert await greet(caller, object()) is False
    assert (await keys(store))["b"] == "b"
    assert await greet(caller, linker) is True
    assert (await keys(store))["b"] == "a"
    assert await greet(caller, linker) is False
    # Who has proved to be somebody else stays that.
    await links.join(LinkProof(linker="test", identity=who("c"), subject="t"))
    assert await greet(Caller(identity=who("c"), claims={"sub": "s"}), linker) is False


async def test_whoami_tells_nothing_but_channels_and_ids(store: HostStateStore) -> None:
    links = desk(store)
    alone = await links.whoami(who("a"))
    assert (alone.linked, alone.others) == (False, ())
    await join(links, "b", "a")
    await join(links, "c", "a")
    found = await links.whoami(who("b"))
    assert (found.linked, [one.channel for one in found.others]) == (True, ["chat-a", "chat-c"])
    assert (await links.whoami(who("d"))).others == ()


async def test_a_secret_stays_the_same_on_every_replica(stores: list[HostStateStore]) -> None:
    found = [await desk(one).secret("linker") for one in stores]
    assert len(set(found)) == 1
    assert len(found[0]) == 32
    assert await desk(stores[0]).secret("other") != found[0]


async def assert_whole(store: HostStateStore) -> None:
    """Nobody has a key of somebody to whom no link leads, and no record contradicts another."""
    records = {name: await store.identities.find(who(name)) for name in NAMES}
    links = {name: await store.identities.link(who(name)) for name in NAMES}
    by_id = {link.link_id: name for name, link in links.items() if link is not None}
    for name, record in records.items():
        assert record is not None
        link = links[name]
        if link is None:
            assert record.isolation_key == home(name)
            continue
        assert record.isolation_key == link.isolation_key
        place, steps = name, 0
        while (step := links[place]) is not None and step.previous_key is not None:
            assert step.isolation_key == link.isolation_key
            assert step.via is not None
            place, steps = by_id[step.via], steps + 1
            assert steps < len(NAMES)
        assert record.isolation_key == home(place)


@pytest.mark.parametrize("seed", range(5))
async def test_changes_at_once_never_leave_half_of_one(stores: list[HostStateStore], seed: int) -> None:
    await introduce(stores[0])
    chance = random.Random(seed)
    desks = [desk(one) for one in stores]

    async def act(number: int) -> None:
        name, other = chance.sample(NAMES, 2)
        step = ("link", name, other) if chance.random() < 0.7 else ("unlink", name, "")
        # Where too many want the same at once, the last are asked to come again.
        with suppress(ConflictError):
            await play_for_real(desks[number % len(desks)], step)

    for _ in range(4):
        await asyncio.gather(*(act(number) for number in range(8)))
        for one in stores:
            forget(one)
            await assert_whole(one)


def forget(store: Any) -> None:
    """What a replica has in memory may be a second old; here that second has passed."""
    for name in NAMES:
        if hasattr(store.identities, "forget"):
            store.identities.forget(who(name))


async def test_of_a_merge_and_an_unlink_at_once_both_or_one_count_and_never_half(store: HostStateStore) -> None:
    links = desk(store)
    for _ in range(10):
        await join(links, "b", "a")
        await asyncio.gather(join(links, "c", "b"), links.part(who("a")))
        await assert_whole(store)
        for name in NAMES:
            await links.part(who(name))
        assert await keys(store) == {name: name for name in NAMES}


async def test_a_change_is_planned_on_what_is_there_and_not_on_what_is_remembered(postgres: str) -> None:
    clock = FakeClock()
    here, there = (patient_store(postgres, clock=clock) for _ in range(2))
    await here.open()
    await there.open()
    try:
        await introduce(here)
        # Both know everybody as they were, and no time passes.
        assert await keys(here) == await keys(there)
        await join(desk(here), "b", "a")
        await join(desk(there), "c", "b")
        await desk(here).part(who("a"))
        assert await keys(here) == {name: name for name in NAMES}
    finally:
        await here.close()
        await there.close()


async def test_a_merge_on_one_replica_is_seen_there_at_once_and_elsewhere_soon(postgres: str) -> None:
    clock = FakeClock()
    here, there = (patient_store(postgres, clock=clock) for _ in range(2))
    await here.open()
    await there.open()
    try:
        await introduce(here)
        assert (await keys(there))["b"] == "b"
        assert await there.identities.link(who("b")) is None
        await join(desk(here, clock=clock), "b", "a")
        assert (await keys(here))["b"] == "a"
        clock.advance(1.0)
        assert (await keys(there))["b"] == "a"
        assert await there.identities.link(who("b")) is not None
    finally:
        await here.close()
        await there.close()


async def test_the_first_browser_of_a_person_stands_for_the_others_until_they_part(store: HostStateStore) -> None:
    links = desk(store)
    first, second, third = (ChannelIdentity(channel="web", native_id=name) for name in ("z", "m", "a"))
    for browser in (first, second, third):
        assert await links.get_home(browser) == browser
    await links.join(LinkProof(linker="test", identity=second, survivor=first, claims={"email": "ann@example.com"}))
    await links.join(LinkProof(linker="test", identity=third, survivor=second, claims={"name": "Ann"}))
    await links.join(LinkProof(linker="test", identity=who("a"), survivor=first))
    assert [await links.get_home(browser) for browser in (first, second, third)] == [first] * 3
    # On a channel of their own, everybody stands for themselves.
    assert (await links.get_home(who("a"))).key == who("a").key
    assert {await links.find_verified_name(browser) for browser in (first, second, third)} == {"Ann"}
    owner = (await links.find_link(first) or pytest.fail("not linked")).isolation_key
    issued = IdentityKeys(store, RandomIds(), FakeClock())
    assert {one.key for one in await issued.list_addresses(owner, {"web"})} == {first.key, who("a").key}
    assert len(await issued.list_addresses(owner, ())) == 4
    await links.part(third)
    assert await links.get_home(third) == third
    assert await links.find_verified_name(first) == "ann@example.com"
    assert await links.find_verified_name(third) is None
