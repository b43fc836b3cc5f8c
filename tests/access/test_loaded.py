"""A list that is loaded: now and then, one load at a time, and never wider than the last that worked."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from frontdesk.access import allowlists
from frontdesk.access.allowlists import NativeIdAllowlist, evaluate
from frontdesk.interfaces.access import AuthorizationContext
from frontdesk_testing import FakeClock
from tests.access.door import ALICE, ALLOW, BOB, DENY
from tests.scenarios.desk import until


class Source:
    """What a loader loads; it can be slow, and it can fail."""

    def __init__(self, *ids: Any) -> None:
        self.ids: Any = list(ids)
        self.loads = 0
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def load(self) -> Collection[str]:
        self.loads += 1
        self.begun.set()
        await self.may_end.wait()
        if isinstance(self.ids, Exception):
            raise self.ids
        return self.ids


class List:
    def __init__(self, source: Source, cache_seconds: float = 60.0) -> None:
        self.clock = FakeClock(1000.0)
        self._allowlist = NativeIdAllowlist(source.load, cache_seconds=cache_seconds, clock=self.clock)

    async def says(self, identity: Any = ALICE) -> Any:
        return await evaluate(self._allowlist, AuthorizationContext(identity=identity))


async def test_it_is_loaded_once_in_its_time() -> None:
    source = Source("alice")
    ids = List(source)
    assert [await ids.says(), await ids.says(BOB), await ids.says()] == [ALLOW, DENY, ALLOW]
    assert source.loads == 1
    source.ids = ["bob"]
    ids.clock.advance(59.0)
    assert await ids.says() is ALLOW
    ids.clock.advance(1.0)
    assert [await ids.says(), await ids.says(BOB)] == [DENY, ALLOW]
    assert source.loads == 2


async def test_a_plain_function_can_load_too() -> None:
    allowlist = NativeIdAllowlist(lambda: {"alice"})
    assert await evaluate(allowlist, AuthorizationContext(identity=ALICE)) is ALLOW


async def test_a_clock_that_is_set_back_does_not_make_a_list_last() -> None:
    source = Source("alice")
    ids = List(source)
    await ids.says()
    source.ids = []
    ids.clock.set(10.0)
    assert await ids.says() is DENY


async def test_a_hundred_who_come_at_once_wait_for_one_load() -> None:
    source = Source("alice")
    source.may_end.clear()
    ids = List(source)
    waiting = [asyncio.create_task(ids.says()) for _ in range(100)]
    await source.begun.wait()
    source.may_end.set()
    assert set(await asyncio.gather(*waiting)) == {ALLOW}
    assert source.loads == 1


async def test_whoever_leaves_does_not_take_the_load_along() -> None:
    source = Source("alice")
    source.may_end.clear()
    ids = List(source)
    first, second = asyncio.create_task(ids.says()), asyncio.create_task(ids.says())
    await source.begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    source.may_end.set()
    assert await second is ALLOW
    assert source.loads == 1


BROKEN = [OSError("down"), "alice", None, [42], [""], {"ids": ["alice"]}.values]


@pytest.mark.parametrize("answer", BROKEN)
async def test_before_the_first_load_nobody_comes_in(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    source.ids = answer
    ids = List(source)
    assert await ids.says() is DENY
    assert "denying every caller" in caplog.text
    # It is not asked again by everyone who comes, and then it is.
    assert await ids.says() is DENY
    assert source.loads == 1
    source.ids = ["alice"]
    ids.clock.advance(allowlists.RETRY_SECONDS)
    assert await ids.says() is ALLOW


@pytest.mark.parametrize("answer", BROKEN)
async def test_when_it_fails_later_the_last_list_counts(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    source = Source("alice")
    ids = List(source)
    await ids.says()
    source.ids = answer
    for failures in range(1, 6):
        ids.clock.advance(60.0)
        assert [await ids.says(), await ids.says(BOB)] == [ALLOW, DENY]
        await until(lambda count=failures: len(caplog.records) == count)
    assert source.loads == 6
    assert "keeping the previous one" in caplog.text


async def test_while_it_fails_nobody_waits_for_it_and_when_it_works_again_the_new_list_counts() -> None:
    source = Source("alice")
    ids = List(source)
    await ids.says()
    source.ids = OSError("down")
    ids.clock.advance(60.0)
    assert await ids.says() is ALLOW
    source.ids = ["bob"]
    source.may_end.clear()
    source.begun.clear()
    ids.clock.advance(60.0)
    # The loader hangs, and everybody is answered by the list that there is.
    assert [await ids.says() for _ in range(5)] == [ALLOW] * 5
    await source.begun.wait()
    source.may_end.set()

    async def let_in() -> bool:
        return await ids.says(BOB) is ALLOW

    await until(let_in)
    assert await ids.says() is DENY
    assert source.loads == 3


async def test_a_loader_that_hangs_holds_nobody_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("alice")
    ids = List(source)
    await ids.says()
    monkeypatch.setattr(allowlists, "LOAD_SECONDS", 0.0)
    source.may_end.clear()
    ids.clock.advance(60.0)
    assert await ids.says() is ALLOW


async def test_it_can_be_used_in_one_loop_after_another() -> None:
    source = Source("alice")
    ids = List(source)
    await ids.says()

    def elsewhere() -> Any:
        fresh = Source("bob")
        other = NativeIdAllowlist(fresh.load, clock=ids.clock)
        asyncio.run(evaluate(other, AuthorizationContext(identity=ALICE)))
        ids.clock.advance(100.0)
        return asyncio.run(evaluate(other, AuthorizationContext(identity=BOB)))

    assert await asyncio.to_thread(elsewhere) is ALLOW


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="cache_seconds"):
        NativeIdAllowlist(["alice"], cache_seconds=seconds)
