"""The disk of a SQLite store is full, and has room again later."""

import asyncio
import os
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.writes import Do
from frontdesk_testing.store_samples import build_messages, run
from tests.faults.ports import free_port, is_ready
from tests.faults.traffic import Traffic, ask_both, histories, is_unavailable, serve
from tests.scenarios.desk import until

ROOT = Path(__file__).parents[2]
LARGE = "x" * 40_000


async def pages(store: SqliteStateStore, most: int | None = None) -> None:
    """Sets how many pages the file may have; by default as many as it has."""
    used = (await store._engine.read("PRAGMA page_count"))[0][0]
    limit = Do(f"PRAGMA max_page_count = {used if most is None else most}", answers=True)
    while True:
        # It may come in one batch with a write for which there is no room.
        with suppress(StoreUnavailableError):
            await store._engine.write([limit])
            return


async def test_a_full_disk_is_an_error_of_each_channel_and_passes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStateStore(tmp_path / "frontdesk.db")
    async with serve(store) as client:
        assert [one.status_code for one in await ask_both(client, "before")] == [200, 200]
        await pages(store)
        for response in await ask_both(client, LARGE):
            assert is_unavailable(response)
        for response in await ask_both(client, LARGE, stream=True):
            # A stream has begun when its run ends; the error is its last event.
            assert is_unavailable(response) or "confirmed is lost" in response.text.split("\n\n")[-2]
            assert "database or disk is full" not in response.text
        assert "state store not writable: database or disk is full" in caplog.text
        await pages(store, 10**6)
        await until(lambda: is_ready(client.http))
        for response in await ask_both(client, LARGE):
            assert response.status_code == 200
        assert (await ask_both(client, "after"))[0].json()["text"] == "you said after"
        said = (await histories(store))["asked"]
        assert (said[:2], said[-2:]) == (["before", "you said before"], ["after", "you said after"])
        assert said.count(f"you said {LARGE}") == 1


async def test_a_disk_that_fills_up_in_traffic_loses_nothing(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "frontdesk.db")
    async with serve(store) as client:
        async with Traffic(client.http).run_calls() as traffic:
            await traffic.goes_well()
            for _ in range(3):
                await pages(store)
                await traffic.is_refused()
                await pages(store, 10**6)
                await traffic.goes_well()
        await traffic.check(store)


async def test_two_who_failed_together_had_one_error(tmp_path: Path) -> None:
    # Each is told the id of its own run on it.
    store = SqliteStateStore(tmp_path / "frontdesk.db")
    await store.open()
    await pages(store)

    async def write(number: int) -> None:
        async with store.transaction() as transaction:
            transaction.save_run(run(f"run_{number}", input=build_messages(LARGE)))

    errors = await asyncio.gather(*(write(number) for number in range(8)), return_exceptions=True)
    assert [type(error) for error in errors] == [StoreUnavailableError] * 8
    assert len({id(error) for error in errors}) == 8
    await store.close()


SCRIPT = """
import sys
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import echo

port, root = sys.argv[1:]
host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], state_dir=root)
host.serve(port=int(port), log_level="critical")
"""


@asynccontextmanager
async def process(root: Path) -> AsyncIterator[tuple[int, httpx.AsyncClient]]:
    """A host in a process of its own."""
    port = free_port()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, str(port), str(root), cwd=ROOT, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            await until(lambda: is_ready(client))
            yield child.pid, client
    finally:
        child.kill()
        await child.wait()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="this system sets no limits for other processes")
async def test_files_that_may_not_grow_are_refused_until_they_may(tmp_path: Path) -> None:
    async with process(tmp_path) as (pid, client):
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        async with Traffic(client).run_calls() as traffic:
            await traffic.goes_well()
            largest = max(entry.stat().st_size for entry in os.scandir(tmp_path))
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, most))
            await traffic.is_refused()
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
            await traffic.goes_well()
    store = SqliteStateStore(tmp_path / "frontdesk.db")
    await store.open()
    await traffic.check(store)
    await store.close()
