"""Hosts and workers are killed while they deliver over a platform that fails; `make marathon` does it for longer."""

from pathlib import Path
from random import Random

from tests.faults.inbox.deliveries import Plan, Tally, run
from tests.faults.inbox.processes import Desks
from tests.testing.messages.starting import fork_platform


def _all_is_well(tally: Tally, plan: Plan) -> None:
    assert tally.wrong == 0, tally
    assert tally.kills == plan.kills, tally
    assert tally.accepted + tally.unknown >= plan.deliveries, tally


async def test_a_host_on_sqlite_loses_and_repeats_nothing(tmp_path: Path) -> None:
    plan = Plan(deliveries=120, destinations=10, kills=3)
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks,
    ):
        tally = await run(platform, desks, plan, Random(1))
    _all_is_well(tally, plan)
    assert (tally.accepted, tally.repeated, tally.unknown) == (120, 0, 0)


async def test_what_may_have_arrived_is_said_to_be_unknown_where_nobody_knows_keys(tmp_path: Path) -> None:
    plan = Plan(deliveries=120, destinations=10, kills=3, dedupes=False)
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", idempotent=False) as desks,
    ):
        tally = await run(platform, desks, plan, Random(2))
    _all_is_well(tally, plan)


async def test_two_hosts_and_two_workers_on_postgres_lose_and_repeat_nothing(postgres: str, tmp_path: Path) -> None:
    plan = Plan(deliveries=120, destinations=10, kills=3, hosts=2, workers=2)
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("postgres", postgres, platform, tmp_path / "ledger") as desks,
    ):
        tally = await run(platform, desks, plan, Random(3))
    _all_is_well(tally, plan)
    assert (tally.accepted, tally.repeated, tally.unknown) == (120, 0, 0)


async def test_live_answers_are_whole_in_the_end_and_there_once(tmp_path: Path) -> None:
    plan = Plan(deliveries=60, destinations=6, kills=3, live=True)
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", live=True, pause=0.02) as desks,
    ):
        tally = await run(platform, desks, plan, Random(4))
    _all_is_well(tally, plan)
    assert tally.accepted == 60
    assert tally.shown


async def test_live_answers_of_two_hosts_are_whole_in_the_end_and_there_once(postgres: str, tmp_path: Path) -> None:
    plan = Plan(deliveries=60, destinations=6, kills=3, hosts=2, workers=1, live=True)
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("postgres", postgres, platform, tmp_path / "ledger", live=True, pause=0.02) as desks,
    ):
        tally = await run(platform, desks, plan, Random(5))
    _all_is_well(tally, plan)
    assert tally.accepted == 60
    assert tally.shown
