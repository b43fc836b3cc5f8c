"""A process is killed while it stores a request until the link, and while it links: the request is answered once."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from frontdesk.clock import SystemClock
from tests.access.linking import introduce
from tests.access.test_stored_requests import build
from tests.faults.linking_steps import store_at
from tests.faults.stored_request_steps import play

COMMITS = 4
"""Accept the event, refuse it and store its request, link, finish the event of the stored request."""


@pytest.mark.parametrize("commit", range(1, COMMITS + 2))
@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_stored_request_is_answered_once_whenever_the_process_is_killed(
    kind: str, point: str, commit: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if kind == "postgres":
        with request.getfixturevalue("postgres_of_this_process").database() as database:
            await kill_at(database, point, commit)
    else:
        await kill_at(str(tmp_path / "frontdesk.db"), point, commit)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.faults.stored_request_steps", *arguments]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)


async def kill_at(place: str, point: str, commit: int) -> None:
    store = store_at(place)
    await store.open()
    await introduce(store)
    await store.close()
    ended = run(place, point, str(commit))
    # Every commit is tried: after the last one the process ends by itself.
    assert ended.returncode == (0 if commit > COMMITS else -signal.SIGKILL), ended.stderr
    store = store_at(place)
    await store.open()
    try:
        reached = await play(build(store, clock=SystemClock()))
        was_answered = commit > COMMITS or (point, commit) == ("after_commit", COMMITS)
        assert reached == ([] if was_answered else ["after-link:b-None-1"])
        assert await store.inbox.find("chat-b", "after-link:b-None-1") == ("run_1", True)
    finally:
        await store.close()
