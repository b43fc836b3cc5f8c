"""The marathon of approvals, shortened: no tool without its yes, none twice, no yes lost."""

from pathlib import Path
from random import Random

from tests.approvals_marathon import run


async def test_no_yes_is_lost_and_nothing_runs_without_one(postgres: str, tmp_path: Path) -> None:
    tally = await run(tmp_path, postgres, 10, 2, Random(7))
    assert (tally.kills, tally.is_clean) == (2, True), tally
    assert tally.approved + tally.rejected > 0
