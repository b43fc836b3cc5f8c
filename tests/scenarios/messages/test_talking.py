"""People talk with the bot: alone with it and in groups, by webhook and by polling."""

import asyncio
import base64
from typing import Any

import pytest
import uvicorn
from agent_framework import Content

from frontdesk import AgentFrameworkHost
from frontdesk_testing import EchoAgent, FailingAgent, GatedAgent
from frontdesk_testing.messages import MessageChannel
from frontdesk_testing.messages.wire import Media
from tests.faults.ports import free_port
from tests.scenarios.cast import build_scripted
from tests.scenarios.messages.chat import SECRET, open_chat
from tests.testing.messages.starting import new_platform

INTAKES = pytest.mark.parametrize("intake", ["webhook", "polling"])


@INTAKES
async def test_a_person_is_answered_in_their_own_chat(intake: str) -> None:
    async with open_chat(EchoAgent(), intake=intake) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Ada")
        await chat.platform.say(ada, "I am one Ada")
        await chat.platform.say(bob, "I am another")
        assert await chat.wait_for_answers(ada.chat_id) == ["I am one Ada"]
        assert await chat.wait_for_answers(bob.chat_id) == ["I am another"]


@INTAKES
async def test_many_messages_are_answered_once_each_and_in_order(intake: str) -> None:
    async with open_chat(EchoAgent(), intake=intake) as chat:
        people = [await chat.platform.user(f"person {number}") for number in range(4)]
        for number in range(10):
            for one in people:
                await chat.platform.say(one, f"{one.name}: {number}")
        for one in people:
            assert await chat.wait_for_answers(one.chat_id, 10) == [f"{one.name}: {number}" for number in range(10)]
        assert sum(entry.method == "send" for entry in chat.platform.log_on_disk()) == 40


async def test_a_turn_sees_the_ones_before() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        for number in (1, 2):
            await chat.platform.say(ada, f"word {number}")
            await chat.wait_for_answers(ada.chat_id, number)
    assert [message.text for message in agent.seen[1]] == ["word 1", "word 1", "word 2"]


async def test_a_long_answer_comes_in_parts() -> None:
    async with open_chat(EchoAgent(), text_limit=40) as chat:
        await chat.platform.set(text_limit=40)
        ada = await chat.platform.user("Ada")
        text = "This is a sentence of many words. " * 5
        await chat.platform.say(ada, text.strip())
        assert "".join(await chat.wait_for_answers(ada.chat_id, 5)) == text.strip()


async def test_what_somebody_sends_reaches_the_agent() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        picture = Media(media_type="image/png", data=base64.b64encode(b"a picture").decode(), name="a.png")
        await chat.platform.say(ada, "look", media=[picture])
        assert await chat.wait_for_answers(ada.chat_id) == ["look"]
    contents = agent.seen[0][-1].contents
    assert [(one.type, one.media_type) for one in contents] == [("text", None), ("data", "image/png")]


async def test_what_the_agent_shows_is_shown() -> None:
    picture = Content.from_uri("data:image/png;base64,aGk=", media_type="image/png")
    async with open_chat(build_scripted([["look:", picture]])) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "show me")
        text, shown = await chat.platform.wait_for_answers(ada.chat_id, 2)
    assert (text.text, text.media) == ("look:", ())
    assert [(one.media_type, one.data) for one in shown.media] == [("image/png", "aGk=")]


async def test_an_agent_that_fails_is_excused_and_the_next_message_answered() -> None:
    agent: Any = FailingAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        assert await chat.wait_for_answers(ada.chat_id) == ["The agent failed while it answered."]
        agent.speak = EchoAgent.speak.__get__(agent)
        await chat.platform.say(ada, "and now?")
        assert (await chat.wait_for_answers(ada.chat_id, 2))[1] == "and now?"


@pytest.mark.parametrize(("on_edit", "answers"), [("ignore", ["one", "three"]), ("answer", ["one", "two", "three"])])
async def test_an_edit_is_answered_if_the_operator_says_so(on_edit: str, answers: list[str]) -> None:
    async with open_chat(EchoAgent(), on_edit=on_edit) as chat:
        ada = await chat.platform.user("Ada")
        event = await chat.platform.say(ada, "one")
        await chat.wait_for_answers(ada.chat_id)
        assert event.message is not None
        edit = await chat.platform.edit(ada, event.message.message_id, "two")
        await chat.platform.wait_for_acknowledged(edit)
        await chat.platform.say(ada, "three")
        assert await chat.wait_for_answers(ada.chat_id, len(answers)) == answers


@INTAKES
async def test_a_host_starts_while_its_platform_is_away(intake: str) -> None:
    async with new_platform() as platform:
        ada = await platform.user("Ada")
        for method in ("me", "commands", "webhook", "events"):
            await platform.fail("unavailable", method=method, times=1, retry_after=0.01)
            await platform.fail("cut_before", method=method, times=1)
        port = free_port()
        channel = MessageChannel(
            platform_url=platform.url,
            token=platform.token,
            secret=SECRET,
            intake="webhook" if intake == "webhook" else "polling",
            public_url=f"http://127.0.0.1:{port}/" if intake == "webhook" else None,
        )
        host = AgentFrameworkHost(EchoAgent(), channels=[channel])
        server = uvicorn.Server(uvicorn.Config(host.app, host="127.0.0.1", port=port, log_config=None))
        serving = asyncio.create_task(server.serve())
        try:
            await platform.say(ada, "are you there?")
            assert [one.text for one in await platform.wait_for_answers(ada.chat_id)] == ["are you there?"]
            assert (await platform.state()).commands
        finally:
            server.should_exit = True
            await serving


async def test_somebody_who_waits_holds_up_nobody_else() -> None:
    agent = GatedAgent()
    async with open_chat(agent) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        await chat.platform.say(ada, "first words")
        await agent.started.wait()
        agent.started.clear()
        await chat.platform.say(bob, "other words")
        await agent.started.wait()
        assert agent.running == 2
        agent.release.set()
        assert await chat.wait_for_answers(ada.chat_id) == ["first words"]
        assert await chat.wait_for_answers(bob.chat_id) == ["other words"]
