"""The run that answers an event: one id however often it is tried, and nothing for a stranger."""

from pathlib import Path
from typing import Any

from frontdesk import AgentFrameworkHost, ChannelRequest, InMemoryStateStore, NativeIdAllowlist
from frontdesk.models.delivery import InboxItem
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import EchoAgent, GatedAgent, serving
from frontdesk_testing.internals import active_runs, get_components
from frontdesk_testing.messages import MessageChannel, message_platform
from tests.faults.inbox.desk import SECRET, count_waiting, listen, run_host, wait_for_answers
from tests.scenarios.desk import until


async def test_each_try_of_an_event_is_the_same_run(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with run_host(agent, platform, store=SqliteStateStore(tmp_path / "state.db")) as host:
            await platform.say(ann, "hello")
            await agent.started.wait()
            (first,) = active_runs(host)
        agent.release.set()
        store = SqliteStateStore(tmp_path / "state.db")
        async with run_host(agent, platform, store=store):
            assert await wait_for_answers(platform, ann, 1) == ["hello"]
            record = await store.runs.get(first.record.owner, first.record.run_id)
    assert record is not None
    assert record.status == "completed"
    assert len(agent.seen) == 2


async def test_an_event_of_an_older_host_is_answered(tmp_path: Path) -> None:
    store = InMemoryStateStore()
    async with message_platform(tmp_path / "log") as platform, run_host(EchoAgent(), platform, store=store) as host:
        ann = await platform.user("Ann")
        caller = (await _first_item(store, host, platform, ann)).caller
        request = ChannelRequest(channel="messages", input="old", conversation_id=ann.chat_id)
        old = InboxItem(
            channel="messages",
            event_id="old",
            conversation_id=ann.chat_id,
            caller=caller,
            request=request,
            received_at=0.0,
        )
        async with store.transaction() as transaction:
            transaction.accept(old)
        await get_components(host).events.intake.accept(old)
        assert await wait_for_answers(platform, ann, 2) == ["first", "old"]
        await until(lambda: _is_empty(store))


async def _first_item(store: InMemoryStateStore, host: AgentFrameworkHost, platform: Any, ann: Any) -> InboxItem:
    """Return the first event of somebody, once it was answered."""
    items: list[InboxItem] = []
    accept = store.inbox.accept
    store.inbox.accept = lambda item: items.append(item) or accept(item)  # type: ignore[method-assign]
    await platform.say(ann, "first")
    await wait_for_answers(platform, ann, 1)
    store.inbox.accept = accept  # type: ignore[method-assign]
    assert items[0].run_id is not None
    return items[0]


async def _is_empty(store: InMemoryStateStore) -> bool:
    return await count_waiting(store) == 0


class _Typing(MessageChannel):
    """Notes for whom it has done something before the answer."""

    prepared: list[str]

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        self.prepared.append(item.caller.identity.attributes["name"])
        return await super().prepare(item)


async def test_nothing_is_prepared_for_a_stranger(tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann, bob = await platform.user("Ann"), await platform.user("Bob")
        listed = NativeIdAllowlist([ann.user_id])
        channel = _Typing(platform_url=platform.url, token=platform.token, secret=SECRET, allowlist=listed)
        channel.prepared = []
        async with serving(AgentFrameworkHost(EchoAgent(), channels=[channel])) as client:
            await listen(platform, client.base_url, "webhook")
            for text in ("hello", "/help"):
                await platform.say(bob, text)
            refused = await wait_for_answers(platform, bob, 2)
            await platform.say(ann, "hello")
            assert await wait_for_answers(platform, ann, 1) == ["hello"]
    assert channel.prepared == ["Ann"]
    assert "hello" not in refused
