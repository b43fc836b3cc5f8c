"""Telling somebody first: what goes wrong there harms nothing."""

import asyncio
from typing import Any

import pytest

from frontdesk.delivery import proactive as direct_notifier
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.proactive import DirectNotifier
from frontdesk.models.identity import ChannelIdentity
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import FakeClock, FakeIds
from tests.host.link_door import Loud, Mute

ANN = ChannelIdentity(channel="red", native_id="ann")


def notifier(channel: Any, store: InMemoryStateStore | None = None) -> DirectNotifier:
    channels, ids, clock = {channel.name: channel}, FakeIds(), FakeClock()
    store = store or InMemoryStateStore()
    planner = Planner(store, channels, ids, clock)
    return DirectNotifier(channels, store, planner, OutboxSender(store, channels, clock))


async def test_what_is_told_arrives_as_a_result() -> None:
    red = Loud("red")
    assert await notifier(red).tell(ANN, "hello")
    assert red.pushed == [("ann", "hello")]


async def test_where_nobody_can_be_told_nothing_happens() -> None:
    for found in (notifier(Mute("red")), notifier(Loud("blue"))):
        assert not found.can_tell(ANN)
        assert not await found.tell(ANN, "hello")
        assert not found.notes([ANN], "hello", owner="key")


async def test_a_platform_that_fails_is_logged_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    red = Loud("red", broken=RuntimeError("token=hunter2hunter2"))
    assert not await notifier(red).tell(ANN, "hello")
    assert "failed to notify a person of a change: channel=red: PushUnknownError" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_platform_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Loud):
        async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
            await asyncio.Event().wait()
            return None

    monkeypatch.setattr(direct_notifier, "TIMEOUT_SECONDS", 0.01)
    assert not await notifier(Hanging("red")).tell(ANN, "hello")


async def test_what_is_noted_goes_out_by_the_outbox() -> None:
    red, store = Loud("red"), InMemoryStateStore()
    found = notifier(red, store)
    notes = found.notes([ANN, ChannelIdentity(channel="blue", native_id="ben")], "hello", owner="key")
    async with store.transaction() as transaction:
        for note in notes:
            transaction.add_delivery(note)
    await found.send(notes)
    assert [(one.destination, one.owner) for one in notes] == [(("red", "ann"), "key")]
    assert await found._outbox.drain("red", "ann") is None
    assert red.pushed == [("ann", "hello")]
    assert [one.status for one in await store.outbox.find()] == ["accepted"]
