"""Hosts in processes of their own are killed under load, at every named point; `make marathon` does it for longer."""

from pathlib import Path
from random import Random

import pytest

from frontdesk import AgentFrameworkHost, InMemoryStateStore
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing import CRASH_POINTS, CrashPlan, EchoAgent, crashing
from tests.faults.crash.books import Book, Question, Said, Tally, judge_payments
from tests.faults.crash.clients import CutOffError, Named
from tests.faults.crash.processes import HostProcesses
from tests.faults.crash.rounds import AT_RANDOM, MOMENTS, one_host, two_hosts

PLAN = [(moment, 9 + 5 * number) for number, moment in enumerate(MOMENTS)]


def _all_is_well(tally: Tally, kills: int) -> None:
    assert tally.wrong == 0, tally
    assert tally.kills == kills
    assert tally.acknowledged > kills, tally
    assert tally.unknown > 0, tally


async def test_a_host_on_sqlite_is_killed_at_every_point(tmp_path: Path) -> None:
    async with HostProcesses("sqlite", str(tmp_path / "state"), tmp_path / "ledger") as house:
        _all_is_well(await one_host(house, Random(1), PLAN), len(PLAN))


async def test_a_host_on_postgres_is_killed_at_every_point(postgres: str, tmp_path: Path) -> None:
    async with HostProcesses("postgres", postgres, tmp_path / "ledger", lease=1.0) as house:
        _all_is_well(await one_host(house, Random(2), PLAN), len(PLAN))


async def test_one_of_two_hosts_is_killed_and_the_other_goes_on(postgres: str, tmp_path: Path) -> None:
    async with HostProcesses("postgres", postgres, tmp_path / "ledger") as house:
        _all_is_well(await two_hosts(house, Random(3), [("before_commit", 20), (AT_RANDOM, 20)]), 2)


@pytest.mark.parametrize("point", CRASH_POINTS)
async def test_an_answer_leaves_after_its_commit(point: str, tmp_path: Path) -> None:
    async with HostProcesses("sqlite", str(tmp_path / "state"), tmp_path / "ledger") as house:
        host = await house.start()
        client = Named(Book("s"), Tally(), _NeverPays())
        await client.turn(host)
        await host.arm(point, 1)
        with pytest.raises(CutOffError):
            await client.turn(host)
        await host.wait_for_end()
        asked = [text for role, text in await client.recall(await house.start()) if role == "user"]
        assert asked == (["s:1"] if point == "before_commit" else ["s:1", "s:2"])


class _NeverPays(Random):
    def random(self) -> float:
        return 0.9


async def test_a_host_that_forgets_is_noticed(tmp_path: Path) -> None:
    async with HostProcesses("memory", "", tmp_path / "ledger") as house:
        tally = await one_host(house, Random(4), [(AT_RANDOM, 30)])
    assert tally.lost >= 30


GOOD: Said = [("user", "s:1"), ("assistant", "heard s:1"), ("user", "pay s:2"), ("user", "s:4"), ("assistant", "x")]


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (GOOD, {}),
        ([*GOOD[:3], *GOOD[:2]], {"doubled": 1, "disordered": 1}),
        ([GOOD[2], *GOOD[:2]], {"disordered": 1}),
        (GOOD[2:], {"lost": 1}),
        (GOOD[:2], {"lost": 1}),
        ([GOOD[0], *GOOD[2:]], {"lost": 1}),
        ([GOOD[0], GOOD[2], GOOD[1]], {"lost": 1}),
        ([], {"lost": 2}),
    ],
    ids=["good", "doubled", "out of order", "first lost", "last lost", "no answer", "interleaved", "empty"],
)
def test_the_judge_counts_what_is_wrong(said: Said, wrong: dict[str, int]) -> None:
    tally = Tally()
    Book("s", 4, acknowledged=["s:1", "pay s:2"], unknown=["s:3", "s:4"]).judge(said, tally)
    assert tally == Tally(**wrong)


def test_the_judge_of_a_chain_allows_nothing_else() -> None:
    tally = Tally()
    Book("s", 4, acknowledged=["s:1", "pay s:2"]).judge(GOOD, tally, exactly=True)
    assert tally == Tally(doubled=1)


@pytest.mark.parametrize(
    ("state", "payments", "wrong"),
    [
        ("pending", [], {}),
        ("pending", ["s:1"], {"payments_doubled": 1}),
        ("answered", ["s:1"], {}),
        ("answered", [], {"payments_lost": 1}),
        ("answered", ["s:1", "s:1"], {"payments_doubled": 1}),
        ("used", [], {}),
        ("used", ["s:1"], {}),
        ("used", ["s:1", "s:1"], {"payments_doubled": 1}),
    ],
    ids=str,
)
def test_the_judge_counts_payments(state: str, payments: list[str], wrong: dict[str, int]) -> None:
    tally = Tally()
    question = Question("a", "s:1", state)  # pyright: ignore[reportArgumentType]
    judge_payments([Book("s", questions=[question])], payments, tally)
    assert tally == Tally(payments=len(payments), **wrong)


@pytest.mark.parametrize(("point", "passes"), [("after_lunch", 1), ("before_send", 0)])
def test_a_plan_that_would_never_come_is_refused(point: str, passes: int) -> None:
    with pytest.raises(ValueError, match="one of before_commit"):
        CrashPlan(point, passes)  # pyright: ignore[reportArgumentType]


def test_a_store_without_commits_can_t_crash_at_one() -> None:
    host = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], store=InMemoryStateStore())
    with pytest.raises(ValueError, match="InMemoryStateStore has no commits"):
        crashing(host, CrashPlan("before_commit"))
    crashing(host, CrashPlan("before_send"))
