"""A host is killed around the commits of a click: what it shows is what was decided, once, and never before."""

import signal
import sqlite3
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from frontdesk_testing.messages import MessagePlatform
from tests.cards import outcome_in
from tests.faults.inbox.processes import Desks
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform

DECISION = 4
"""The commit of the decision; before it the click is accepted and claimed, and the start of its run is written."""


def _read(root: Path, column: str) -> list[str]:
    """Return what is on the disk."""
    (place,) = root.glob("*.db")
    with sqlite3.connect(place) as connection:
        return [str(value) for (value,) in connection.execute(f"SELECT {column}")]


def _status(root: Path) -> str:
    """Return how the question was decided."""
    (status,) = _read(root, "status FROM approvals")
    return status


def _list_shown(platform: MessagePlatform) -> list[str]:
    """Return the texts of the pop-ups."""
    return [entry.text for entry in platform.log_on_disk() if entry.method == "answer"]


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("passes", range(1, DECISION + 1))
async def test_a_kill_around_each_commit_up_to_the_decision(passes: int, point: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", pays=True) as desks:
            host = await desks.host()
            await platform.say(ann, "pay")
            (question,) = await platform.wait_for_answers(ann.chat_id)
            # Its place is written a moment after it is shown.
            await until(lambda: bool(_read(tmp_path / "state", "handle FROM approval_places")))
            await host.arm(point, passes)
            await platform.click(ann, question, "Approve")
            assert await host.wait_for_end() == -signal.SIGKILL
            is_decided = (passes, point) == (DECISION, "after_commit")
            assert (_status(tmp_path / "state"), _list_shown(platform)) == ("approved" if is_decided else "pending", [])
            await desks.host()
            assert (await platform.wait_for_answers(ann.chat_id, 2))[1].text == "done"
            await platform.until(lambda: _is_settled(platform, ann.chat_id))
            assert [*map(outcome_in, _list_shown(platform))] == ["pay: approved by “Ann”"]
            assert (tmp_path / "paid").read_text().split() == ["5"]


def _read_kept(postgres: str, column: LiteralString) -> list[str]:
    """Return what another host finds."""
    with psycopg.connect(postgres) as connection:
        return [str(value) for (value,) in connection.execute(f"SELECT {column}").fetchall()]


# How many commits come before a decision is not certain here: leases are renewed in between.
@pytest.mark.parametrize("point", ["after_commit", "before_decision", "after_decision"])
async def test_another_host_takes_a_click_over(point: str, postgres: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", pays=True, lease=1.0) as desks:
            host = await desks.host()
            await platform.say(ann, "pay")
            (question,) = await platform.wait_for_answers(ann.chat_id)
            await until(lambda: bool(_read_kept(postgres, "handle FROM approval_places")))
            await host.arm(point, 1)
            await platform.click(ann, question, "Approve")
            assert await host.wait_for_end() == -signal.SIGKILL
            status = "approved" if point == "after_decision" else "pending"
            assert (_read_kept(postgres, "status FROM approvals"), _list_shown(platform)) == ([status], [])
            await desks.host()
            assert (await platform.wait_for_answers(ann.chat_id, 2))[1].text == "done"
            await platform.until(lambda: _is_settled(platform, ann.chat_id))
            assert [*map(outcome_in, _list_shown(platform))] == ["pay: approved by “Ann”"]
            assert (tmp_path / "paid").read_text().split() == ["5"]


async def _is_settled(platform: MessagePlatform, chat_id: str) -> bool:
    question, *_ = await platform.answers(chat_id)
    return bool(_list_shown(platform)) and not question.buttons
