"""Requests that are stored until their sender is linked: one transaction makes the link and the event."""

from dataclasses import dataclass
from typing import Any

import pytest

from frontdesk import AuthPolicy
from frontdesk.access.gate import Gate
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.links import Links
from frontdesk.access.stored_requests import LIFETIME_SECONDS, StoredRequests, is_stored_request
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller
from frontdesk.models.operations import EventLimits
from frontdesk.models.request import ChannelRequest
from frontdesk_testing import FakeClock
from tests.access.linking import NAMES, introduce, join, who
from tests.access.test_links import stores  # noqa: F401  # pyright: ignore[reportUnusedImport]


class StoreLinker:
    """A linker whose links are those of the store."""

    name, gives_claims = "test", False

    def __init__(self, store: HostStateStore) -> None:
        self._store = store

    async def resolve(self, identity: Any) -> Any:
        return await self._store.identities.link(identity)


@dataclass
class Access:
    store: HostStateStore
    clock: FakeClock
    links: Links
    requests: StoredRequests
    woken: list[InboxItem]

    async def keep(self, item: InboxItem) -> bool:
        """Store a request as the processor of events does. Return False if it is not stored."""
        grant = await self.requests.prepare(item)
        if grant is None:
            return False
        async with self.store.transaction() as transaction:
            self.requests.add(transaction, grant)
        return True

    async def events(self, name: str) -> list[str]:
        """Return the conversations of a channel with waiting events."""
        waiting = [one for one in await self.store.inbox.waiting("nobody") if one.channel == f"chat-{name}"]
        return [one.conversation_id for one in waiting]


def build(store: HostStateStore, *, max_bytes: int | None = 4096, bound: int | None = 100, clock: Any = None) -> Access:
    ids, clock, woken = RandomIds(), clock or FakeClock(), list[InboxItem]()
    keys = IdentityKeys(store, ids, clock)
    channels: Any = {}
    for name in NAMES:
        channel = InvocationsChannel(name=f"chat-{name}", path=f"/{name}")
        channel.event_limits = EventLimits(max_waiting_for_unlinked=bound)
        channels[channel.name] = channel
    rules = dict.fromkeys(channels, AuthPolicy.require_link())
    gate = Gate(keys, ids, clock, rules, linker=StoreLinker(store))  # type: ignore[arg-type]

    async def wake(item: InboxItem) -> None:
        woken.append(item)

    requests = StoredRequests(
        store, channels, gate, keys, clock, max_bytes=max_bytes, new_run_id=gate.new_run_id, wake=wake
    )
    return Access(store, clock, Links(store, keys, ids, clock, requests=requests), requests, woken)


def event(name: str, text: str = "hello", *, number: int = 1, person: str | None = None) -> InboxItem:
    identity = who(name) if person is None else who(name).replace(native_id=person)
    return InboxItem(
        channel=f"chat-{name}",
        event_id=f"{name}-{person}-{number}",
        conversation_id=f"chat of {name}",
        caller=Caller(identity=identity),
        request=ChannelRequest(channel=f"chat-{name}", input=text),
        received_at=1.0,
        run_id=f"run_{number}",
    )


@pytest.fixture
async def store(stores: list[HostStateStore]) -> HostStateStore:  # noqa: F811
    await introduce(stores[0])
    return stores[0]


async def test_a_link_turns_the_stored_request_into_one_event(store: HostStateStore) -> None:
    access = build(store)
    assert await access.keep(event("b", "what is due?"))
    assert await access.events("b") == []
    await join(access.links, "b", "a")
    assert await access.events("b") == ["chat of b"]
    (woken,) = access.woken
    assert (woken.event_id, woken.request.input, woken.run_id) == ("after-link:b-None-1", "what is due?", "run_1")
    assert is_stored_request(woken)
    # The grant is used up, so another change of the links releases nothing.
    await join(access.links, "c", "a")
    await access.links.part(who("b"))
    await join(access.links, "b", "a")
    assert len(access.woken) == 1
    (claimed,) = [await store.inbox.claim("chat-b", "chat of b", holder="one")]
    assert claimed is not None
    assert (claimed.event_id, claimed.request.input) == ("after-link:b-None-1", "what is due?")


async def test_the_request_of_the_side_that_keeps_its_key_is_released_too(store: HostStateStore) -> None:
    access = build(store)
    assert await access.keep(event("a"))
    await join(access.links, "b", "a")
    assert await access.events("a") == ["chat of a"]


async def test_nothing_is_stored_by_default(store: HostStateStore) -> None:
    access = build(store, max_bytes=None)
    assert not await access.keep(event("b"))
    await join(access.links, "b", "a")
    assert access.woken == []


async def test_an_expired_request_is_not_released(store: HostStateStore) -> None:
    access = build(store)
    assert await access.keep(event("b"))
    access.clock.advance(LIFETIME_SECONDS)
    await join(access.links, "b", "a")
    assert (access.woken, await access.events("b")) == ([], [])


async def test_a_request_that_is_too_large_is_not_stored(store: HostStateStore) -> None:
    access = build(store)
    assert not await access.keep(event("b", "x" * 4096))
    assert await access.keep(event("b", "x" * 2000))


async def test_a_person_has_one_stored_request_and_a_channel_as_many_as_its_bound(store: HostStateStore) -> None:
    access = build(store, bound=2)
    stored = [await access.keep(event("b", number=number, person=person)) for number, person in enumerate("xxyzz")]
    assert stored == [True, False, True, False, False]
    # Another channel has a bound of its own, and an expired request leaves room.
    assert await access.keep(event("c"))
    access.clock.advance(LIFETIME_SECONDS)
    assert await access.keep(event("b", person="z"))


async def test_anonymous_callers_commands_and_released_requests_are_not_stored(store: HostStateStore) -> None:
    access, item = build(store), event("b")
    assert not await access.keep(item.replace(caller=item.caller.replace(anonymous=True)))
    assert not await access.keep(item.replace(request=item.request.replace(operation="command")))
    assert not await access.keep(item.replace(kind="control"))
    assert not await access.keep(item.replace(event_id="after-link:1"))


async def test_a_request_that_is_stored_while_its_sender_is_linked_is_released(store: HostStateStore) -> None:
    access, item = build(store), event("b")
    await join(access.links, "b", "a")
    assert await access.keep(item)
    assert access.woken == []
    await access.requests.release_if_linked(item)
    await access.requests.release_if_linked(item)
    assert [one.event_id for one in access.woken] == ["after-link:b-None-1"]
    assert await access.events("b") == ["chat of b"]


async def test_a_request_of_an_unlinked_sender_stays_stored(store: HostStateStore) -> None:
    access, item = build(store), event("b")
    assert await access.keep(item)
    await access.requests.release_if_linked(item)
    assert access.woken == []
    await join(access.links, "b", "a")
    assert len(access.woken) == 1
