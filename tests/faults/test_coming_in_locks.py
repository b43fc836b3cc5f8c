"""Coming in: locks that ran out, looks that came a moment too early, and waits that ended too soon."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontdesk import InboxItem, InMemoryStateStore
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ChannelRequest
from frontdesk.stores.memory.delivery import MemoryInbox
from frontdesk_testing import EchoAgent, FailingAgent, GatedAgent
from tests.databases import short_lease
from tests.faults.inbox.desk import count_waiting, run_host, texts, wait_for_answers
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform


async def test_a_run_that_is_longer_than_its_lease_is_not_run_over(postgres: str, tmp_path: Path) -> None:
    agent, lease = GatedAgent(), 0.8
    stores = [short_lease(postgres, lease) for _ in range(2)]
    async with (
        fork_platform(tmp_path / "log") as platform,
        run_host(agent, platform, polling=True, store=stores[0]),
        run_host(agent, platform, polling=True, store=stores[1]),
    ):
        ann = await platform.user("Ann")
        await platform.say(ann, "take your time")
        await agent.started.wait()
        await platform.say(ann, "and this")
        begun = await _until(postgres)
        # The lease was renewed so often that it would have run out long ago, and the other host has looked for work.
        await until(lambda: _later(postgres, begun + 4 * lease), within=60)
        assert (len(agent.seen), agent.running) == (1, 1)
        agent.release.set()
        assert await wait_for_answers(platform, ann, 2) == ["take your time", "and this"]
    assert [texts(said)[-1] for said in agent.seen] == ["take your time", "and this"]
    assert agent.most_at_once == 1


@pytest.mark.parametrize("lease", [1.0, 60.0], ids=["seen by a renewal", "seen at the end"])
async def test_a_message_whose_turn_lost_its_session_was_dropped(postgres: str, tmp_path: Path, lease: float) -> None:
    agent, store = GatedAgent(), short_lease(postgres, lease)
    async with fork_platform(tmp_path / "log") as platform, run_host(agent, platform, store=store):
        ann = await platform.user("Ann")
        await platform.say(ann, "wait")
        await agent.started.wait()
        async with await psycopg.AsyncConnection.connect(postgres) as connection:
            # As if the database had stood still for longer than the lease, and another host had the session since.
            await connection.execute("UPDATE leases SET fence = fence + 1, holder = 'another', until = 0")
        if lease < 60:
            await agent.cancelled.wait()
        agent.release.set()
        assert await wait_for_answers(platform, ann, 1) == ["wait"]
        assert await count_waiting(store) == 0
        assert not await store.inbox.failed()


async def _until(conninfo: str) -> float:
    async with await psycopg.AsyncConnection.connect(conninfo) as connection:
        row = await (await connection.execute("SELECT MAX(until) FROM inbox")).fetchone()
    assert row is not None
    return row[0]


async def _later(conninfo: str, than: float) -> bool:
    return await _until(conninfo) > than


class _LateInbox(MemoryInbox):
    """Something comes in right after it was seen that nothing waits."""

    late: Any = None

    async def next(self, channel: str, conversation_id: str, **kind: Any) -> InboxItem | None:
        item = await super().next(channel, conversation_id, **kind)
        if item is None and self.late is not None:
            late, self.late = self.late, None
            await late()
        return item


async def test_an_event_that_comes_after_the_last_look_does_not_stay_there(tmp_path: Path) -> None:
    agent, store = EchoAgent(), InMemoryStateStore()
    store.inbox = inbox = _LateInbox(100)
    async with fork_platform(tmp_path / "log") as platform, run_host(agent, platform, store=store):
        ann = await platform.user("Ann")

        async def late() -> None:
            await platform.wait_for_acknowledged(await platform.say(ann, "late"))

        inbox.late = late
        await platform.say(ann, "early")
        assert await wait_for_answers(platform, ann, 2) == ["early", "late"]
    assert await count_waiting(store) == 0


async def test_a_message_that_waits_for_its_session_does_not_vanish(tmp_path: Path) -> None:
    agent, store = GatedAgent(), InMemoryStateStore()
    settings = {"conversation_scope": "per_user", "accept_in_group": "all"}
    async with (
        fork_platform(tmp_path / "log") as platform,
        run_host(agent, platform, settings=settings, store=store, session_wait_seconds=0),
    ):
        ann = await platform.user("Ann")
        group = await platform.group("Friends", ann)
        await platform.say(ann, "one")
        await agent.started.wait()
        # The same session, in another conversation: it waits far longer than a request over HTTP would.
        event = await platform.say(ann, "two", chat_id=group.chat_id)
        await platform.wait_for_acknowledged(event)
        await until(lambda: len(store.inbox.holders) == 2)
        agent.release.set()
        assert await wait_for_answers(platform, ann, 1) == ["one"]
        assert texts(await platform.wait_for_answers(group.chat_id, 1)) == ["two"]
    assert agent.most_at_once == 1


async def test_a_turn_that_is_cut_off_by_a_shutdown_is_run_by_the_next_process(tmp_path: Path) -> None:
    agent, store = GatedAgent(), InMemoryStateStore()
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with run_host(agent, platform, store=store):
            await platform.say(ann, "wait")
            await agent.started.wait()
        assert agent.cancelled.is_set()
        assert await count_waiting(store) == 1
        agent.release.set()
        async with run_host(agent, platform, store=store):
            assert await wait_for_answers(platform, ann, 1) == ["wait"]
    assert await count_waiting(store) == 0


async def test_a_turn_that_fails_is_said_to_have_failed_and_the_next_one_runs(tmp_path: Path) -> None:
    agent, store = FailingAgent(RuntimeError("the secret reason")), InMemoryStateStore()
    async with fork_platform(tmp_path / "log") as platform, run_host(agent, platform, store=store):
        ann = await platform.user("Ann")
        for text in ("one", "two"):
            await platform.say(ann, text)
        assert await wait_for_answers(platform, ann, 2) == ["The agent failed while it answered."] * 2
        await until(lambda: _failed(store, 2))
        assert {error for _, error in await store.inbox.failed()} == {"target_failed"}
    assert "secret" not in (tmp_path / "log").read_text()


async def _failed(store: InMemoryStateStore, count: int) -> bool:
    return len(await store.inbox.failed()) == count


async def test_an_event_of_a_channel_that_is_gone_is_seen_and_blocks_nobody(tmp_path: Path) -> None:
    store = InMemoryStateStore()
    who = ChannelIdentity(channel="gone", native_id="1")
    item = InboxItem(
        channel="gone",
        event_id="evt_1",
        conversation_id="chat",
        caller=Caller(identity=who),
        request=ChannelRequest(channel="gone", input="hello", identity=who),
        received_at=0.0,
    )
    async with store.transaction() as transaction:
        transaction.accept(item)
    async with fork_platform(tmp_path / "log") as platform, run_host(EchoAgent(), platform, store=store):
        await until(lambda: _failed(store, 1))
    assert [error for _, error in await store.inbox.failed()] == ["no_channel"]
