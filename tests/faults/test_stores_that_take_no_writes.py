"""While nothing can be written, the host is not ready and asks no target; a damaged database is reported."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from frontdesk import AgentFrameworkHost, PostgresStateStore
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.stores.sql.sqlite import engine
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.writes import Do
from frontdesk_testing import HostClient, serving
from tests.faults.ports import is_ready
from tests.faults.test_full_disks import LARGE, pages
from tests.faults.traffic import ask_both, is_unavailable
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import open_chat

_FILL = "INSERT INTO channel_values (version, key_id, data, channel, storage, name) VALUES ('', '', ?, 'x', 'x', 'x')"


class NotingAgent:
    """Repeats what it hears, and notes what it is asked."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.held, self.release = asyncio.Event(), asyncio.Event()

    async def talk(self, text: str) -> str:
        self.heard.append(text)
        if text == "hold":
            self.held.set()
            await self.release.wait()
        return f"you said {text}"


@asynccontextmanager
async def serve(agent: NotingAgent, store: Any) -> AsyncIterator[HostClient]:
    host = AgentFrameworkHost(agent.talk, channels=[InvocationsChannel(), ResponsesChannel()], store=store)
    async with serving(host) as client:
        yield client


async def assert_refuses(client: HostClient, agent: NotingAgent) -> None:
    """Ask in all ways, and see that the host refuses at once."""
    heard = list(agent.heard)
    responses = await ask_both(client, "small")
    responses += await ask_both(client, "small", stream=True)
    body = {"message": "small"}
    responses.append(await client.http.post("/invocations", json=body, headers={"idempotency-key": "k"}))
    responses.append(await client.http.post("/invocations", json={**body, "background": True}))
    for response in responses:
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert is_unavailable(response)
    assert agent.heard == heard
    assert not await is_ready(client.http)
    assert (await client.http.get("/healthz")).status_code == 200


async def test_the_target_was_asked_while_the_disk_was_full(tmp_path: Path) -> None:
    store, agent = SqliteStateStore(tmp_path / "frontdesk.db"), NotingAgent()
    async with serve(agent, store) as client:
        assert [one.status_code for one in await ask_both(client, "before")] == [200, 200]
        await pages(store)
        # What shows that the disk is full: of this turn the target was asked.
        response = await client.http.post("/invocations", json={"message": LARGE})
        assert is_unavailable(response)
        await assert_refuses(client, agent)
        await pages(store, 10**6)
        await until(lambda: is_ready(client.http))
        assert [one.status_code for one in await ask_both(client, "after")] == [200, 200]
        left = await store._engine.read("SELECT count(*) FROM channel_values WHERE storage = 'write probe'")
        assert left[0][0] == 0


async def test_a_background_run_waits_while_the_disk_is_full(tmp_path: Path) -> None:
    store, agent = SqliteStateStore(tmp_path / "frontdesk.db"), NotingAgent()
    async with serve(agent, store) as client:
        blocked = asyncio.create_task(client.http.post("/invocations", json={"message": "hold", "session_id": "s"}))
        await agent.held.wait()
        body = {"message": "later", "session_id": "s", "background": True}
        queued = await client.http.post("/invocations", json=body)
        assert queued.status_code == 202
        await fill(store)
        agent.release.set()
        assert (await blocked).status_code in (200, 503)
        with pytest.raises(StoreUnavailableError):
            store.check_writable()
        assert agent.heard == ["hold"]
        await pages(store, 10**6)
        place = queued.headers["location"]

        async def is_completed() -> bool:
            return (await client.http.get(place)).json()["status"] == "completed"

        await until(is_completed, within=60)
        assert agent.heard == ["hold", "later"]


async def test_an_unstored_turn_is_answered_while_the_disk_is_full(tmp_path: Path) -> None:
    store, agent = SqliteStateStore(tmp_path / "frontdesk.db"), NotingAgent()
    async with serve(agent, store) as client:
        await fill(store)
        response = await client.http.post("/v1/responses", json={"input": "hi", "store": False})
        assert response.status_code == 200


async def fill(store: SqliteStateStore) -> None:
    """Let a write fail for want of room, and leave no room."""
    await pages(store)
    with pytest.raises(StoreUnavailableError):
        await store._engine.write([Do(_FILL, (bytes(1_000_000),))])


