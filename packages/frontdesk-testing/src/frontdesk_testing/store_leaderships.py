"""The contract of a store for leaderships of channels."""

import asyncio

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.channel_storage import Leadership
from frontdesk_testing.store_samples import ODD_KEYS


async def claim_leadership(
    store: HostStateStore, holder: str, name: str = "poller", channel: str = "chat"
) -> Leadership:
    """Claim a leadership that is free."""
    leadership = await store.leaderships.claim(channel, name, holder)
    assert leadership is not None
    return leadership


class Leaderships:
    """Leaderships, each with one holder at a time."""

    async def test_a_leadership_has_one_holder_until_it_is_released(self, store: HostStateStore) -> None:
        first = await claim_leadership(store, "a")
        assert (first.channel, first.name, first.holder) == ("chat", "poller", "a")
        assert await store.leaderships.claim("chat", "poller", "b") is None
        await store.leaderships.release("chat", "poller", "a")
        assert (await claim_leadership(store, "b")).fence > first.fence

    async def test_a_holder_that_claims_again_has_a_higher_fence(self, store: HostStateStore) -> None:
        first = await claim_leadership(store, "a")
        assert (await claim_leadership(store, "a")).fence > first.fence
        assert await store.leaderships.claim("chat", "poller", "b") is None

    async def test_only_its_holder_releases_a_leadership(self, store: HostStateStore) -> None:
        await claim_leadership(store, "a")
        await store.leaderships.release("chat", "poller", "b")
        await store.leaderships.release("chat", "other", "a")
        await store.leaderships.release("other", "poller", "a")
        assert await store.leaderships.claim("chat", "poller", "b") is None

    async def test_of_twenty_claims_of_a_leadership_at_once_one_succeeds(self, store: HostStateStore) -> None:
        claims = await asyncio.gather(*(store.leaderships.claim("chat", "poller", str(n)) for n in range(20)))
        assert sum(claim is not None for claim in claims) == 1

    async def test_leaderships_are_held_by_channel_and_name(self, store: HostStateStore) -> None:
        places = [("a", "b"), ("ab", ""), ("", "ab"), ("b", "a"), *(("odd", name) for name in ODD_KEYS)]
        places += [(channel, "odd") for channel in ODD_KEYS]
        for channel, name in places:
            await claim_leadership(store, "first", name, channel)
        for channel, name in places:
            assert await store.leaderships.claim(channel, name, "second") is None

    async def test_a_leadership_is_renewed_by_its_holder_alone(self, store: HostStateStore) -> None:
        first = await claim_leadership(store, "a")
        other = await claim_leadership(store, "a", "other")
        assert list(await store.leaderships.renew([first, other])) == []
        await store.leaderships.release("chat", "poller", "a")
        second = await claim_leadership(store, "b")
        assert list(await store.leaderships.renew([first, other])) == [first]
        assert list(await store.leaderships.renew([second])) == []
        assert list(await store.leaderships.renew([])) == []
