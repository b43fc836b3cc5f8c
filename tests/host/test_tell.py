"""Telling somebody first: what goes wrong there harms nothing."""

import asyncio
from typing import Any

import pytest

from frontdesk.data.identity import ChannelIdentity
from frontdesk.host import tell
from frontdesk.host.tell import Teller
from frontdesk.testing import FakeClock, FakeIds
from tests.host.link_door import Loud, Mute

ANN = ChannelIdentity(channel="red", native_id="ann")


def teller(channel: Any) -> Teller:
    return Teller({channel.name: channel}, FakeIds(), FakeClock())


async def test_what_is_told_arrives_as_a_result() -> None:
    red = Loud("red")
    assert await teller(red).tell(ANN, "hello")
    assert red.pushed == [("ann", "hello")]


async def test_where_nobody_can_be_told_nothing_happens() -> None:
    for found in (teller(Mute("red")), teller(Loud("blue"))):
        assert not found.can_tell(ANN)
        assert not await found.tell(ANN, "hello")
        found.tell_soon(ANN, "hello")
        await found.drain(1.0)


async def test_a_platform_that_fails_is_logged_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    red = Loud("red", broken=RuntimeError("token=hunter2hunter2"))
    found = teller(red)
    assert not await found.tell(ANN, "hello")
    found.tell_soon(ANN, "hello")
    await found.drain(1.0)
    assert "could not be told of a change: RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_platform_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Loud):
        async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
            await asyncio.Event().wait()
            return None

    monkeypatch.setattr(tell, "LONGEST", 0.01)
    assert not await teller(Hanging("red")).tell(ANN, "hello")


async def test_what_waits_is_bounded_and_ends_with_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    began = asyncio.Event()

    class Hanging(Loud):
        async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
            self.pushed.append((identity.native_id, result.result.text))
            began.set()
            await asyncio.Event().wait()
            return None

    monkeypatch.setattr(tell, "MOST_WAITING", 3)
    red = Hanging("red")
    found = teller(red)
    for number in range(5):
        found.tell_soon(ANN, str(number))
    await began.wait()
    await found.drain(0.01)
    assert [text for _, text in red.pushed] == ["0", "1", "2"]
    assert not found._tasks
