"""The time to import the package, and from the start of a process to its first healthy answer."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

from bench.arena import Arena, Contestant
from bench.figures import Row
from bench.machine import pin
from bench.process import ROOT, child_environment


async def measure_imports(arena: Arena) -> list[Row]:
    rows: list[Row] = []
    for key, what in (("import_package", "import of the package"), ("import_app", "import of what an app needs")):
        middle = Row(key, f"{what}, median", "s")
        best = Row(f"{key}-best", f"{what}, best", "s")
        for contestant in arena.contestants:
            if statement := getattr(contestant.subject, key):
                seconds = time_imports(contestant, statement, arena.plan.imports)
                middle.add(contestant.label, *seconds)
                best.add(contestant.label, min(seconds))
        if middle.figures:
            rows += [middle, best]
    return rows


def time_imports(contestant: Contestant, statement: str, count: int) -> list[float]:
    """Without what the interpreter itself takes; the first one, which writes the bytecode, does not count."""
    time_python(contestant, statement)
    seconds: list[float] = []
    for _ in range(count):
        nothing = time_python(contestant, "pass")
        seconds.append(time_python(contestant, statement) - nothing)
    return seconds


def time_python(contestant: Contestant, statement: str) -> float:
    started = perf_counter()
    subprocess.run(
        [contestant.subject.python or sys.executable, "-c", statement],
        check=True,
        cwd=ROOT,
        env=child_environment(),
        preexec_fn=lambda: pin(contestant.core),
    )
    return perf_counter() - started


async def measure_starts(arena: Arena) -> list[Row]:
    row = Row("start", "start of the process to healthy", "s")
    for contestant in arena.rounds(arena.plan.starts):
        async with contestant.fresh_server() as server:
            row.add(contestant.label, server.start_seconds)
    return [row]
