"""A process that watches a run and ends itself at a commit: DIRECTORY PORT POINT PASSES."""

import asyncio
import sys
from pathlib import Path

from frontdesk import WatcherOptions
from frontdesk.models.watcher import RunWatcher
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.crash import CrashPlan, _watch_commits
from tests.scenarios.desk import until
from tests.scenarios.test_cancel import Slow
from tests.test_pipeline import caller, in_session, open_context


def watcher_options(port: int) -> WatcherOptions:
    return WatcherOptions(allowed_hosts=[f"127.0.0.1:{port}"], allow_http=True)


async def main(directory: str, port: int, point: str, passes: int) -> None:
    store, slow = SqliteStateStore(Path(directory) / "state.db"), Slow()
    async with open_context(slow.whole, store=store, watchers=watcher_options(port)) as (context, _):
        await store._sweep.stop()
        _watch_commits(store._engine, CrashPlan(point, passes))  # type: ignore[arg-type]
        run = await context.submit(in_session("s", "one"), caller())
        print("run", run.run_id, flush=True)
        await slow.began.wait()
        await context.runs.watch(caller(), run.run_id, RunWatcher(url=f"http://127.0.0.1:{port}/hook"))
        print("watched", run.run_id, flush=True)
        slow.go_on.set()
        await until(lambda: (Path(directory) / "notified").exists())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
