"""Coming in: crashes between what the platform was told and what was done."""

import signal
from pathlib import Path

import pytest

from tests.faults.inbox.desk import listen, wait_for_answers
from tests.faults.inbox.processes import Desks
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform


@pytest.mark.parametrize("intake", ["webhook", "polling"])
@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
async def test_a_crash_around_the_mark_of_an_event_loses_nothing(intake: str, point: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        await platform.set(retry_seconds=0.2)
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", intake=intake) as desks:
            host = await desks.host()
            await listen(platform, str(host.http.base_url), intake)
            await platform.say(ann, "first")
            await wait_for_answers(platform, ann, 1)
            await host.arm(point, 1)
            await platform.say(ann, "second")
            await host.wait_for_end()
            await listen(platform, str((await desks.host()).http.base_url), intake)
            await platform.say(ann, "third")
            said = await wait_for_answers(platform, ann, 3)
        assert said == ["heard first", "heard second", "heard third"]
        assert desks.list_asked() == ["first", "second", "third"]


async def test_an_acknowledged_event_is_answered_by_the_next_process(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            event = await platform.say(ann, "hold me")
            await platform.wait_for_acknowledged(event)
            await host.kill()
            (tmp_path / "me.go").touch()
            await desks.host()
            assert await wait_for_answers(platform, ann, 1) == ["heard hold me"]


async def test_what_resumes_after_a_crash_does_not_race_what_is_new(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            events = [await platform.say(ann, text) for text in ("hold a", "b", "c")]
            await platform.wait_for_acknowledged(*events)
            await host.kill()
            (tmp_path / "a.go").touch()
            await desks.host()
            await platform.say(ann, "d")
            said = await wait_for_answers(platform, ann, 4)
        assert said == ["heard hold a", "heard b", "heard c", "heard d"]
        assert desks.list_asked()[-4:] == ["hold a", "b", "c", "d"]


async def test_an_event_that_ends_its_process_each_time_does_not_block_the_conversation(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            await platform.say(ann, "die now")
            await platform.say(ann, "and then")
            for _ in range(4):
                assert await host.wait_for_end() == -signal.SIGKILL
                host = await desks.host()
            said = await wait_for_answers(platform, ann, 2)
        assert said == ["Something went wrong on our side.", "heard and then"]
        assert desks.list_asked() == ["die now"] * 4 + ["and then"]


async def test_a_process_that_stood_still_can_t_answer_what_another_has_answered(postgres: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", lease=1.0) as desks:
            first = await desks.host()
            event = await platform.say(ann, "hold on")
            await platform.wait_for_acknowledged(event)
            await until(lambda: len(desks.list_asked()) == 1)
            first.signal(signal.SIGSTOP)
            second = await desks.worker()
            await until(lambda: len(desks.list_asked()) == 2)
            (tmp_path / "on.go").touch()
            assert await wait_for_answers(platform, ann, 1) == ["heard hold on"]
            first.signal(signal.SIGCONT)
            await platform.say(ann, "more")
            assert await wait_for_answers(platform, ann, 2) == ["heard hold on", "heard more"]
            assert second.alive
