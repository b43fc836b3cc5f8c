"""For how long a part stays claimed that is being sent."""

import asyncio
from typing import Any

import pytest

from frontdesk import Secret
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.clock import SystemClock
from frontdesk.delivery import destination_drain
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.interfaces.chat import TimesPushes
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from tests.delivery.scripted import TERMS, OutboxWorld, ScriptedChannel


class TimedChannel(ScriptedChannel, TimesPushes):
    """Says how long a push may take."""

    seconds: Any = 0.2

    def push_seconds(self, content: Any) -> float:
        return self.seconds


async def test_a_kill_while_a_text_was_sent_silenced_its_person_for_as_long_as_a_file_takes(
    postgres_tables: str,
) -> None:
    stores = [PostgresStateStore(postgres_tables) for _ in range(2)]
    for store in stores:
        await store.open()
    try:
        channel = TimedChannel(terms=TERMS.replace(timeout=1000.0))
        channel.slow["ann"] = asyncio.Event()
        desk = OutboxWorld(stores[0], channel)
        desk.clock.set(SystemClock().now())
        await desk.add(desk.row("a0"))
        sending = asyncio.create_task(OutboxSender(stores[0], {"chat": channel}, SystemClock()).drain("chat", "ann"))
        await channel.began.wait()
        (row,) = await stores[1].outbox.open(("chat", "ann"))
        assert 0.2 < row.held_for <= 0.2 + destination_drain._MARGIN_SECONDS
        # Its own time counts for the push too, so that it has ended when another host goes on.
        await sending
        assert (await desk.status("a0")) == ("unknown", "timeout")
    finally:
        for store in stores:
            await store.close()


@pytest.mark.parametrize("seconds", [2000.0, "no number"])
async def test_a_push_takes_no_longer_than_the_terms_say(postgres_tables: str, seconds: Any) -> None:
    store = PostgresStateStore(postgres_tables)
    await store.open()
    try:
        channel = TimedChannel(terms=TERMS.replace(timeout=100.0))
        channel.seconds = seconds
        desk = OutboxWorld(store, channel)
        desk.clock.set(SystemClock().now())
        channel.slow["ann"] = asyncio.Event()
        await desk.add(desk.row("a0"))
        sending = asyncio.create_task(OutboxSender(store, {"chat": channel}, SystemClock()).drain("chat", "ann"))
        await channel.began.wait()
        (row,) = await store.outbox.open(("chat", "ann"))
        assert 50.0 < row.held_for <= 100.0 + destination_drain._MARGIN_SECONDS
        channel.slow["ann"].set()
        await sending
        assert (await desk.status("a0")) == ("accepted", None)
    finally:
        await store.close()


def test_a_text_on_telegram_takes_no_longer_than_a_call() -> None:
    channel = TelegramChannel(bot_token=Secret("1:a"), call_timeout=10.0)
    text, picture = {"text": "hello"}, {"text": "", "media": [{"file_id": "f"}]}
    assert channel.push_seconds(text) + destination_drain._MARGIN_SECONDS <= 25.0
    assert channel.push_seconds(None) == channel.push_seconds(text)
    assert channel.push_seconds(picture) == channel.push_terms.timeout
