"""What is held by leases is kept as long as it can be, and given up before another can have it."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from types import SimpleNamespace

import pytest

from frontdesk.errors import StoreUnavailableError
from frontdesk.sessions import leases
from frontdesk.sessions.leases import renew_leases

LEASE = 8.0


class LeaseWorld:
    """A time that only sleeping moves, and a store that can't be reached for some of it, or does not answer."""

    def __init__(self, down: tuple[float, float], *, hangs: bool = False) -> None:
        self.now = 0.0
        self.renewed = 0.0
        self.given_up: list[float] = []
        self._down = down
        self._hangs = hangs
        self._patience = 0.0

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now > 4 * LEASE:
            raise asyncio.CancelledError

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[None]:
        self._patience = seconds
        return nullcontext()

    def get_running_loop(self) -> "LeaseWorld":
        return self

    async def renew(self, held: Sequence[str]) -> Sequence[str]:
        if self._down[0] <= self.now < self._down[1]:
            if not self._hangs:
                raise StoreUnavailableError
            self.now += self._patience
            raise TimeoutError
        self.renewed = self.now
        return ()


async def _live(world: LeaseWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        leases,
        "asyncio",
        SimpleNamespace(sleep=world.sleep, timeout=world.timeout, get_running_loop=world.get_running_loop),
    )
    with pytest.raises(asyncio.CancelledError):
        await renew_leases(LEASE, lambda: ["run"], world.renew, lambda run: world.given_up.append(world.now))


@pytest.mark.parametrize("seconds", [0.1, LEASE / 4, LEASE * 9 / 16])
async def test_a_store_that_was_away_for_a_moment_cost_the_lease_of_a_run(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    world = LeaseWorld((LEASE, LEASE + seconds))
    await _live(world, monkeypatch)
    assert world.given_up == []


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_lease_ended_before_what_it_held_was_given_up(monkeypatch: pytest.MonkeyPatch, hangs: bool) -> None:
    world = LeaseWorld((LEASE, 3 * LEASE), hangs=hangs)
    await _live(world, monkeypatch)
    renewed = LEASE - LEASE / 4
    assert renewed + LEASE / 2 < world.given_up[0] <= renewed + LEASE * 7 / 8
