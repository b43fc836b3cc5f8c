"""Coming in: the platform retries a webhook, and one update comes in by two ways."""

import asyncio
from pathlib import Path

from frontdesk import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import EchoAgent, GatedAgent
from tests.faults.inbox.desk import count_waiting, run_host, texts, wait_for_answers
from tests.testing.messages.starting import fork_platform


async def test_a_retried_webhook_is_neither_lost_nor_answered_twice(tmp_path: Path) -> None:
    agent, store = GatedAgent(), InMemoryStateStore()
    async with fork_platform(tmp_path / "log") as platform, run_host(agent, platform, store=store):
        ann = await platform.user("Ann")
        event = await platform.say(ann, "hello there")
        await agent.started.wait()
        # While it is being answered, and after that.
        for _ in range(3):
            await platform.redeliver(event)
        agent.release.set()
        assert await wait_for_answers(platform, ann, 1) == ["hello there"]
        await asyncio.gather(*(platform.redeliver(event) for _ in range(5)))
        await platform.say(ann, "bye")
        assert await wait_for_answers(platform, ann, 2) == ["hello there", "bye"]
    assert [texts(said)[-1] for said in agent.seen] == ["hello there", "bye"]


async def test_a_retry_finds_an_event_known_after_a_restart(tmp_path: Path) -> None:
    agent = EchoAgent()
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with run_host(agent, platform, store=SqliteStateStore(tmp_path / "state.db")):
            event = await platform.say(ann, "once")
            assert await wait_for_answers(platform, ann, 1) == ["once"]
        async with run_host(agent, platform, store=SqliteStateStore(tmp_path / "state.db")):
            await platform.redeliver(event)
            await platform.say(ann, "more")
            assert await wait_for_answers(platform, ann, 2) == ["once", "more"]
    assert len(agent.seen) == 2


async def test_an_update_that_comes_in_by_two_ways_is_run_once(tmp_path: Path) -> None:
    agent, store = EchoAgent(), InMemoryStateStore()
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with run_host(agent, platform, store=store):
            await platform.set(hold=True)
            event = await platform.say(ann, "by one way or another")
            await platform.release(event)
            assert await wait_for_answers(platform, ann, 1) == ["by one way or another"]
        async with run_host(agent, platform, store=store, polling=True):
            # Polling begins with all that was not confirmed there.
            await platform.set(hold=False)
            await platform.say(ann, "more")
            assert await wait_for_answers(platform, ann, 2) == ["by one way or another", "more"]
    assert len(agent.seen) == 2
    assert await count_waiting(store) == 0
