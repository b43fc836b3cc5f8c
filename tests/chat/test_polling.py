"""Polling: the offset never passes what was not kept, and nothing is in the way for ever."""

import asyncio
import logging
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.connection import EarlyReceiptError, Poller, persist
from frontdesk.errors import CodecError, InvalidRequestError, PushError, StoreError

KINDS = ("good", "nonsense", "unkeepable", "late", "later", "shaky", "broken")
PASSED_OVER = ("nonsense", "unkeepable", "broken")


class Platform:
    """Events that are taken at once, never, or at the second or third try; some fail as nobody foresaw."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = kinds
        self.kept: list[int] = []
        self.tried: dict[int, int] = {}

    async def fetch(self, offset: int) -> list[tuple[int, bytes]]:
        # Whatever is below the offset is gone for good.
        assert all(self.settled(number) for number in range(offset))
        return [(number, str(number).encode()) for number in range(offset, len(self.kinds))][:3]

    def settled(self, number: int) -> bool:
        return number in self.kept or self.kinds[number] in PASSED_OVER

    async def take(self, event: bytes) -> None:
        number = int(event)
        kind, tries = self.kinds[number], self.tried.get(number, 0) + 1
        self.tried[number] = tries
        if kind == "nonsense":
            raise InvalidRequestError
        if kind == "unkeepable":
            raise CodecError
        if kind.startswith("late") and tries <= KINDS.index(kind) - 2:
            raise StoreError
        if kind == "broken" or (kind == "shaky" and tries < 3):
            raise KeyError(kind)
        self.kept.append(number)


@given(st.lists(st.sampled_from(KINDS), max_size=12))
def test_every_event_is_kept_once_or_passed_over(kinds: list[str]) -> None:
    platform = Platform(kinds)

    async def all_of_it() -> None:
        poller = Poller("messages", platform.fetch, platform.take)
        for _ in range(11 * len(kinds) + 4):
            try:
                await poller.poll()
            except (StoreError, KeyError):
                continue
        assert poller.offset == len(kinds)

    logging.disable(logging.ERROR)
    try:
        asyncio.run(all_of_it())
    finally:
        logging.disable(logging.NOTSET)
    assert platform.kept == [number for number, kind in enumerate(kinds) if kind not in PASSED_OVER]


async def test_what_is_passed_over_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    platform = Platform(["nonsense", "good"])
    await Poller("messages", platform.fetch, platform.take).poll()
    assert "event skipped: event_id=0 channel=messages" in caplog.text
    assert platform.kept == [1]


async def test_persisting_ends_with_the_first_success(caplog: pytest.LogCaptureFixture) -> None:
    failures = iter([PushError(retry_after=0.0), PushError("away"), StoreError(), OSError("gone")])

    async def call() -> str:
        for error in failures:
            raise error
        return "there"

    assert await persist("calling", call) == "there"
    levels = [record.levelname for record in caplog.records if "operation=calling " in record.getMessage()]
    assert (levels.count("WARNING"), levels.count("ERROR")) == (3, 1)


async def test_a_poller_goes_on_until_it_is_cancelled() -> None:
    platform = Platform(["good", "later", "good"])
    kept = asyncio.Event()

    async def take(event: bytes) -> None:
        await platform.take(event)
        if len(platform.kept) == 3:
            kept.set()

    async def fetch(offset: int) -> list[tuple[int, bytes]]:
        if offset == 3:
            await asyncio.Event().wait()
        return await platform.fetch(offset)

    running = asyncio.create_task(Poller("messages", fetch, take).run())
    await kept.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert platform.kept == [0, 1, 2]


async def test_a_poll_that_fails_in_an_unforeseen_way_does_not_die(caplog: pytest.LogCaptureFixture) -> None:
    failures = iter([ValueError("no number"), KeyError("update_id")])

    async def call() -> str:
        for error in failures:
            raise error
        return "there"

    assert await persist("calling", call) == "there"
    assert caplog.text.count("operation=calling ") == 2


async def test_an_event_that_always_fails_in_an_unforeseen_way_is_passed_over_in_the_end() -> None:
    tried: list[bytes] = []

    async def fetch(offset: int) -> list[tuple[int, bytes]]:
        return [(number, str(number).encode()) for number in range(offset, 2)]

    async def take(event: bytes) -> None:
        tried.append(event)
        if event == b"0":
            raise ZeroDivisionError

    poller = Poller("messages", fetch, take)
    for _ in range(9):
        with pytest.raises(ZeroDivisionError):
            await poller.poll()
        assert poller.offset == 0
    await poller.poll()
    assert (poller.offset, tried[-2:]) == (2, [b"0", b"1"])


async def test_a_receipt_that_comes_again_keeps_back_no_message() -> None:
    kept, is_known = list[int](), False

    async def fetch(offset: int) -> list[tuple[int, bytes]]:
        return [(number, str(number).encode()) for number in range(offset, 3)]

    async def take(event: bytes) -> None:
        if int(event) == 1 and not is_known:
            raise EarlyReceiptError
        kept.append(int(event))

    poller = Poller("messages", fetch, take)
    with pytest.raises(EarlyReceiptError):
        await poller.poll()
    assert (kept, poller.offset) == ([0, 2], 1)
    is_known = True
    await poller.poll()
    assert (kept, poller.offset) == ([0, 2, 1, 2], 3)
