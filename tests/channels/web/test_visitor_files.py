"""Files of visitors without an account: stored once, and bounded for each visitor and for all of them together."""

import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_framework import Agent

from frontdesk import FileLimits, InMemoryStateStore, SqliteStateStore
from frontdesk.interfaces.store import HostStateStore
from frontdesk.scripted import ScriptedChatClient
from tests.channels.web.test_files import build_file
from tests.channels.web.visiting import Visitor, open_visitor, web_host

SIZE = 20_000
LIMITS = FileLimits(max_visitor_bytes=3 * SIZE, max_visitors_bytes=5 * SIZE)


def content(number: int) -> bytes:
    return bytes([number]) * SIZE


def agent() -> Agent[Any]:
    return Agent(ScriptedChatClient(["yes"] * 50), "Look.")


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> HostStateStore:
    if request.param == "memory":
        return InMemoryStateStore(file_limits=LIMITS)
    return SqliteStateStore(str(tmp_path / "frontdesk.db"), file_limits=LIMITS)


async def post(visitor: Visitor, **fields: Any) -> httpx.Response:
    visitor.count += 1
    return await visitor.post("conversations/main/messages", client_id=f"c{visitor.count}", text="look", **fields)


async def test_visitors_with_new_cookies_filled_the_disk(store: HostStateStore) -> None:
    async with web_host(agent(), store=store) as url:
        codes: list[str] = []
        for number in range(8):
            async with open_visitor(url) as visitor:
                answer = await post(visitor, files=[build_file(content(number))])
                codes.append("ok" if answer.status_code == 200 else answer.json()["error"]["code"])
                if answer.status_code != 200:
                    assert answer.status_code == 413
                    # Without files the message is taken.
                    assert (await post(visitor)).status_code == 200
        assert codes == ["ok"] * 5 + ["visitor_files_full"] * 3


async def test_one_visitor_took_the_room_of_all_others(store: HostStateStore) -> None:
    async with web_host(agent(), store=store) as url, open_visitor(url) as greedy, open_visitor(url) as other:
        answers = [await post(greedy, files=[build_file(content(number))]) for number in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 413]
        assert answers[3].json()["error"]["code"] == "files_full"
        # The same file takes no more room.
        assert (await post(greedy, files=[build_file(content(0))])).status_code == 200
        assert (await post(other, files=[build_file(content(0))])).status_code == 200


async def test_a_file_of_a_message_was_stored_twice(tmp_path: Path) -> None:
    path = tmp_path / "frontdesk.db"
    async with web_host(agent(), store=SqliteStateStore(str(path))) as url, open_visitor(url) as ada:
        await ada.say("look", files=[build_file(content(1))])
        await ada.wait_for_messages(2)
    with sqlite3.connect(path) as database:
        owners = database.execute("SELECT owner, size, visitor FROM files").fetchall()
        chunks = database.execute("SELECT SUM(LENGTH(data)) FROM file_chunks").fetchone()
        rows = [
            database.execute(sql).fetchone()[0]
            for sql in ("SELECT MAX(LENGTH(data)) FROM inbox", "SELECT MAX(LENGTH(data)) FROM runs")
        ]
    assert [(size, visitor) for _, size, visitor in owners] == [(SIZE, 1)]
    assert not owners[0][0].startswith("channel ")
    assert chunks == (SIZE,)
    assert max(rows) < 8_000
