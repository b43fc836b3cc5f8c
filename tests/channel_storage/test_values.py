"""A channel keeps values that no other channel can read, and nobody at rest if the host has a key."""

import logging
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, Channel, ChannelConfigurationError, ChannelContribution, Secret
from frontdesk.channel_storage.values import MAX_VALUE_LENGTH
from frontdesk.errors import SealError
from frontdesk.host.config import seal_keys
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.internals import get_store

OLD, NEW = "an-older-key-of-at-least-32-letters", "a-newer-key-of-at-least-32-letters"
HIDDEN = "a token that nobody may see"


class Keeper(Channel):
    """A channel that keeps something."""

    requires_auth_when_public = False

    def __init__(self, name: str = "chat", *, asks_early: bool = True) -> None:
        self.name, self.path = name, f"/{name}"
        self._asks_early = asks_early

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.context = context
        if self._asks_early:
            context.storage.values("tokens")
        return ChannelContribution()


async def echo(text: str) -> str:
    return text


def make(path: Path, *channels: Channel, seal_key: Any = None, clock: FakeClock | None = None) -> AgentFrameworkHost:
    store = SqliteStateStore(path / "frontdesk.db", clock=clock)
    return AgentFrameworkHost(echo, channels=channels, store=store, seal_key=seal_key, clock=clock)


@asynccontextmanager
async def run_host(path: Path, *channels: Channel, **settings: Any) -> AsyncIterator[None]:
    app = make(path, *channels, **settings).app
    async with app.router.lifespan_context(app):
        yield


def rows(path: Path) -> list[tuple[str, bytes]]:
    with closing(sqlite3.connect(path / "frontdesk.db")) as connection:
        return connection.execute("SELECT key_id, data FROM channel_values WHERE channel <> ''").fetchall()


async def test_a_value_is_read_by_its_own_channel_and_storage_alone(tmp_path: Path) -> None:
    chat, other = Keeper(), Keeper("other")
    async with run_host(tmp_path, chat, other):
        storage = chat.context.storage.values("tokens")
        version = await storage.set("bot", {"token": HIDDEN, "scopes": [1, None]})
        found = await storage.get("bot")
        assert found is not None
        assert (found.value, found.version) == ({"token": HIDDEN, "scopes": [1, None]}, version)
        assert HIDDEN not in repr(found)
        assert await other.context.storage.values("tokens").get("bot") is None
        assert await chat.context.storage.values("other").get("bot") is None
        await storage.delete("bot")
        assert await storage.get("bot") is None


async def test_a_value_that_came_back_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    chat = Keeper()
    async with run_host(tmp_path, chat):
        storage = chat.context.storage.values("tokens")
        first = await storage.compare_and_set("bot", None, 1)
        assert first is not None
        assert await storage.compare_and_set("bot", None, 2) is None
        await storage.delete("bot")
        second = await storage.set("bot", 1)
        assert await storage.compare_and_set("bot", first, 2) is None
        assert await storage.compare_and_set("bot", second, 3) is not None
        found = await storage.get("bot")
        assert found is not None
        assert found.value == 3


async def test_a_value_expires_and_is_swept(tmp_path: Path) -> None:
    clock, chat = FakeClock(), Keeper()
    host = make(tmp_path, chat, clock=clock)
    async with host.app.router.lifespan_context(host.app):
        storage = chat.context.storage.values("tokens")
        await storage.set("bot", 1, expires_at=clock.now() + 10)
        await storage.set("kept", 1)
        clock.advance(10)
        assert await storage.get("bot") is None
        clock.advance(1)
        store: Any = get_store(host)
        await store._sweep.once()
        assert len(rows(tmp_path)) == 1


