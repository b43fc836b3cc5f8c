"""Albums: their messages come as events of their own, in any order, and are answered as one turn."""

import base64
from typing import Any

import pytest

from frontdesk import NativeIdAllowlist, OneTimeCodeIdentityLinker
from frontdesk.models.operations import EventLimits, RateLimit
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import claims_wait_for, get_store
from frontdesk_testing.messages.wire import Event, Media
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import MessagesHost, open_chat
from tests.scenarios.messages.test_stopping import Holding, list_failed

SECONDS = 0.5


def pictures(*names: str) -> list[Media]:
    return [Media(media_type="image/png", data=base64.b64encode(name.encode()).decode()) for name in names]


async def release(chat: MessagesHost, *events: Event) -> None:
    """Have events sent at once, in this order."""
    await chat.platform.release(*events)
    await chat.platform.set(hold=True)


def list_shown(agent: EchoAgent) -> list[list[str]]:
    """Return what the agent was told in each turn, texts and pictures."""
    return [[part for message in told if message.role == "user" for part in _parts(message)] for told in agent.seen]


def _parts(message: Any) -> list[str]:
    return [
        content.text if content.type == "text" else base64.b64decode(content.uri.partition(",")[2]).decode()
        for content in message.contents
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
async def test_an_album_is_one_turn_in_the_order_in_which_it_was_put_together(order: tuple[int, ...]) -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=SECONDS) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.set(hold=True)
        events = await chat.platform.album(ada, pictures("a", "b", "c"), text="look")
        with claims_wait_for(get_store(chat.host), 3):
            await release(chat, *(events[place] for place in order))
            assert await chat.wait_for_answers(ada.chat_id) == ["look"]
    assert list_shown(agent) == [["look", "a", "b", "c"]]


async def test_albums_that_are_polled_are_one_turn_too() -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=SECONDS, intake="polling") as chat:
        ada = await chat.platform.user("Ada")
        with claims_wait_for(get_store(chat.host), 2):
            await chat.platform.album(ada, pictures("a", "b"), text="look")
            assert await chat.wait_for_answers(ada.chat_id) == ["look"]
    assert list_shown(agent) == [["look", "a", "b"]]


async def test_a_message_between_an_album_s_has_a_turn_of_its_own() -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=SECONDS) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.set(hold=True)
        first, last = await chat.platform.album(ada, pictures("a", "b"), text="look")
        between = await chat.platform.say(ada, "well?")
        with claims_wait_for(get_store(chat.host), 3):
            await release(chat, first, between, last)
            assert await chat.wait_for_answers(ada.chat_id, 2) == ["look", "well?"]
    assert list_shown(agent)[0] == ["look", "a", "b"]


async def test_what_is_gathered_joins_an_album() -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=SECONDS, gather_seconds=SECONDS) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.set(hold=True)
        first, last = await chat.platform.album(ada, pictures("a", "b"), text="look")
        with claims_wait_for(get_store(chat.host), 3):
            await release(chat, last, await chat.platform.say(ada, "well?"), first)
            assert await chat.wait_for_answers(ada.chat_id) == ["well?"]
    assert list_shown(agent) == [["look", "a", "b", "well?"]]


async def test_two_albums_are_two_turns_and_so_are_those_of_two_people() -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=SECONDS, accept_in_group="all") as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.set(hold=True)
        albums = [
            await chat.platform.album(who, pictures("x", "y"), text=text, chat_id=group.chat_id)
            for who, text in ((ada, "one"), (bob, "two"), (ada, "three"))
        ]
        with claims_wait_for(get_store(chat.host), 6):
            await release(chat, *(album[place] for place in (0, 1) for album in albums))
            assert await chat.wait_for_answers(group.chat_id, 3) == ["one", "two", "three"]
    assert [told[-3:] for told in list_shown(agent)] == [["one", "x", "y"], ["two", "x", "y"], ["three", "x", "y"]]


async def test_albums_are_turned_off() -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=0.0) as chat:
        ada = await chat.platform.user("Ada")
        first, second = await chat.platform.album(ada, pictures("a", "b"), text="look")
        await chat.platform.wait_for_acknowledged(first, second)
        await chat.platform.say(ada, "done")
        await chat.platform.wait_for_answers(ada.chat_id, 2)
    assert [len(told) for told in agent.seen[:2]] == [1, 3]


