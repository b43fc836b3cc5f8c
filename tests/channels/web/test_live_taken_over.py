"""The page shows no answer that was begun after another process had ended it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.web import WebChatChannel
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import GatedAgent, serving
from frontdesk_testing.internals import get_store
from tests.channels.web.visiting import open_visitor


class LateChannel(WebChatChannel):
    """Stands still before it writes the first message of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.release, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.opened: tuple[str, str] | None = None

    async def open_live(self, place: Any, view: Any, key: str) -> str:
        fence = place.fence
        self.opened = (fence.run_id, fence.place)
        self.begun.set()
        await self.release.wait()
        try:
            return await super().open_live(place, view, key)
        finally:
            self.ended.set()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return InMemoryStateStore()
    if request.param == "sqlite":
        return SqliteStateStore(tmp_path / "frontdesk.db")
    return PostgresStateStore(request.getfixturevalue("postgres_tables"))


@pytest.mark.parametrize("change", [{"fence": 1, "state": "closed"}, {"fence": 0, "state": "closed"}, {"fence": 1}])
async def test_a_stopped_answer_stayed_being_written_on_the_page(store: Any, change: dict[str, Any]) -> None:
    channel = LateChannel()
    host = AgentFrameworkHost(GatedAgent(), channels=[channel], store=store, shutdown_grace_seconds=0.1)
    async with serving(host) as client, open_visitor(client.base_url) as ada:
        await ada.say("one two three")
        await channel.begun.wait()
        assert channel.opened is not None
        run_id, place = channel.opened
        known = await get_store(host).live.get(run_id, channel.name, place)
        assert known is not None
        # Another process has taken the answer over, or this one has ended it.
        changed = known.replace(**{**change, "fence": known.fence + change["fence"]})
        async with get_store(host).transaction() as transaction:
            transaction.save_live(changed)
        channel.release.set()
        await channel.ended.wait()
        # It was never written: a process that is killed here leaves nothing behind.
        assert [one["text"] for one in await ada.messages()] == ["one two three"]