@pytest.mark.parametrize("value", [object(), {"a": object()}, HIDDEN * MAX_VALUE_LENGTH])
async def test_what_cannot_be_kept_is_refused_without_being_told(tmp_path: Path, value: Any) -> None:
    chat = Keeper()
    async with run_host(tmp_path, chat):
        with pytest.raises(ValueError, match=r"must be JSON|the maximum is") as refused:
            await chat.context.storage.values("tokens").set("bot", value)
        assert HIDDEN not in str(refused.value)


async def test_values_are_sealed_and_keys_can_be_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    steps: Sequence[tuple[Any, str]] = [(None, "plain"), (OLD, "old"), ([Secret(NEW), OLD], "new")]
    for number, (key, name) in enumerate(steps):
        chat = Keeper()
        async with run_host(tmp_path, chat, seal_key=key):
            storage = chat.context.storage.values("tokens")
            await storage.set(name, f"{HIDDEN} {name}")
            for _, earlier in steps[: number + 1]:
                found = await storage.get(earlier)
                assert found is not None
                assert found.value == f"{HIDDEN} {earlier}"
    kept = rows(tmp_path)
    assert len({key_id for key_id, _ in kept}) == 3
    assert [HIDDEN.encode() in data for _, data in kept].count(True) == 1
    assert HIDDEN not in caplog.text
    assert OLD not in caplog.text
    chat = Keeper()
    async with run_host(tmp_path, chat, seal_key=NEW):
        storage = chat.context.storage.values("tokens")
        with pytest.raises(SealError, match="Add that key"):
            await storage.get("old")
        # It can be replaced without being read.
        await storage.set("old", 1)
        assert await storage.get("old") is not None


async def test_a_sealed_value_can_be_neither_moved_nor_changed(tmp_path: Path) -> None:
    chat = Keeper()
    async with run_host(tmp_path, chat, seal_key=OLD):
        storage = chat.context.storage.values("tokens")
        await storage.set("mine", 1)
        await storage.set("yours", 2)
        with closing(sqlite3.connect(tmp_path / "frontdesk.db")) as connection, connection:
            connection.execute(
                "UPDATE channel_values SET data = (SELECT data FROM channel_values WHERE name = 'yours') "
                "WHERE name = 'mine'"
            )
            connection.execute("UPDATE channel_values SET data = x'00' WHERE name = 'yours'")
        for key in ("mine", "yours"):
            with pytest.raises(SealError, match="changed or moved"):
                await storage.get(key)


async def test_a_channel_that_keeps_values_without_a_key_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    early, late, never = Keeper("early"), Keeper("late", asks_early=False), Keeper("never", asks_early=False)
    host = make(tmp_path, early, late, never)
    assert [one for one in host.warnings if "seal_key" in one] == [
        "channel 'early': what it keeps in its storage is not encrypted; give the host a seal_key="
    ]
    async with host.app.router.lifespan_context(host.app):
        for _ in range(2):
            early.context.storage.values("more")
            late.context.storage.values("tokens")
            never.context.storage.values("notes", holds_tokens=False)
    assert [record.message.split(":")[0] for record in caplog.records if "seal_key" in record.message] == [
        "channel 'early'",
        "channel 'late'",
    ]
    assert not [one for one in make(tmp_path, Keeper(), seal_key=OLD).warnings if "seal_key" in one]


def test_a_key_that_is_too_short_is_a_finding(tmp_path: Path) -> None:
    with pytest.raises(ChannelConfigurationError, match="at least 32 random characters") as refused:
        make(tmp_path, Keeper(), seal_key=[OLD, "short"])
    assert "short'" not in str(refused.value)


def test_keys_come_from_the_environment_if_none_is_given() -> None:
    environment = {"FRONTDESK_SEAL_KEY": f"{NEW}, {OLD}"}
    assert [key.reveal() for key in seal_keys(None, environment)] == [NEW, OLD]
    assert [key.reveal() for key in seal_keys("other", environment)] == ["other"]
    assert seal_keys(None, {}) == seal_keys(None, {"FRONTDESK_SEAL_KEY": ""}) == ()
