"""A host is killed around each step of an answer in the HTTP reply: it is heard once, whoever has to say it."""

import signal
from pathlib import Path
from typing import Any

import pytest

from frontdesk_testing.messages import MessagePlatform
from tests.faults.inbox.desk import listen, wait_for_answers
from tests.faults.inbox.processes import DeskProcess, Desks
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform

COMMITS = ("accepted", "claimed", "recorded", "taken for the reply", "replied")
KILLS = [(point, number) for number in range(1, len(COMMITS) + 1) for point in ("before_commit", "after_commit")]
# The head of the reply, and its body.
KILLS += [("before_send", 1), ("after_send", 1), ("after_send", 2)]


async def serve(desks: Desks, platform: MessagePlatform) -> DeskProcess:
    host = await desks.host()
    await listen(platform, str(host.http.base_url), "webhook")
    return host


# Where the platform drops what it has by the same key, and where it shows everything that it is sent.
@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize(("point", "passes"), KILLS)
async def test_a_kill_around_each_step_of_a_reply(point: str, passes: int, idempotent: bool, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        await platform.set(expects_replies=True, dedupe=idempotent, retry_seconds=0.2)
        ann = await platform.user("Ann")
        settings: dict[str, Any] = {"intake": "webhook", "idempotent": idempotent, "reply_seconds": 10.0}
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", **settings) as desks:
            host = await serve(desks, platform)
            await host.arm(point, passes)
            await platform.say(ann, "hello")
            assert await host.wait_for_end() == -signal.SIGKILL
            await serve(desks, platform)
            assert await wait_for_answers(platform, ann, 1) == ["heard hello"]
            await platform.say(ann, "after")
            assert await wait_for_answers(platform, ann, 2) == ["heard hello", "heard after"]
        # An answer that was recorded is not asked for again.
        is_recorded = (point, passes) == ("after_commit", 3) or passes > 3 or point.endswith("send")
        assert desks.list_asked() == ["hello", "after"] if is_recorded else desks.list_asked()[-1] == "after"


async def test_nobody_waits_for_the_platform_to_ask_again(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        # Within this test it never does.
        await platform.set(expects_replies=True, retry_seconds=600.0)
        ann = await platform.user("Ann")
        settings = {"intake": "webhook", "reply_seconds": 0.5}
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", **settings) as desks:
            host = await serve(desks, platform)
            await host.arm("after_commit", 3)
            await platform.say(ann, "hello")
            assert await host.wait_for_end() == -signal.SIGKILL
            await platform.set(hold=True)
            await desks.host()
            assert await wait_for_answers(platform, ann, 1) == ["heard hello"]


@pytest.mark.parametrize("ending", ["answers", "is killed"])
async def test_the_run_of_another_host_is_in_the_reply(ending: str, postgres: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        await platform.set(expects_replies=True, dedupe=False, retry_seconds=0.2)
        ann = await platform.user("Ann")
        settings: dict[str, Any] = {"intake": "webhook", "idempotent": False, "reply_seconds": 30.0, "lease": 2.0}
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", **settings) as desks:
            # The first host works on the conversation, so that the second one has only the wire.
            first = await serve(desks, platform)
            await platform.say(ann, "hold one")
            await until(lambda: desks.list_asked() == ["hold one"])
            await serve(desks, platform)
            await platform.fail("error", method="send")
            if ending == "is killed":
                await first.kill()
            (tmp_path / "one.go").touch()
            assert await wait_for_answers(platform, ann, 1) == ["heard hold one"]
            await platform.recover()
            await platform.say(ann, "after")
            assert await wait_for_answers(platform, ann, 2) == ["heard hold one", "heard after"]
