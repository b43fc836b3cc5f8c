"""Coming in: a host is killed around the transaction that cancels a turn. What was cancelled never speaks."""

import signal
from pathlib import Path
from typing import Any

import pytest

from frontdesk_testing.messages import message_platform
from tests.faults.inbox.desk import wait_for_answers
from tests.faults.inbox.processes import Desks
from tests.scenarios.desk import until

SAID = {"/cancel": "I have stopped.", "/new": "We start anew."}
# The event is accepted, claimed, and done; before that, /new looks for the id of the session that it leaves.
COMMITS = {"/cancel": 3, "/new": 4}
KILLS = [(command, passes) for command, last in COMMITS.items() for passes in range(1, last + 1)]


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize(("command", "passes"), KILLS)
async def test_a_kill_around_each_commit_of_a_cancellation(
    command: str, passes: int, point: str, tmp_path: Path
) -> None:
    said = SAID[command]
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            await platform.say(ann, "hold one")
            await until(lambda: desks.list_asked() == ["hold one"])
            await host.arm(point, passes)
            await platform.say(ann, command)
            assert await host.wait_for_end() == -signal.SIGKILL
            await desks.host()
            assert await wait_for_answers(platform, ann, 1) == [said]
            # If the turn were run again, it could speak now.
            (tmp_path / "one.go").touch()
            await platform.say(ann, "after")
            assert await wait_for_answers(platform, ann, 2) == [said, "heard after"]
        # What is known to be cancelled is not asked again.
        is_written = (point, passes) == ("after_commit", COMMITS[command])
        assert desks.list_asked() == ["hold one", "after"] if is_written else desks.list_asked()[-1] == "after"


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGCONT])
async def test_a_turn_whose_holder_never_heard_of_the_cancellation(
    ending: signal.Signals, postgres: str, tmp_path: Path
) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", lease=6.0) as desks:
            first = await desks.host()
            await platform.say(ann, "hold one")
            await until(lambda: len(desks.list_asked()) == 1)
            first.signal(signal.SIGSTOP)
            await desks.host()
            await platform.say(ann, "/cancel")
            assert await wait_for_answers(platform, ann, 1) == ["I have stopped."]
            (tmp_path / "one.go").touch()
            first.signal(ending)
            await platform.say(ann, "after")
            assert await wait_for_answers(platform, ann, 2) == ["I have stopped.", "heard after"]
        assert desks.list_asked()[-1] == "after"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_kill_between_the_claim_and_the_record_of_a_bundle(
    kind: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    place = str(tmp_path / "state") if kind == "sqlite" else request.getfixturevalue("postgres")
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        for text in ("die x", "two"):
            await platform.say(ann, text)
        async with Desks(kind, place, platform, tmp_path / "ledger", lease=2.0, gather=0.5, claims_wait_for=2) as desks:
            assert await (await desks.host()).wait_for_end() == -signal.SIGKILL
            (tmp_path / "x\ntwo.dead").touch()
            await desks.host()
            assert await wait_for_answers(platform, ann, 1) == ["heard die x\ntwo"]
            await platform.say(ann, "three")
            assert await wait_for_answers(platform, ann, 2) == ["heard die x\ntwo", "heard three"]
        assert desks.list_asked() == ["die x", "two"] * 2 + ["three"]
