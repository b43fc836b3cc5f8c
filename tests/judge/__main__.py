"""`python -m tests.judge`: campaigns over all layouts, until so many operations are done.

Each round judges each layout once: SQLite, Postgres 16, Postgres 18, Postgres with Procrastinate, and state that moves
between them. `--layout rolling --against COMMIT` is Postgres with processes of that commit and of this one: a rolling
update to and fro. Each round has the next seed. What a campaign takes is the sum of its waits far more than of its
work, so that several can run at once: `--parallel 2` on two cores.

A series of 100,000 operations and 500 faults or more on two cores:
`python -m tests.judge --rounds 4 --operations 6000 --seconds 600 --gap 60 --parallel 3`.
"""

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.judge.run import LAYOUTS, ROLLING, Plan, run_plan


def main() -> int:
    """Run the campaigns; the exit code is 1 if a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed; each round has the next")
    parser.add_argument(
        "--layout", choices=(*LAYOUTS, ROLLING), action="append", help="all but `rolling`, if not given"
    )
    parser.add_argument("--operations", type=int, default=5000, help="how many a campaign does")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long a campaign takes at most")
    parser.add_argument(
        "--gap", type=int, default=40, help="how many operations there are at least from one fault to the next"
    )
    parser.add_argument("--rounds", type=int, default=1, help="how often each layout is judged")
    parser.add_argument("--parallel", type=int, default=1, help="how many campaigns run at once")
    parser.add_argument("--fault", action="append", default=[], help="only faults of this name")
    parser.add_argument("--actor", action="append", default=[], help="only actors of this name")
    parser.add_argument("--against", default="HEAD~1", help="the earlier commit of the layout `rolling`")
    given = parser.parse_args()
    plans = [
        Plan(
            layout,
            given.seed + number,
            given.operations,
            given.seconds,
            given.gap,
            given.fault,
            given.actor,
            given.against,
        )
        for number in range(given.rounds)
        for layout in given.layout or LAYOUTS
    ]
    began = time.monotonic()
    operations = faults = broken = 0
    with ProcessPoolExecutor(given.parallel, mp_context=multiprocessing.get_context("spawn")) as processes:
        for result in processes.map(run_plan, plans):
            print(result.report, flush=True)
            operations += result.operations
            faults += result.faults
            broken += result.broken
    took = (time.monotonic() - began) / 60
    print(f"{operations} operations, {faults} faults, {broken} promises broken, in {took:.1f} minutes")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
