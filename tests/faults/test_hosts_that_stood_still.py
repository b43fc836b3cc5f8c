"""A host that stood still for longer than its leases, while another ended its run."""

import asyncio
from typing import Any

import psycopg
import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.postgres import PostgresStateStore
from frontdesk.testing import serving
from tests.scenarios.desk import until

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
