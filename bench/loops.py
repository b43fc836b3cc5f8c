"""`python -m bench.loops`: the bare app on several event loops, to choose and pin one by measuring.

Each interpreter named with --python brings its own uvloop; plain asyncio is measured with this one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from bench.arena import Arena
from bench.figures import Row
from bench.machine import choose_cores, facts, pin, run_loop
from bench.measures import MEASURES
from bench.plan import FULL, QUICK
from bench.report import facts_text, table_text
from bench.states import States
from bench.subjects.bare import Bare

ASK_VERSION = "from importlib.metadata import version; print(version('uvloop'))"


def uvloop_version(python: str) -> str:
    return subprocess.check_output([python, "-c", ASK_VERSION], text=True).strip()


async def run(pythons: list[str], only: list[str], *, quick: bool) -> None:
    cores = choose_cores()
    print(facts_text(facts(cores)))
    pin(cores.generator)
    arena = Arena(QUICK if quick else FULL, cores, States(cores))
    plain = Bare()
    plain.loop = "asyncio"
    arena.join(plain, label="asyncio")
    for python in pythons:
        subject = Bare()
        subject.python, subject.loop = python, "uvloop"
        arena.join(subject, label=f"uvloop {uvloop_version(python)}")
    rows: list[Row] = []
    try:
        for key in only:
            rows += await MEASURES[key](arena)
    finally:
        arena.stop()
    print(f"\n{table_text(rows, [contestant.label for contestant in arena.contestants])}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.loops", description=__doc__)
    parser.add_argument("--python", action="append", default=[], help="an interpreter with a uvloop; may be repeated")
    parser.add_argument("--only", default="json,stream,paced")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    run_loop(run(args.python or [sys.executable], args.only.split(","), quick=args.quick))


if __name__ == "__main__":
    main()
