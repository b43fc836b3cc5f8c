"""What a platform does to its events: it sends them twice, late, in disorder, and while the host is away."""

from pathlib import Path
from typing import Any

import pytest

from frontdesk.errors import StoreUnavailableError
from frontdesk_testing import EchoAgent, GatedAgent
from frontdesk_testing.internals import get_store
from tests.scenarios.messages.chat import connect, open_chat, post
from tests.testing.messages.starting import new_platform


async def test_the_same_event_twice_is_one_turn() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        event = await chat.platform.say(ada, "hello")
        await chat.wait_for_answers(ada.chat_id)
        for _ in range(3):
            assert (await chat.platform.redeliver(event)).answers[-1] == 200
        await chat.platform.say(ada, "goodbye")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello", "goodbye"]
    assert len(agent.seen) == 2


async def test_a_retry_while_the_turn_runs_is_the_same_turn() -> None:
    agent = GatedAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        event = await chat.platform.say(ada, "hello there")
        await agent.started.wait()
        assert (await chat.platform.redeliver(event)).answers[-1] == 200
        agent.release.set()
        await chat.platform.say(ada, "goodbye")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello there", "goodbye"]
    assert len(agent.seen) == 2


async def test_an_event_that_comes_by_two_ways_is_one_turn(tmp_path: Path) -> None:
    agent = EchoAgent()
    async with new_platform() as platform:
        ada = await platform.user("Ada")
        async with open_chat(agent, platform=platform, state_dir=tmp_path) as chat:
            await platform.set(hold=True)
            event = await platform.say(ada, "hello")
            assert (await post(chat, event)).status_code == 200
            assert await chat.wait_for_answers(ada.chat_id) == ["hello"]
        # The platform has not seen the acknowledgement, and now it is asked instead of asking.
        await platform.set(hold=False)
        async with open_chat(agent, platform=platform, intake="polling", state_dir=tmp_path) as chat:
            await platform.wait_for_acknowledged(event)
            await platform.say(ada, "goodbye")
            assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello", "goodbye"]
    assert len(agent.seen) == 2


async def test_events_in_disorder_are_all_answered() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.set(hold=True)
        events = [await chat.platform.say(ada, f"word {number}") for number in range(4)]
        await chat.platform.release(*reversed(events))
        assert sorted(await chat.wait_for_answers(ada.chat_id, 4)) == [f"word {number}" for number in range(4)]


@pytest.mark.parametrize("intake", ["webhook", "polling"])
async def test_a_restart_between_the_event_and_the_answer(intake: str, tmp_path: Path) -> None:
    waiting, agent = GatedAgent(), EchoAgent()
    async with new_platform() as platform:
        ada = await platform.user("Ada")
        async with open_chat(
            waiting, platform=platform, intake=intake, state_dir=tmp_path, shutdown_grace_seconds=0.01
        ):
            event = await platform.say(ada, "are you there?")
            await waiting.started.wait()
            if intake == "webhook":
                # It was acknowledged, so the platform will not send it again.
                await platform.wait_for_acknowledged(event)
        assert await platform.answers(ada.chat_id) == []
        async with open_chat(agent, platform=platform, intake=intake, state_dir=tmp_path) as chat:
            assert await chat.wait_for_answers(ada.chat_id) == ["are you there?"]
            await platform.say(ada, "good")
            assert await chat.wait_for_answers(ada.chat_id, 2) == ["are you there?", "good"]
    assert len(agent.seen) == 2


async def test_events_wait_for_a_host_that_is_away(tmp_path: Path) -> None:
    agent = EchoAgent()
    async with new_platform() as platform:
        await platform.set(retry_seconds=0.05)
        ada = await platform.user("Ada")
        async with open_chat(agent, platform=platform, state_dir=tmp_path) as chat:
            await platform.say(ada, "one")
            await chat.wait_for_answers(ada.chat_id)
        event = await platform.say(ada, "two")

        async def tried() -> bool:
            return any(one.event == event and one.attempts for one in await platform.events())

        await platform.until(tried)
        async with open_chat(agent, platform=platform, state_dir=tmp_path) as chat:
            await connect(chat)
            assert await chat.wait_for_answers(ada.chat_id, 2) == ["one", "two"]


async def test_the_offset_never_passes_what_was_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = EchoAgent()
    async with open_chat(agent, intake="polling") as chat:
        ada = await chat.platform.user("Ada")
        store = get_store(chat.host)
        whole, failures = store.transaction, iter([True])

        def transaction():
            if next(failures, False):
                raise StoreUnavailableError
            return whole()

        monkeypatch.setattr(store, "transaction", transaction)
        await chat.platform.say(ada, "one")
        await chat.platform.say(ada, "two")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["one", "two"]
    assert len(agent.seen) == 2


@pytest.mark.parametrize("kind", ["blocked", "error", "flood", "cut_after", "cut_before"])
async def test_an_answer_that_the_platform_does_not_take_holds_up_nothing(kind: Any) -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.fail(kind, method="send", times=1)
        await chat.platform.say(ada, "one")
        await chat.platform.say(ada, "two")
        # What was not delivered was said all the same.
        await chat.platform.say(ada, "three")

        async def answered() -> bool:
            return "three" in [one.text for one in await chat.platform.answers(ada.chat_id)]

        await chat.platform.until(answered)
        said = [one.text for one in await chat.platform.answers(ada.chat_id)]
        assert said in (["one", "two", "three"], ["two", "three"])
    assert [one.text for one in agent.seen[-1]] == ["one", "one", "two", "two", "three"]


async def test_a_turn_that_ends_while_the_host_stops_is_still_answered(tmp_path: Path) -> None:
    agent = GatedAgent()

    async def stopping() -> None:
        agent.release.set()

    async with new_platform() as platform:
        ada = await platform.user("Ada")
        async with open_chat(agent, platform=platform, state_dir=tmp_path, on_shutdown=[stopping]):
            await platform.say(ada, "a last word")
            await agent.started.wait()
        async with open_chat(agent, platform=platform, state_dir=tmp_path) as chat:
            await platform.say(ada, "good")
            assert await chat.wait_for_answers(ada.chat_id, 2) == ["a last word", "good"]