@pytest.mark.parametrize("command", ["/cancel", "/new"])
async def test_an_album_is_dropped_while_it_waits(command: str) -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=60.0) as chat:
        ada = await chat.platform.user("Ada")
        events = await chat.platform.album(ada, pictures("a", "b"), text="look")
        await chat.platform.wait_for_acknowledged(*events)
        await chat.platform.say(ada, command)
        await chat.wait_for_answers(ada.chat_id)
        await chat.platform.say(ada, "after")
        assert (await chat.wait_for_answers(ada.chat_id, 2))[1] == "after"
        assert [error for _, error in await list_failed(chat)] == ["cancelled"] * 2
    assert list_shown(agent) == [["after"]]


async def test_an_album_interrupts_what_is_answered_and_not_itself() -> None:
    agent = Holding()
    async with open_chat(agent, album_seconds=SECONDS, on_busy="interrupt") as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hold one")
        await agent.held.wait()
        await chat.platform.set(hold=True)
        with claims_wait_for(get_store(chat.host), 2):
            await release(chat, *await chat.platform.album(ada, pictures("a", "b"), text="look"))
            assert await chat.wait_for_answers(ada.chat_id) == ["look"]
        assert await list_failed(chat) == [("hold one", "cancelled")]
    assert list_shown(agent)[-1] == ["hold one", "look", "a", "b"]


@pytest.mark.parametrize("gather_seconds", [0.0, SECONDS])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
async def test_the_rest_of_an_album_comes_with_the_picture_that_names_the_bot(
    order: tuple[int, ...], gather_seconds: float
) -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=SECONDS, gather_seconds=gather_seconds) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        await chat.platform.set(hold=True)
        events = await chat.platform.album(ada, pictures("a", "b", "c"), text="@desk look", chat_id=group.chat_id)
        with claims_wait_for(get_store(chat.host), 3):
            await release(chat, *(events[place] for place in order))
            assert await chat.wait_for_answers(group.chat_id) == ["look"]
    assert list_shown(agent) == [["look", "a", "b", "c"]]


@pytest.mark.parametrize("settings", [{}, {"gather_seconds": SECONDS}, {"on_busy": "interrupt"}])
async def test_an_album_that_names_nobody_is_not_answered(settings: dict[str, Any]) -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=SECONDS, **settings) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        await chat.platform.set(hold=True)
        first, second = await chat.platform.album(ada, pictures("a", "b"), text="look", chat_id=group.chat_id)
        said = await chat.platform.say(ada, "@desk hello", chat_id=group.chat_id)
        # Around a message that is answered, and after it.
        await release(chat, first, said, second)
        assert await chat.wait_for_answers(group.chat_id) == ["hello"]
        await release(chat, await chat.platform.say(ada, "@desk bye", chat_id=group.chat_id))
        assert await chat.wait_for_answers(group.chat_id, 2) == ["hello", "bye"]
        # A new message of a person gives up what of theirs still waits.
        assert {error for _, error in await list_failed(chat)} <= {"cancelled"}
    assert [told[-1] for told in list_shown(agent)] == ["hello", "bye"]
    assert not {"look", "a", "b"} & set(list_shown(agent)[-1])


STRICT: list[dict[str, Any]] = [
    {"allowlist": NativeIdAllowlist(["nobody"])},
    {"linker": OneTimeCodeIdentityLinker(), "require_link": True},
    {"event_limits": EventLimits(per_caller=RateLimit(1, per_seconds=3_600.0))},
]


@pytest.mark.parametrize("settings", STRICT)
async def test_nothing_is_said_to_a_stranger_whose_album_names_nobody(settings: dict[str, Any]) -> None:
    agent = EchoAgent()
    async with open_chat(agent, album_seconds=0.01, **settings) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        events = await chat.platform.album(ada, pictures("a", "b"), text="look", chat_id=group.chat_id)
        await chat.platform.wait_for_acknowledged(*events)
        store = get_store(chat.host)

        async def done() -> bool:
            return not await store.inbox.waiting("nobody")

        await until(done)
        assert await store.outbox.find() == []
        assert await list_failed(chat) == []
    assert agent.seen == []
