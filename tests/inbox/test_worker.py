"""How events are answered: in the background, without being kept, or not at all."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk import ChannelRequest, InMemoryStateStore
from frontdesk.access.visitors import UnlinkedVisitors
from frontdesk.delivery.proactive import WORK_GOES_ON
from frontdesk.errors import StoreUnavailableError, UnreadableRecordError
from frontdesk.inbox import worker
from frontdesk.inbox.batching import MessageBatcher
from frontdesk.inbox.claimed import ClaimedEvents
from frontdesk.inbox.groups import SenderGroups
from frontdesk.inbox.worker import InboxWorker, SenderSlots
from frontdesk.stores.memory.delivery import MemoryInbox
from frontdesk_testing import EchoAgent, FakeClock, GatedAgent
from frontdesk_testing.internals import active_runs, get_components
from frontdesk_testing.messages import MessagePlatform
from frontdesk_testing.store_samples import inbox_item
from tests.faults.inbox.desk import count_waiting, run_host, wait_for_answers
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[MessagePlatform]:
    async with fork_platform(tmp_path / "log") as found:
        yield found


def build_hook(**changes: Any) -> dict[str, Any]:
    def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        return request.replace(**changes)

    return {"run_hook": hook}


async def test_an_event_that_a_hook_puts_into_the_background_is_done_and_answered(platform: MessagePlatform) -> None:
    agent, store = EchoAgent(), InMemoryStateStore()
    async with run_host(agent, platform, settings=build_hook(background=True), store=store):
        ann = await platform.user("Ann")
        await platform.say(ann, "later")
        assert await wait_for_answers(platform, ann, 2) == [f"{WORK_GOES_ON} /cancel stops it.", "later"]
        assert await count_waiting(store) == 0
    assert len(agent.seen) == 1


async def test_an_event_of_which_nothing_is_kept_is_answered_once(platform: MessagePlatform) -> None:
    agent, store = EchoAgent(), InMemoryStateStore()
    async with run_host(agent, platform, settings=build_hook(store=False), store=store):
        ann = await platform.user("Ann")
        for text in ("one", "two"):
            await platform.say(ann, text)
        assert await wait_for_answers(platform, ann, 2) == ["one", "two"]
        assert await count_waiting(store) == 0
    assert len(agent.seen) == 2


async def test_what_a_hook_refuses_is_said_and_the_next_event_is_answered(platform: MessagePlatform) -> None:
    def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        if request.input == "bad":
            raise ValueError("the secret reason")
        return request

    store = InMemoryStateStore()
    async with run_host(EchoAgent(), platform, settings={"run_hook": hook}, store=store):
        ann = await platform.user("Ann")
        for text in ("bad", "good"):
            await platform.say(ann, text)
        said = await wait_for_answers(platform, ann, 2)
    assert said == ["A hook of this host refused the request.", "good"]
    assert [error for _, error in await store.inbox.failed()] == ["hook_failed"]


class _Shaky(MemoryInbox):
    """Can't be reached at first."""

    failures = 2

    async def claim_bundle(self, channel: str, conversation_id: str, holder: str, **more: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError
        return await super().claim_bundle(channel, conversation_id, holder, **more)


async def test_an_event_waits_for_a_store_that_is_away(platform: MessagePlatform) -> None:
    store = InMemoryStateStore()
    store.inbox = shaky = _Shaky(100)
    async with run_host(EchoAgent(), platform, store=store):
        ann = await platform.user("Ann")
        await platform.say(ann, "still there?")
        assert await wait_for_answers(platform, ann, 1) == ["still there?"]
    assert shaky.failures == 0


async def test_what_was_cancelled_is_done(platform: MessagePlatform) -> None:
    from frontdesk_testing import GatedAgent

    agent, store = GatedAgent(), InMemoryStateStore()
    async with run_host(agent, platform, store=store) as host:
        ann = await platform.user("Ann")
        await platform.say(ann, "for ever")
        await agent.started.wait()
        (run,) = active_runs(host)
        await get_components(host).active.cancel(run)
        agent.release.set()
        await platform.say(ann, "again")
        assert await wait_for_answers(platform, ann, 1) == ["again"]
        await until(lambda: _undone(store))
    assert [error for _, error in await store.inbox.failed()] == ["cancelled"]


async def _undone(store: InMemoryStateStore) -> bool:
    return await count_waiting(store) == 0


class _Newer(MemoryInbox):
    """Has an event that only a newer version can read."""

    claims = 0

    async def claim(self, channel: str, conversation_id: str, holder: str, **kind: Any) -> Any:
        self.claims += 1
        raise UnreadableRecordError


async def test_a_conversation_that_has_to_wait_for_a_newer_version_is_not_asked_for_again_and_again() -> None:
    clock, store = FakeClock(), InMemoryStateStore()
    store.inbox = newer = _Newer(100)
    async with store.transaction() as transaction:
        transaction.accept(inbox_item("evt_1"))
    nothing: Any = None
    held, gathering = ClaimedEvents(store, nothing), MessageBatcher(store, {}, clock)
    groups = SenderGroups({}, UnlinkedVisitors(store, {}))
    worker = InboxWorker(
        store, clock, held, gathering, awaited=nothing, answering=nothing, groups=groups, schedule=nothing
    )
    conversation = {"channel": "telegram", "conversation_id": "chat"}
    assert [task async for task in worker._list_waiting()] != []
    for _ in range(100):
        assert await worker._work(conversation) == clock.now() + 30.0
    assert (newer.claims, [task async for task in worker._list_waiting()]) == (1, [])
    clock.advance(31)
    assert [task async for task in worker._list_waiting()] != []
    await worker._work(conversation)
    assert newer.claims == 2


class _SlowFor(GatedAgent):
    """Waits with the answers to one person."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._for = name

    async def speak(self, words: list[str]) -> AsyncIterator[Any]:
        answer = super().speak(words) if words[0].strip() == self._for else EchoAgent.speak(self, words)
        async for update in answer:
            yield update


class TestPlaces:
    async def test_one_person_in_many_groups_took_all_the_places(
        self, platform: MessagePlatform, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(worker, "MAX_CONCURRENT", 4)
        monkeypatch.setattr(worker, "MAX_PER_SENDER", 2)
        agent, store = _SlowFor("Ann"), InMemoryStateStore()
        async with run_host(agent, platform, store=store):
            ann, bob = await platform.user("Ann"), await platform.user("Bob")
            groups = [await platform.group(f"Group {number}", ann) for number in range(6)]
            for group in groups:
                await platform.say(ann, "@desk Ann asks first", chat_id=group.chat_id)
                await platform.say(ann, "@desk Ann asks again", chat_id=group.chat_id)
            await until(lambda: agent.running == 2)
            await platform.say(bob, "Bob asks")
            assert await wait_for_answers(platform, bob, 1) == ["Bob asks"]
            agent.release.set()
            for group in groups:
                said = await platform.wait_for_answers(group.chat_id, 2)
                assert [message.text for message in said] == ["Ann asks first", "Ann asks again"]
        assert agent.most_at_once == 2

    def test_a_place_is_passed_on_and_nothing_is_remembered(self) -> None:
        places = SenderSlots({"turn": 1, "control": 1, "resume": 1})
        first, second, third = [inbox_item(name, chat=name) for name in ("one", "two", "three")]
        assert places.enter(first)
        assert not places.enter(second)
        assert not places.enter(third)
        assert places.waits("turn", (second.channel, "two"))
        places.forget("turn", (second.channel, "two"))
        assert places.leave(first) == (third.channel, "three")
        assert places.enter(third)
        assert places.leave(third) is None
        assert not places._taken
        assert not places._waiting
        assert not places._senders
