"""Events over a connection: acknowledged once they are stored, by one process, which opens the next when one ends."""

import asyncio
import logging
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, InMemoryStateStore
from frontdesk.channel_storage import leadership
from frontdesk.chat import connection
from frontdesk.chat.connection import Listener, Take
from frontdesk.errors import CodecError, InvalidRequestError, PushError, PushRefusedError, StoreUnavailableError
from frontdesk.models.delivery import InboxItem
from frontdesk.stores.memory.store import MemoryTransaction
from frontdesk_testing import EchoAgent, serving
from tests.chat.postbox.gateway import ConnectedChannel, GatewayPostbox, connect_channel, gateway_postbox


class Shared(InMemoryStateStore):
    """A store of several hosts."""

    lease_seconds = 30.0  # pyright: ignore[reportAssignmentType]


class AwayAtFirst(InMemoryStateStore):
    """Is away for the first event."""

    failures = 0

    def transaction(self) -> Any:
        return _AwayAtFirst(self)


class _AwayAtFirst(MemoryTransaction):
    def accept(self, item: InboxItem, *, owner: str = "") -> None:
        store: Any = self._store
        if not store.failures:
            store.failures += 1
            raise StoreUnavailableError
        super().accept(item, owner=owner)


def host_on(platform: GatewayPostbox, store: InMemoryStateStore | None = None) -> AgentFrameworkHost:
    return host_of(connect_channel(platform), store or InMemoryStateStore())


def host_of(channel: ConnectedChannel, store: InMemoryStateStore) -> AgentFrameworkHost:
    return AgentFrameworkHost(EchoAgent(), channels=[channel], store=store)


async def until_texts(platform: GatewayPostbox, chat_id: str, *texts: str) -> None:
    async def are_shown() -> bool:
        return [message.text for message in await platform.shown(chat_id)] == list(texts)

    await platform.until(are_shown)


async def until(platform: GatewayPostbox, *, opened: int, acknowledged: int) -> None:
    async def is_so() -> bool:
        return (platform.opened, len(platform.acknowledged)) == (opened, acknowledged)

    await platform.until(is_so)


async def test_an_event_is_answered_and_acknowledged() -> None:
    async with gateway_postbox() as platform:
        ada = await platform.person("Ada")
        async with serving(host_on(platform)):
            await platform.say(ada, "hello")
            await until_texts(platform, ada.chat_id, "hello")
            await until(platform, opened=1, acknowledged=1)
        # The host has closed its connection.
        assert platform.connections == []
        assert platform.opened == 1


async def test_a_connection_that_was_cut_is_opened_again_and_nothing_is_lost() -> None:
    async with gateway_postbox() as platform:
        ada = await platform.person("Ada")
        async with serving(host_on(platform)):
            await platform.say(ada, "one")
            await until_texts(platform, ada.chat_id, "one")
            await platform.say(ada, "two")
            await platform.cut()
            await platform.say(ada, "three")
            await until_texts(platform, ada.chat_id, "one", "two", "three")
            assert platform.opened == 2


async def test_an_event_that_was_not_stored_is_not_acknowledged_and_comes_again() -> None:
    store = AwayAtFirst()
    async with gateway_postbox() as platform:
        ada = await platform.person("Ada")
        async with serving(host_on(platform, store)):
            event_id = await platform.say(ada, "hello")
            await until(platform, opened=2, acknowledged=1)
            assert (store.failures, platform.acknowledged) == (1, [event_id])
            await until_texts(platform, ada.chat_id, "hello")


async def test_an_event_that_cannot_be_read_keeps_back_no_other() -> None:
    async with gateway_postbox() as platform:
        ada = await platform.person("Ada")
        async with serving(host_on(platform)):
            platform.bodies["e-0"] = b'{"id": "e-0", "text": 7}'
            await platform.say(ada, "hello")
            await until_texts(platform, ada.chat_id, "hello")
            await until(platform, opened=1, acknowledged=2)


async def test_one_of_two_hosts_listens_and_the_other_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leadership, "_CHECK_INTERVAL_SECONDS", 0.01)
    store = Shared()
    async with gateway_postbox() as platform:
        ada = await platform.person("Ada")
        first, second = connect_channel(platform), connect_channel(platform)
        async with AsyncExitStack() as stack:
            async with serving(host_of(first, store)):
                await until(platform, opened=1, acknowledged=0)
                await stack.enter_async_context(serving(host_of(second, store)))
                await second.connected.wait()
                await platform.say(ada, "one")
                await until(platform, opened=1, acknowledged=1)
                await until_texts(platform, ada.chat_id, "one")
            await until(platform, opened=2, acknowledged=1)
            await platform.say(ada, "two")
            await until_texts(platform, ada.chat_id, "one", "two")
            assert len(platform.connections) == 1


async def test_pauses_grow_until_a_connection_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = 0.0, list[float]()
    lasts = iter([0.0, 0.0, 0.0, 90.0, 0.0])
    ends: list[Exception | None] = [PushError("away"), None, PushError(retry_after=5.0), PushRefusedError("no"), None]

    async def listen(take: Take) -> None:
        nonlocal now
        now += next(lasts)
        end = ends.pop(0)
        if end is not None:
            raise end

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if not ends:
            raise asyncio.CancelledError

    # Time passes only when a connection says so.
    loop = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr(connection, "asyncio", SimpleNamespace(get_running_loop=lambda: loop, sleep=sleep))
    with pytest.raises(asyncio.CancelledError):
        await Listener("postbox", listen, listen_to_nothing).run()
    assert pauses == [0.05, 0.1, 5.0, 0.05, 0.1]


async def listen_to_nothing(event: bytes) -> None:
    pass


@pytest.mark.parametrize("error", [InvalidRequestError, CodecError])
async def test_what_is_passed_over_is_logged(error: type[Exception], caplog: pytest.LogCaptureFixture) -> None:
    done = asyncio.Event()

    async def take(event: bytes) -> None:
        raise error

    async def listen(take: Take) -> None:
        await take(b"{}")
        done.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(Listener("postbox", listen, take).run())
    await done.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "event skipped: channel=postbox" in caplog.text
