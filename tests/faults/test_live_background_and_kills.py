"""Going out: a host is killed while it shows the answer of a background run. In the end there is one message."""

import asyncio
import signal
from pathlib import Path

import psycopg
import pytest

from frontdesk.delivery.proactive import WORK_GOES_ON
from frontdesk_testing.messages import MessagePlatform, Person
from tests.faults.inbox.processes import DeskProcess, Desks
from tests.faults.test_live_answers_and_kills import (
    WHOLE,
    assert_goes_on,
    assert_said,
    edits_of,
    kill_in_an_edit,
    list_answers,
)
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform

NOTICE = f"{WORK_GOES_ON} /cancel stops it."
AROUND_CALLS = [("before_live", 1), ("after_live", 1), ("before_push", 2), ("after_push", 2)]
"""Around the opening, and around the change that brings the whole answer; the notice is pushed before both."""
KILLS = [*AROUND_CALLS, *(("before_commit", passes) for passes in range(5, 10))]
"""Between them the notice is done, the run starts, its message is opened in two commits, and its end is recorded."""


async def say_until_killed(platform: MessagePlatform, who: Person, host: DeskProcess, go: Path) -> None:
    """Ask, let the answer be completed once it is shown, and wait until the host is dead."""
    await platform.say(who, "hold one")

    async def is_shown() -> bool:
        return len(await list_answers(platform, who)) > 1

    showing = asyncio.ensure_future(platform.until(is_shown))
    dead = asyncio.ensure_future(host.wait_for_end())
    await asyncio.wait({showing, dead}, return_when=asyncio.FIRST_COMPLETED)
    go.touch()  # noqa: ASYNC240 - an empty file
    assert await dead == -signal.SIGKILL
    showing.cancel()


@pytest.mark.parametrize(("point", "passes"), KILLS)
async def test_a_run_that_begins_again_goes_on_in_the_same_message(point: str, passes: int, tmp_path: Path) -> None:
    settings = {"live": True, "on_interrupt": "restart"}
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", **settings) as desks:
            host = await desks.host()
            await host.arm(point, passes)
            await say_until_killed(platform, ann, host, tmp_path / "one.go")
            await desks.host()
            await assert_said(platform, ann, NOTICE, WHOLE)
            await assert_goes_on(platform, ann, NOTICE, WHOLE)


async def test_an_edit_of_a_killed_host_overwrote_the_answer_for_good(tmp_path: Path) -> None:
    settings = {"live": True, "on_interrupt": "restart", "pause": 0.2}
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", **settings) as desks:
            await kill_in_an_edit(platform, ann, await desks.host(), tmp_path / "one.go", WHOLE)
            await desks.host()

            async def is_repeated() -> bool:
                return edits_of(platform).count(WHOLE) == 2

            await platform.until(is_repeated)
            assert edits_of(platform)[-1] == WHOLE
            await assert_said(platform, ann, NOTICE, WHOLE)


async def test_another_host_takes_over(postgres: str, tmp_path: Path) -> None:
    settings = {"live": True, "on_interrupt": "restart", "lease": 1.0}
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", **settings) as desks:
            host = await desks.host()
            await host.arm("after_live", 1)
            await say_until_killed(platform, ann, host, tmp_path / "one.go")
            await desks.host()
            await assert_said(platform, ann, NOTICE, WHOLE)
            await assert_goes_on(platform, ann, NOTICE, WHOLE)


async def _states(postgres: str) -> list[tuple[str, bool]]:
    async with await psycopg.AsyncConnection.connect(postgres) as connection:
        cursor = await connection.execute("SELECT live.state, runs.ended_at IS NULL FROM live JOIN runs USING (run_id)")
        return await cursor.fetchall()


async def _is_open(postgres: str) -> bool:
    return await _states(postgres) == [("open", True)]


async def _is_settled(postgres: str) -> bool:
    return await _states(postgres) == [("closed", False)]


async def test_a_run_that_was_cancelled_while_its_holder_was_gone_is_settled_by_another(
    postgres: str, tmp_path: Path
) -> None:
    settings = {"live": True, "on_interrupt": "restart", "lease": 1.0}
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", **settings) as desks:
            first = await desks.host()
            await platform.say(ann, "hold one")
            await assert_said(platform, ann, NOTICE, "heard ")
            await until(lambda: _is_open(postgres))
            first.signal(signal.SIGSTOP)
            await desks.host()
            await platform.say(ann, "/cancel")
            await platform.wait_for_answers(ann.chat_id, 3)
            await first.kill()
            await until(lambda: _is_settled(postgres))
            said = await list_answers(platform, ann)
            assert said[:2] == [NOTICE, "heard "]
            await assert_goes_on(platform, ann, *said)
        assert desks.list_asked()[-1] == "after"


async def test_what_a_run_that_is_not_repeated_has_shown_is_settled(tmp_path: Path) -> None:
    settings = {"live": True, "on_interrupt": "fail"}
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", **settings) as desks:
            host = await desks.host()
            await platform.say(ann, "hold one")
            await assert_said(platform, ann, NOTICE, "heard ")
            await host.kill()
            await desks.host()
            failed = "The run was interrupted: the process that worked on it ended."
            await assert_said(platform, ann, NOTICE, "heard ", failed)
            await assert_goes_on(platform, ann, NOTICE, "heard ", failed)
        assert desks.list_asked() == ["hold one", "after"]
