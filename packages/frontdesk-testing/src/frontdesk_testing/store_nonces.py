"""The contract of stores for nonces that were used."""

import asyncio

from frontdesk.interfaces.store import HostStateStore
from frontdesk_testing.store_samples import NOW, ODD_KEYS


async def use(
    store: HostStateStore, nonce: str, scope: str = "hmac", *, now: float = NOW, expires_at: float = NOW + 600
) -> bool:
    """Use a nonce. Return True if it was free."""
    return await store.nonces.use(scope, nonce, now=now, expires_at=expires_at)


class Nonces:
    """Nonces, each accepted once until it expires."""

    async def test_a_nonce_is_used_once(self, store: HostStateStore) -> None:
        assert [await use(store, "n-1") for _ in range(3)] == [True, False, False]
        assert await use(store, "n-2")

    async def test_of_twenty_uses_of_a_nonce_at_once_one_counts(self, store: HostStateStore) -> None:
        used = await asyncio.gather(*(use(store, "n-1") for _ in range(20)))
        assert sorted(used) == [False] * 19 + [True]

    async def test_a_scope_knows_nothing_of_another(self, store: HostStateStore) -> None:
        pairs = [("a", "b"), ("ab", ""), ("", "ab"), ("b", "a")]
        for expected in (True, False):
            assert [await use(store, nonce, scope) for scope, nonce in pairs] == [expected] * len(pairs)

    async def test_a_nonce_is_free_again_when_it_has_expired_and_not_before(self, store: HostStateStore) -> None:
        assert await use(store, "n-1", expires_at=NOW + 10)
        assert not await use(store, "n-1", now=NOW + 9.999, expires_at=NOW + 1000)
        # The use that failed has not made it last longer.
        assert await use(store, "n-1", now=NOW + 10, expires_at=NOW + 20)
        assert not await use(store, "n-1", now=NOW + 19, expires_at=NOW + 30)

    async def test_a_nonce_that_expires_late_outlasts_others_that_came_after_it(self, store: HostStateStore) -> None:
        assert await use(store, "late", expires_at=NOW + 600)
        assert await use(store, "soon", expires_at=NOW + 1)
        assert await use(store, "soon", now=NOW + 2, expires_at=NOW + 3)
        assert not await use(store, "late", now=NOW + 599)

    async def test_odd_texts_are_nonces_like_any_other(self, store: HostStateStore) -> None:
        for expected in (True, False):
            assert [await use(store, key) for key in ODD_KEYS] == [expected] * len(ODD_KEYS)
            assert [await use(store, "n", key) for key in ODD_KEYS] == [expected] * len(ODD_KEYS)
