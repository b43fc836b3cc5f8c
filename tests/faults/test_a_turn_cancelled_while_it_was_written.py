"""A turn was cancelled while its result was written, and was recorded twice: as completed and as cancelled."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.sessions.active import ActiveRun
from frontdesk.sessions.leases import LeaseKeeper
from frontdesk_testing import serving
from frontdesk_testing.internals import active_runs, get_components
from tests.faults.test_hang_ups_during_a_commit import Gate, heard
from tests.scenarios.desk import until
from tests.scenarios.test_cancel import MINE

GRACE = 0.05


@asynccontextmanager
async def _open_gated(directory: Path) -> AsyncIterator[tuple[AgentFrameworkHost, Any, Gate]]:
    channels = [InvocationsChannel()]
    host = AgentFrameworkHost(heard, channels=channels, state_dir=directory, cancel_grace_seconds=GRACE)
    async with serving(host) as client:
        gate = Gate(host)
        gate.open()
        try:
            yield host, client.http, gate
        finally:
            gate.open()


async def _ask(http: Any, message: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    return (await http.post("/invocations", json={"message": message, "session_id": "s"}, headers=headers)).json()


async def _wait_for_write(host: AgentFrameworkHost, gate: Gate) -> ActiveRun:
    """The run whose end is being written, which takes its time."""
    await until(lambda: any(not one.cancellable for one in active_runs(host)))
    assert await asyncio.to_thread(gate.reached.wait, 30)
    (run,) = active_runs(host)
    return run


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("rounds", [1, 3])
async def test_a_result_that_was_being_written_was_recorded_again_as_cancelled(
    chosen: bool, rounds: int, tmp_path: Path
) -> None:
    async with _open_gated(tmp_path) as (host, http, gate):
        await _ask(http, "zero")
        parts = get_components(host)
        ended, overdue = parts.recorder.record_end, threading.Semaphore(0)

        async def watched(*given: Any) -> Any:
            overdue.release()
            return await ended(*given)

        parts.recorder.record_end = watched  # type: ignore[method-assign]
        gate.close()
        asking = asyncio.create_task(_ask(http, "x", MINE if chosen else None))
        run = await _wait_for_write(host, gate)
        cancelling = [asyncio.create_task(parts.active.cancel(run)) for _ in range(rounds)]
        for _ in cancelling:
            await until(lambda: overdue.acquire(blocking=False))
        gate.open()
        told = await asking
        await asyncio.gather(*cancelling)
        assert (await http.get(f"/invocations/{told['id']}")).json()["status"] == told["status"]
        assert (await _ask(http, "y"))["text"] == "zero x y"
        assert (await _ask(http, "z"))["text"] == "zero x y z"


async def test_a_turn_that_could_not_keep_its_session_was_cancelled_in_every_round(tmp_path: Path) -> None:
    async with _open_gated(tmp_path) as (host, http, gate):
        await _ask(http, "zero")
        parts = get_components(host)
        keeper = LeaseKeeper(parts.store, parts.turns, parts.active)
        gate.close()
        asking = asyncio.create_task(_ask(http, "x"))
        run = await _wait_for_write(host, gate)
        for _ in range(3):
            keeper._give_up(run.turn)
            await until(lambda: run.ended is not None)
        assert len(keeper._cancelling) == 1
        gate.open()
        assert (await asking)["text"] == "zero x"
        await keeper.stop()
        await asyncio.gather(*keeper._cancelling)
        assert (await _ask(http, "y"))["text"] == "zero x y"
