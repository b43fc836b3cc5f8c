"""`python -m bench.profile`: where the processor time of a request goes, file by file, without server and socket.

A request is one call of the host's ASGI app in this process, 64 at once. The shares are those of a profiler. Time of
built-in functions counts for their callers. The microseconds are these shares of the time without a profiler.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import os
import pstats
import tempfile
import time
from collections import defaultdict
from statistics import median
from typing import Any

from bench import hosts
from bench.subjects.base import Case
from bench.subjects.responses import subject

ROUNDS, REQUESTS, AT_ONCE = 7, 640, 64
PACKAGE = f"{os.sep}frontdesk{os.sep}"
CASES: dict[str, tuple[str, Case, bool]] = {
    "json-memory": ("stub", "json", False),
    "json-sqlite": ("stub", "json", True),
    "sse": ("stub", "fresh", False),
    "json-agent": ("agent", "json", False),
}
"""The row of `bench.table`: its target, what is asked, whether the state is in SQLite."""


async def ask(app: Any, path: str, body: bytes) -> int:
    """Call the app once. Return the number of messages of its answer."""
    headers = [
        (b"host", b"127.0.0.1:8000"),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    scope = {
        **{"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST"},
        **{"scheme": "http", "root_path": "", "path": path, "raw_path": path.encode(), "query_string": b""},
        **{"server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 50_000), "headers": headers, "state": {}},
    }
    answers = list[Any]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        answers.append(message)

    await app(scope, receive, send)
    if answers[0]["status"] != 200:
        raise RuntimeError(f"the host answered {answers}")
    return len(answers)


async def ask_all(app: Any, path: str, body: bytes) -> None:
    """Make all requests, as many at once as the rows of the table have connections."""
    for _ in range(REQUESTS // AT_ONCE):
        await asyncio.gather(*(ask(app, path, body) for _ in range(AT_ONCE)))


def name_file(path: str) -> str:
    """Return the name of a file without the directories above its package."""
    for mark in (PACKAGE, f"{os.sep}agent_framework{os.sep}", f"{os.sep}starlette{os.sep}", f"{os.sep}asyncio{os.sep}"):
        if mark in path:
            return (mark.strip(os.sep) + os.sep if mark != PACKAGE else "") + path.rpartition(mark)[2]
    return "bench" if f"{os.sep}bench{os.sep}" in path else "other"


def add_up(profile: cProfile.Profile) -> dict[str, tuple[float, float]]:
    """Return calls and seconds of each file. Built-in functions count where they are called."""
    files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    stats: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for (path, _, _), (_, calls, seconds, _, callers) in stats.items():
        if path == "~" or path.startswith("<"):
            for (caller, _, _), (_, _, its_seconds, _) in callers.items():
                files[name_file(caller)][1] += its_seconds
        else:
            files[name_file(path)][0] += calls
            files[name_file(path)][1] += seconds
    return {name: (calls, seconds) for name, (calls, seconds) in files.items()}


async def measure(case: str) -> tuple[float, float, dict[str, tuple[float, float]]]:
    """Return the microseconds of a request in this thread and in others, and what the profiler saw."""
    target, asked, sqlite = CASES[case]
    with tempfile.TemporaryDirectory(prefix="profile-") as state:
        os.environ[hosts.TARGET], os.environ[hosts.STATE] = target, state if sqlite else ""
        app, (path, body) = hosts.responses().app, subject.request(asked)
        async with app.router.lifespan_context(app):
            await ask_all(app, path, body)
            gc.collect()
            gc.disable()
            own, others = list[float](), list[float]()
            for _ in range(ROUNDS):
                thread, process = time.thread_time(), time.process_time()
                await ask_all(app, path, body)
                own.append((time.thread_time() - thread) / REQUESTS * 1e6)
                others.append((time.process_time() - process) / REQUESTS * 1e6 - own[-1])
            profile = cProfile.Profile(time.thread_time)
            profile.enable()
            await ask_all(app, path, body)
            profile.disable()
            gc.enable()
    return median(own), median(others), add_up(profile)


def table_text(case: str, own: float, others: float, files: dict[str, tuple[float, float]], least: float) -> str:
    """Return the table of a case: calls, microseconds and share of each file, the rest in one line."""
    total = sum(seconds for _, seconds in files.values())
    lines = [f"{case}: {own:.1f} us in the thread of the event loop, {others:.1f} us in other threads", ""]
    lines += ["| file | calls | us | share |", "| --- | --- | --- | --- |"]
    rest = 0.0
    for name, (calls, seconds) in sorted(files.items(), key=lambda one: -one[1][1]):
        share = seconds / total
        if share < least:
            rest += share
            continue
        lines.append(f"| `{name}` | {calls / REQUESTS:.1f} | {share * own:.1f} | {share:.1%} |")
    lines.append(f"| all others | | {rest * own:.1f} | {rest:.1%} |")
    calls = sum(count for name, (count, _) in files.items() if name not in ("bench", "other"))
    return "\n".join([*lines, "", f"{calls / REQUESTS:.0f} Python calls a request", ""])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=f"some of {', '.join(CASES)}")
    parser.add_argument("--least", type=float, default=0.015, help="the share below which files are one line")
    given = parser.parse_args()
    for case in given.cases:
        print(table_text(case, *asyncio.run(measure(case)), given.least))


if __name__ == "__main__":
    main()
