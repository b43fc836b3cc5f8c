"""A host is killed around each commit of a command: what the command says is said once, and in its order."""

import signal
from pathlib import Path

import pytest

from tests.faults.inbox.desk import wait_for_answers
from tests.faults.inbox.processes import Desks
from tests.testing.messages.starting import fork_platform


# The event is accepted, claimed, and finished with its replies; then the first of them is claimed to be sent.
@pytest.mark.parametrize("passes", [1, 2, 3, 4])
@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
async def test_a_kill_around_each_commit_of_a_command(point: str, passes: int, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            await host.arm(point, passes)
            await platform.say(ann, "/say one two")
            assert await host.wait_for_end() == -signal.SIGKILL
            await desks.host()
            assert await wait_for_answers(platform, ann, 2) == ["one", "two"]
            await platform.say(ann, "after")
            assert await wait_for_answers(platform, ann, 3) == ["one", "two", "heard after"]
