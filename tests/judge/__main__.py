"""`python -m tests.judge`: campaigns over all layouts, until so many operations are done."""

import argparse
import asyncio
import sys

from tests.judge.run import LAYOUTS, Plan, Report, campaign


def main() -> int:
    """Run the campaigns; the exit code is 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed; each campaign has the next")
    parser.add_argument("--layout", choices=LAYOUTS, action="append", help="all of them, if not given")
    parser.add_argument("--operations", type=int, default=5000, help="how many a campaign does")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long a campaign takes at most")
    parser.add_argument("--gap", type=int, default=40, help="how many operations there are between two faults")
    parser.add_argument("--rounds", type=int, default=1, help="how often each layout is judged")
    parser.add_argument("--fault", action="append", default=[], help="only faults of this name")
    parser.add_argument("--actor", action="append", default=[], help="only actors of this name")
    given = parser.parse_args()
    plans = [
        Plan(layout, given.seed + number, given.operations, given.seconds, given.gap, given.fault, given.actor)
        for number in range(given.rounds)
        for layout in given.layout or LAYOUTS
    ]
    reports = [_run(plan) for plan in plans]
    operations = sum(one.court.operations for one in reports)
    faults = sum(sum(one.court.faults.values()) for one in reports)
    broken = sum(len(one.verdicts) for one in reports)
    print(f"{operations} operations, {faults} faults, {broken} promises broken")
    return 1 if broken else 0


def _run(plan: Plan) -> Report:
    report = asyncio.run(campaign(plan))
    print(report, flush=True)
    return report


if __name__ == "__main__":
    sys.exit(main())
