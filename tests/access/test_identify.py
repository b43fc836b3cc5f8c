"""Whose request it is: issued keys, the operator's resolver, and links."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from frontdesk.access.allowlists import CallableAllowlist
from frontdesk.access.gate import Gate
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.policy import OPEN
from frontdesk.clock import SystemClock
from frontdesk.errors import ForbiddenError, UnavailableError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.access import Allowed, Denied
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ChannelRequest
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.access.door import ALICE, PLAIN, Door, FixedLinker, link
from tests.databases import patient_store

RULES = {"web": OPEN}


async def owners(*stores: HostStateStore) -> set[str]:
    """The owners of forty first requests of one person, all at once, over hosts with these stores."""
    people = [ChannelIdentity(channel="web", native_id="alice", attributes={"name": str(n)}) for n in range(40)]
    gates = [Gate(IdentityKeys(one, RandomIds(), SystemClock()), RandomIds(), SystemClock(), RULES) for one in stores]

    async def enter(number: int) -> str:
        gate, caller = gates[number % len(gates)], Caller(identity=people[number])
        wire = ChannelRequest(channel="web", identity=caller.identity)
        allowed = gate.require_allowed(await gate.decide(caller, "web"), caller.identity)
        return (await gate.admit(wire, caller, wire, allowed)).owner

    return set(await asyncio.gather(*map(enter, range(40))))


async def test_replicas_on_postgres_issue_one_key(postgres: str) -> None:
    stores = [patient_store(postgres) for _ in range(3)]
    for one in stores:
        await one.open()
    try:
        (owner,) = await owners(*stores)
        for one in stores:
            assert [who.key for who in await one.identities.of_owner(owner)] == [ALICE.key]
    finally:
        for one in stores:
            await one.close()


async def test_a_key_on_disk_is_the_same_after_a_restart(tmp_path: Path) -> None:
    found: list[set[str]] = []
    for _ in range(2):
        store = SqliteStateStore(tmp_path / "frontdesk.db")
        await store.open()
        found.append(await owners(store))
        await store.close()
    assert found[0] == found[1]
    assert len(found[0]) == 1


async def test_the_key_of_a_link_wins_over_an_issued_one() -> None:
    linker = FixedLinker()
    door = Door(linker=linker)
    before = await door.enter(caller=PLAIN)
    linker.links[ALICE.key] = link(ALICE, "key_of_both")
    assert (await door.enter(caller=PLAIN)).owner == "key_of_both"
    await linker.unlink(ALICE)
    assert (await door.enter(caller=PLAIN)).owner == before.owner == "key_1"


async def test_the_key_of_a_link_wins_over_the_resolvers_who_can_still_refuse() -> None:
    answers: dict[str, Any] = {"alice": "person:alice"}
    door = Door(resolver=lambda who: answers.get(who.native_id), linker=FixedLinker(link(ALICE, "key_of_both")))
    assert (await door.enter(caller=PLAIN)).owner == "key_of_both"
    answers["alice"] = None
    decision = await door.decide()
    assert isinstance(decision, Denied)
    assert decision.reason_code == "identity_refused"


async def test_a_resolver_is_asked_before_the_hook_and_the_allowlist() -> None:
    asked: list[str] = []
    door = Door(resolver=lambda who: asked.append(who.native_id))
    with pytest.raises(ForbiddenError):
        await door.enter(hook=lambda wire: pytest.fail("a stranger reaches no hook"))
    assert asked == ["alice"]


@pytest.mark.parametrize("stray", [True, 42, b"key", ["key"], object()])
async def test_an_answer_that_is_no_key_refuses(stray: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def resolver(identity: ChannelIdentity) -> Any:
        return stray

    assert isinstance(await Door(resolver=resolver).decide(), Denied)
    assert "no key" in caplog.text


async def test_who_can_not_be_asked_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any) -> Any:
        raise OSError("secret address of a database")

    linker: Any = FixedLinker()
    linker.resolve = broken
    doors = [Door(resolver=broken), Door(linker=linker), Door(CallableAllowlist(broken))]
    for door in doors:
        with pytest.raises(UnavailableError) as caught:
            await door.enter()
        assert "secret" not in caught.value.message
        assert caught.value.retry_after
        assert await door.is_empty()
    assert [one.getMessage() for one in caplog.records] == [
        "identity_resolver failed",
        "linker failed",
        "allowlist failed",
    ]


@pytest.mark.parametrize("stray", [True, "key_of_bob", {"isolation_key": "key_of_bob"}, link(ALICE, "")])
async def test_a_linker_that_answers_with_something_else_has_linked_nobody(stray: Any) -> None:
    linker = FixedLinker()
    linker.links[ALICE.key] = stray
    assert await Door(linker=linker).decide() == Allowed(isolation_key=None)


async def test_a_channel_without_a_rule_was_open() -> None:
    door = Door(rules={})
    decision = await door.decide(channel="anything")
    assert isinstance(decision, Denied)
    assert decision.reason_code == "unknown_channel"
