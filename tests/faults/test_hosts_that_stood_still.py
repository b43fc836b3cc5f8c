"""A host that stood still for longer than its leases, while another ended its run."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontdesk import AgentFrameworkHost, RetryPolicy
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.runners.base import Registered, StoredTasks
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import FakeClock, serving
from tests.faults.inbox.desk import wait_for_answers
from tests.faults.inbox.processes import Desks
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform

LEASE = 600.0
"""So long that a host does not find out by itself, during a test, that a lease is no longer its own."""


class Worker:
    """Does not come to an end before it is told to."""

    def __init__(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()

    async def work(self, text: str) -> str:
        self.began.set()
        await self.go_on.wait()
        return "done"


def _host(postgres: str, worker: Worker) -> AgentFrameworkHost:
    store = PostgresStateStore(postgres, lease_seconds=LEASE)
    return AgentFrameworkHost(
        worker.work,
        channels=[InvocationsChannel()],
        store=store,
        shutdown_grace_seconds=0.1,
        cancel_grace_seconds=0.1,
        # Whoever works on one takes up no other, and so not its own a second time.
        max_background_runs=1,
    )


def _let_leases_end(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("UPDATE background SET until = 0")
        connection.execute("UPDATE leases SET until = 0")


class _Tasks(StoredTasks):
    """The stored tasks of a host, with one task that counts its calls."""

    def __init__(self, store: PostgresStateStore, clock: FakeClock) -> None:
        self.calls = 0
        known = Registered(task=self._call, retry=RetryPolicy(), waiting=None, most=1)
        super().__init__(store, clock, {"note": known})
        self.holder = f"host {id(self)}"

    async def _call(self, payload: Any) -> None:
        self.calls += 1


@pytest.mark.parametrize("taken", [False, True])
async def test_a_host_that_stood_still_did_a_task_that_another_had_done(
    postgres: str, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, store = FakeClock(), PostgresStateStore(postgres)
    await store.open()
    try:
        here, there = _Tasks(store, clock), _Tasks(store, clock)
        await here.keep("note", {}, "task", None)
        plain = store.tasks.claim

        async def claim(*given: Any, **more: Any) -> Any:
            found = await plain(*given, **more)
            monkeypatch.setattr(store.tasks, "claim", plain)
            with psycopg.connect(postgres, autocommit=True) as connection:
                connection.execute("UPDATE tasks SET until = 0")
            if taken:
                await there.do("task")
            clock.advance(60.0)
            return found

        monkeypatch.setattr(store.tasks, "claim", claim)
        await here.do("task")
        assert (here.calls, there.calls) == ((0, 1) if taken else (1, 0))
        assert await store.tasks.get("task") is not None
    finally:
        await store.close()


async def _status(client: Any, run_id: str) -> str:
    answer = (await client.http.get(f"/invocations/{run_id}")).json()
    return answer["status"]


@pytest.mark.parametrize("ended", [False, True])
async def test_a_host_that_stood_still_said_that_a_run_goes_on_which_another_had_ended(
    postgres: str, ended: bool
) -> None:
    worker = Worker()
    async with (
        serving(_host(postgres, worker), raise_errors=False) as here,
        serving(_host(postgres, Worker()), raise_errors=False) as there,
    ):
        run_id = (await here.invoke("work", background=True))["id"]
        await worker.began.wait()
        assert await _status(here, run_id) == "running"
        if ended:
            _let_leases_end(postgres)

            async def failed() -> bool:
                return await _status(there, run_id) == "failed"

            await until(failed)
        assert await _status(here, run_id) == ("failed" if ended else "running")
        worker.go_on.set()

        async def at_rest() -> bool:
            return await _status(here, run_id) not in ("queued", "running")

        await until(at_rest)
        assert await _status(here, run_id) == await _status(there, run_id) == ("failed" if ended else "completed")


@pytest.mark.parametrize("stops", ["claim", "session"])
async def test_a_host_that_stood_still_ran_the_target_for_an_event_that_another_had_answered(
    postgres: str, tmp_path: Path, stops: str
) -> None:
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("postgres", postgres, platform, tmp_path / "ledger", lease=1.0, stops=stops) as desks,
    ):
        ann = await platform.user("Ann")
        first = await desks.host()
        await platform.say(ann, "once")
        await until((tmp_path / "stopped").exists)
        await desks.host()
        assert await wait_for_answers(platform, ann, 1) == ["heard once"]
        first.signal(signal.SIGCONT)
        first.signal(signal.SIGTERM)
        # It ends what it has taken up.
        await first.wait_for_end()
        assert desks.list_asked() == ["once"]
        assert await wait_for_answers(platform, ann, 1) == ["heard once"]


async def test_a_host_that_stood_still_sent_a_message_that_another_had_sent(postgres: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"stops": "delivery", "lookup": True, "idempotent": False}
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("postgres", postgres, platform, tmp_path / "ledger", lease=1.0, **settings) as desks,
    ):
        await platform.set(dedupe=False)
        ann = await platform.user("Ann")
        first = await desks.host()
        await platform.say(ann, "once")
        await until((tmp_path / "stopped").exists)
        await desks.host()
        assert await wait_for_answers(platform, ann, 1) == ["heard once"]
        first.signal(signal.SIGCONT)
        first.signal(signal.SIGTERM)
        await first.wait_for_end()
        assert await wait_for_answers(platform, ann, 1) == ["heard once"]
