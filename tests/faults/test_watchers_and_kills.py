"""A process is killed around each commit between the first watcher of a run and its notification."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.faults.watcher_steps import watcher_options
from tests.runs.test_watchers import Receiver, open_receiver
from tests.scenarios.desk import until
from tests.scenarios.test_cancel import Slow
from tests.test_pipeline import caller, open_context

ROOT = Path(__file__).parents[2]
MAX_COMMITS = 20


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
async def test_an_accepted_watcher_is_notified_whenever_the_process_is_killed(point: str, tmp_path: Path) -> None:
    watched = kills = 0
    for number in range(1, MAX_COMMITS):
        directory = tmp_path / str(number)
        directory.mkdir()
        async with open_receiver() as receiver:
            lines, code = await _watch_until_killed(directory, receiver, point, number)
            assert code in (0, -signal.SIGKILL), lines
            kills += code != 0
            if "watched" in lines:
                watched += 1
                await _settle(directory, receiver, lines["run"])
        if code == 0:
            break
    else:
        pytest.fail("the process never ended by itself")
    # Each commit was tried, and most of them come after the acknowledgement of the watcher.
    assert kills >= 5
    assert watched >= 3


async def _watch_until_killed(
    directory: Path, receiver: Receiver, point: str, passes: int
) -> tuple[dict[str, str], int | None]:
    """Run the process until it ends. Return what it printed and its exit code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.watcher_steps", str(directory), str(receiver.port), point, str(passes)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    notified = asyncio.create_task(until(lambda: receiver.received))
    notified.add_done_callback(lambda task: None if task.cancelled() else (directory / "notified").touch())
    printed, _ = await process.communicate()
    notified.cancel()
    await asyncio.gather(notified, return_exceptions=True)
    return dict(line.split() for line in printed.decode().splitlines()), process.returncode


async def _settle(directory: Path, receiver: Receiver, run_id: str) -> None:
    """Start a host on the state that the process left. Its run ends, and the receiver learns of the end, by one id."""
    slow, store = Slow(), SqliteStateStore(directory / "state.db")
    slow.go_on.set()
    async with open_context(slow.whole, store=store, watchers=watcher_options(receiver.port)) as (context, _):
        await until(lambda: receiver.received)
        run = await context.runs.get(caller(), run_id)
        assert set(receiver.events) == {(run_id, run.status)}
        assert len({headers["Idempotency-Key"] for headers, _ in receiver.received}) == 1
        assert len(receiver.received) <= 2