async def test_a_message_of_a_chat_waits_while_the_disk_is_full(tmp_path: Path) -> None:
    store, writable = SqliteStateStore(tmp_path / "frontdesk.db"), list[bool]()

    async def talk(text: str) -> str:
        with suppress(StoreUnavailableError):
            store.check_writable()
            writable.append(True)
            return f"you said {text}"
        writable.append(False)
        return "asked in vain"

    async with open_chat(talk, store=store) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one")
        await chat.wait_for_answers(ada.chat_id, 1)
        await fill(store)
        await chat.platform.say(ada, "two")
        with pytest.raises(StoreUnavailableError):
            store.check_writable()
        await pages(store, 10**6)
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["you said one", "you said two"]
    assert writable == [True, True]


def overwrite(path: Path, *, first_page: int) -> None:
    """Overwrite all pages of a database from one on."""
    size = 4096
    with path.open("r+b") as file:
        end = file.seek(0, 2)
        file.seek(first_page * size)
        file.write(b"\xa5" * (end - first_page * size))


async def damage(path: Path) -> None:
    """Write sessions into a database, close it, and overwrite the part that has their histories."""
    store, agent = SqliteStateStore(path), NotingAgent()
    async with serve(agent, store) as client:
        pages_before = (await store._engine.read("PRAGMA page_count"))[0][0]
        for number in range(10):
            body = {"message": LARGE, "session_id": f"s{number}"}
            assert (await client.http.post("/invocations", json=body)).status_code == 200
    overwrite(path, first_page=pages_before)


async def test_a_damaged_database_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "frontdesk.db"
    await damage(path)
    before = path.read_bytes()
    store = SqliteStateStore(path)
    with pytest.raises(StoreError, match=r"frontdesk\.db is damaged: .*put a backup in its place.*\.recover"):
        await store.open()
    assert path.read_bytes() == before


async def test_a_host_does_not_start_on_a_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "frontdesk.db"
    await damage(path)
    host = AgentFrameworkHost(NotingAgent().talk, channels=[InvocationsChannel()], store=SqliteStateStore(path))
    with pytest.raises(StoreError, match="is damaged"):
        async with host.lifespan():
            pytest.fail("it started")


async def test_a_large_database_is_checked_beside_its_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine, "MAX_CHECKED_AT_START_BYTES", 0)
    path, agent = tmp_path / "frontdesk.db", NotingAgent()
    await damage(path)
    async with serve(agent, SqliteStateStore(path)) as client:

        async def is_reported() -> bool:
            return not await is_ready(client.http)

        await until(is_reported)
        await assert_refuses(client, agent)
    assert "put a backup in its place" in caplog.text


async def test_a_check_beside_the_use_ends_with_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_CHECKED_AT_START_BYTES", 0)
    store = SqliteStateStore(tmp_path / "frontdesk.db")
    for _ in range(3):
        await store.open()
        store.check_writable()
        await store.close()


async def test_readyz_said_yes_after_a_damaged_page_was_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, agent = tmp_path / "frontdesk.db", NotingAgent()
    store = SqliteStateStore(path)
    async with serve(agent, store) as client:
        before = (await store._engine.read("PRAGMA page_count"))[0][0]
        for number in range(20):
            body = {"message": LARGE, "session_id": f"s{number}"}
            assert (await client.http.post("/invocations", json=body)).status_code == 200
    async with serve(agent, store) as client:
        # It was whole when it was opened.
        overwrite(path, first_page=before)
        with suppress(StoreUnavailableError):
            for session_id, owner in await store._engine.read("SELECT session_id, owner FROM sessions"):
                await store.sessions.history(owner, session_id)
        await assert_refuses(client, agent)
    assert "state store damaged" in caplog.text


async def test_the_target_was_asked_while_postgres_was_read_only(postgres: str) -> None:
    store, agent = PostgresStateStore(postgres), NotingAgent()
    database = Identifier(str(conninfo_to_dict(postgres)["dbname"]))
    async with (
        await psycopg.AsyncConnection.connect(postgres, autocommit=True) as admin,
        serve(agent, store) as client,
    ):
        assert [one.status_code for one in await ask_both(client, "before")] == [200, 200]
        await admin.execute(SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(database))
        await cut_others(admin)
        async with asyncio.timeout(60):
            while not is_unavailable(await client.http.post("/invocations", json={"message": "shows it"})):
                pass
        await assert_refuses(client, agent)
        await admin.execute(SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(database))
        await cut_others(admin)
        await until(lambda: is_ready(client.http))
        assert [one.status_code for one in await ask_both(client, "after")] == [200, 200]


async def cut_others(admin: Any) -> None:
    """End the other connections to a database: a setting of it holds for new ones."""
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
