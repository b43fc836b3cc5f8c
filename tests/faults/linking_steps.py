"""A process that links and unlinks people, step by step, and ends itself at a commit: PLACE SEED POINT PASSES."""

import asyncio
import sys
from pathlib import Path
from random import Random

from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing.crash import CrashPlan, _watch_commits
from tests.access.linking import NAMES, Model, Step, desk, play, play_for_real

STEPS = 12


def store_at(place: str) -> SqlStateStore:
    """The store of the process, and of its judge."""
    return SqliteStateStore(Path(place)) if place.endswith(".db") else PostgresStateStore(place)


def steps(seed: int) -> list[Step]:
    """What is done: only what changes something, so that each step is one commit."""
    chance, model, found = Random(seed), Model(), list[Step]()
    while len(found) < STEPS:
        name, other = chance.sample(NAMES, 2)
        step = ("link", name, other) if chance.random() < 0.6 else ("unlink", name, "")
        before = dict(model.key), set(model.lines)
        play(model, step)
        if (model.key, model.lines) != before:
            found.append(step)
    return found


async def main(place: str, seed: str, point: str, passes: str) -> None:
    """Does the steps, and says so after each."""
    store = store_at(place)
    await store.open()
    await store._sweep.stop()
    _watch_commits(store._engine, CrashPlan(point, int(passes)))  # type: ignore[arg-type]
    links = desk(store)
    for step in steps(int(seed)):
        await play_for_real(links, step)
        print("done", flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
