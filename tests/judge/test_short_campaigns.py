"""Short campaigns, with one process and with several; `make judge` runs those of all layouts, and long ones."""

import asyncio
import os
import sys

import pytest

from tests.judge.run import LAYOUTS, ROLLING, Plan, campaign
from tests.judge.site import ROOT


@pytest.mark.timeout(300)
@pytest.mark.parametrize("layout", LAYOUTS if "JUDGE_CASES" in os.environ else ("sqlite", "procrastinate"))
async def test_nothing_that_was_acknowledged_is_lost(layout: str) -> None:
    report = await campaign(Plan(layout, seed=7, operations=150, seconds=10.0, gap=25))
    print(report)
    assert report.court.ledger.acknowledged, "nothing was acknowledged, so that nothing was judged"
    assert sum(report.court.faults.values()), "there was no fault"
    assert not report.verdicts, str(report)


@pytest.mark.timeout(300)
@pytest.mark.skipif("JUDGE_CASES" not in os.environ, reason="a part of make judge")
async def test_a_rolling_update_loses_nothing() -> None:
    """The earlier version is this commit too, so that every checkout with its history can run it."""
    faults = ("kill", "stop")
    report = await campaign(Plan(ROLLING, seed=8, operations=150, seconds=20.0, gap=15, faults=faults, against="HEAD"))
    print(report)
    assert sum(report.court.faults.values()), "no process was replaced"
    assert not report.verdicts, str(report)


async def test_campaigns_run_from_the_command_line() -> None:
    """Each runs in a new process, which could not find a function of `__main__`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.judge", "--layout", "sqlite", "--operations", "1", "--seconds", "1"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    assert " faults, 0 promises broken, in " in printed.decode()
