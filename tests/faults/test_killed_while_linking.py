"""A process is killed while it links and unlinks people: each change is there whole, or not at all."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.access.linking import Model, introduce, keys, play
from tests.access.test_links import assert_whole
from tests.faults.linking_steps import STEPS, steps, store_at


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_process_that_is_killed_while_it_links_leaves_nothing_half(
    kind: str, point: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for seed, passes in ((1, 3), (2, STEPS)):
        place = str(tmp_path / f"{seed}.db")
        if kind == "postgres":
            with request.getfixturevalue("postgres_of_this_process").database() as database:
                await kill_at(database, seed, point, passes)
        else:
            await kill_at(place, seed, point, passes)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.faults.linking_steps", *arguments]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=50, check=False)


async def kill_at(place: str, seed: int, point: str, passes: int) -> None:
    store = store_at(place)
    await store.open()
    await introduce(store)
    await store.close()
    ended = run(place, str(seed), point, str(passes))
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    done = ended.stdout.count("done")
    assert done == passes - 1
    model = Model()
    for step in steps(seed)[: done + (point == "after_commit")]:
        play(model, step)
    store = store_at(place)
    await store.open()
    try:
        assert await keys(store) == model.key
        await assert_whole(store)
    finally:
        await store.close()
