"""Short campaigns, with one process and with several; `make judge` runs those of all layouts, and long ones."""

import os

import pytest

from tests.judge.run import LAYOUTS, Plan, campaign


@pytest.mark.timeout(300)
@pytest.mark.parametrize("layout", LAYOUTS if "JUDGE_CASES" in os.environ else ("sqlite", "procrastinate"))
async def test_nothing_that_was_acknowledged_is_lost(layout: str) -> None:
    report = await campaign(Plan(layout, seed=7, operations=150, seconds=10.0, gap=25))
    print(report)
    assert report.court.ledger.acknowledged, "nothing was acknowledged, so that nothing was judged"
    assert sum(report.court.faults.values()), "there was no fault"
    assert not report.verdicts, str(report)
