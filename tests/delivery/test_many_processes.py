"""Two processes serve the same destinations on one database."""

import asyncio

from frontdesk.clock import SystemClock
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.errors import PushError
from frontdesk.models.delivery import Delivery
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing.clock import FakeClock
from tests.delivery.scripted import TERMS, OutboxWorld, ScriptedChannel

DAY = 86_400.0


async def test_two_processes_send_each_part_once_and_in_order(postgres_tables: str) -> None:
    channel = ScriptedChannel()
    stores = [PostgresStateStore(postgres_tables) for _ in range(2)]
    for store in stores:
        await store.open()
    try:
        desk = OutboxWorld(stores[0], channel)
        desk.clock.set(SystemClock().now())
        places = [f"p{number}" for number in range(5)]
        for number in range(20):
            await desk.add(*(desk.row(f"{place} {number:02}", place=place) for place in places))
        outboxes = [OutboxSender(store, {"chat": channel}, SystemClock()) for store in stores]

        async def serve(outbox: OutboxSender, place: str) -> None:
            while (at := await outbox.drain("chat", place)) is not None:  # noqa: ASYNC110
                # Somebody else is at it, for no longer than this.
                await asyncio.sleep(min(at - SystemClock().now(), 0.01))

        await asyncio.gather(*(serve(outbox, place) for place in places for outbox in outboxes))
        for place in places:
            assert channel.texts(place) == [f"text {place} {number:02}" for number in range(20)]
        assert dict(await stores[0].outbox.counts()) == {"accepted": 100}
    finally:
        for store in stores:
            await store.close()


async def test_answers_that_are_written_at_once_do_not_come_between_each_other(postgres_tables: str) -> None:
    stores = [PostgresStateStore(postgres_tables) for _ in range(4)]
    for store in stores:
        await store.open()
    try:
        desks = [OutboxWorld(store, ScriptedChannel()) for store in stores]
        for round_ in range(5):
            letters = "abcdefghijklmnopqrstuvwxyz"[4 * round_ :]
            await asyncio.gather(
                *(desk.add(*desk.answer(letter, 4)) for desk, letter in zip(desks, letters, strict=False))
            )
        found = [one.delivery_id for one in await stores[0].outbox.open(("chat", "ann"), limit=100)]
        answers = [found[start : start + 4] for start in range(0, len(found), 4)]
        assert len(found) == 80
        assert all(answer == [f"{answer[0][0]}{part}" for part in range(4)] for answer in answers)
        # What was there before stays before.
        assert [sorted(one[0][0] for one in answers[start : start + 4]) for start in (0, 4, 8, 12, 16)] == [
            list("abcdefghijklmnopqrst"[start : start + 4]) for start in (0, 4, 8, 12, 16)
        ]
    finally:
        for store in stores:
            await store.close()


async def test_what_another_process_is_sending_is_waited_for(postgres_tables: str) -> None:
    stores = [PostgresStateStore(postgres_tables) for _ in range(2)]
    for store in stores:
        await store.open()
    try:
        channel = ScriptedChannel(idempotent=True)
        desk = OutboxWorld(stores[0], channel)
        desk.clock.set(SystemClock().now())
        await desk.add(desk.row("a0"))
        # The first hold lasts longer than this test takes, and the second one ends by itself.
        await _hold(stores[0], (await desk.get("a0")).replace(status="sending", attempts=1), 3_600.0)
        other = OutboxSender(stores[1], {"chat": channel}, SystemClock())
        assert await other.drain("chat", "ann") is not None
        assert channel.texts() == []
        await _hold(stores[0], await desk.get("a0"), 0.3)
        while (at := await other.drain("chat", "ann")) is not None:  # noqa: ASYNC110
            await asyncio.sleep(max(at - SystemClock().now(), 0.0))
        assert channel.texts() == ["text a0"]
        assert [one.code for one in (await desk.get("a0")).history] == ["interrupted", "accepted"]
    finally:
        for store in stores:
            await store.close()


async def _hold(store: PostgresStateStore, delivery: Delivery, seconds: float) -> None:
    async with store.transaction() as transaction:
        transaction.change_delivery(delivery, hold=seconds)


async def test_a_receipt_that_comes_late_still_counts(postgres_tables: str) -> None:
    """A slow process is thought dead; what it then learns is the truth."""
    stores = [PostgresStateStore(postgres_tables) for _ in range(2)]
    for store in stores:
        await store.open()
    try:
        channel = ScriptedChannel()
        channel.slow["ann"] = asyncio.Event()
        desk = OutboxWorld(stores[0], channel)
        desk.clock.set(SystemClock().now())
        await desk.add(desk.row("a0"))
        slow = asyncio.create_task(OutboxSender(stores[0], {"chat": channel}, SystemClock()).drain("chat", "ann"))
        await channel.began.wait()
        found = await stores[1].outbox.get("a0")
        assert found is not None
        async with stores[1].transaction() as transaction:
            transaction.change_delivery(found.replace(status="unknown", ended_at=desk.clock.now(), error="interrupted"))
        channel.slow["ann"].set()
        await slow
        after = await desk.get("a0")
        assert (after.status, after.receipt, after.error) == ("accepted", "r1", None)
    finally:
        for store in stores:
            await store.close()


async def test_a_host_whose_clock_was_ahead_gave_up_what_another_had_just_queued(postgres_tables: str) -> None:
    store = PostgresStateStore(postgres_tables)
    await store.open()
    try:
        channel = ScriptedChannel(terms=TERMS.replace(retry=TERMS.retry.replace(attempts=100)))
        channel.answer("ann", *(PushError(code="down") for _ in range(2)))
        desk, ahead = OutboxWorld(store, channel), FakeClock()
        host = OutboxSender(store, {"chat": channel}, ahead)
        ahead.advance(3 * DAY)
        await desk.add(desk.row("a0"))
        assert await host.drain("chat", "ann") is not None
        assert await desk.status("a0") == ("pending", "down")
        # The other does not wait three days for it.
        wait = await desk.drain()
        assert wait is not None
        assert wait <= TERMS.retry.longest_delay
        for clock in (desk.clock, ahead):
            clock.advance(wait)
        assert await desk.drain() is not None
        assert await desk.status("a0") == ("pending", "down")
        assert (await desk.get("a0")).attempts == 2
        ahead.advance(TERMS.retry.longest_delay)
        assert await host.drain("chat", "ann") is None
        assert await desk.status("a0") == ("accepted", None)
    finally:
        await store.close()
