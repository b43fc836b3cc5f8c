"""The host speaks first: into the history and to the person, once, and only to those who may come in."""

import asyncio
import logging
from pathlib import Path

import pytest
from agent_framework import Content, Message

from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError, UnsupportedError
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.session import SessionName
from tests.scenarios.delivery.house import ChatHost, open_house, person
from tests.scenarios.desk import until

ANN = ChannelIdentity(channel="chat", native_id="ann")


async def history(house: ChatHost, owner: str) -> list[str]:
    session = await house.store.sessions.find(SessionName(owner=owner, kind="tracked"))
    if session is None:
        return []
    messages = await house.store.sessions.history(owner, session.session_id)
    assert session.messages == len(messages)
    return [one.text for one in messages]


async def test_a_person_is_told_something_and_it_is_part_of_their_conversation(tmp_path: Path) -> None:
    heard: list[list[str]] = []

    async def target(messages: list[Message]) -> str:
        heard.append([one.text for one in messages])
        return "I know"

    async with open_house(tmp_path, target=target) as house:
        ann = await house.meet("chat", "Ann", "ann")
        (sent,) = await house.host.deliver(person(ANN), "Your taxi is here.")
        assert sent.owner == person(ANN)
        assert (await house.wait_for_answers("chat", ann, 2))[1] == "Your taxi is here."
        assert await history(house, person(ANN)) == ["hello", "I know", "Your taxi is here."]
        await house.platforms["chat"].say(ann, "where?")
        await house.wait_for_answers("chat", ann, 3)
        assert heard[-1][-2:] == ["Your taxi is here.", "where?"] or heard[-1] == ["where?"]
        assert (await history(house, person(ANN)))[2:] == ["Your taxi is here.", "where?", "I know"]


async def test_the_same_key_says_it_once(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        first = await house.host.deliver(ANN, "one", idempotency_key="order 7")
        second = await house.host.deliver(ANN, "one", idempotency_key="order 7")
        at_once = await asyncio.gather(*(house.host.deliver(ANN, "two", idempotency_key="order 8") for _ in range(10)))
        assert [one.delivery_id for one in first] == [one.delivery_id for one in second]
        assert len({one.delivery_id for many in at_once for one in many}) == 1
        await house.host.deliver(ANN, "three")
        assert await house.wait_for_answers("chat", ann, 3) == ["one", "two", "three"]
        assert await history(house, person(ANN)) == ["one", "two", "three"]


async def test_two_people_may_have_the_same_key(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        people = [await house.platforms["chat"].user(name, user_id=name) for name in ("ann", "ben")]
        for one in people:
            await house.host.deliver(
                ChannelIdentity(channel="chat", native_id=one.user_id), f"hi {one.name}", idempotency_key="daily"
            )
        assert [await house.wait_for_answers("chat", one, 1) for one in people] == [["hi ann"], ["hi ben"]]


async def test_a_message_with_more_than_text_keeps_its_parts(tmp_path: Path) -> None:
    picture = Content.from_data(b"png", "image/png")
    async with open_house(tmp_path, text_limit=10) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        message = Message("assistant", [Content.from_text("Look at this, please."), picture])
        sent = await house.host.deliver(ANN, message)
        said = await house.platforms["chat"].wait_for_answers(ann.chat_id, len(sent))
        assert len(sent) > 2
        assert "".join(one.text for one in said).replace(" ", "") == "Lookatthis,please."
        assert said[-1].media
        assert [one.part for one in sent] == list(range(len(sent)))


async def test_who_cannot_be_reached_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        nobody = ChannelIdentity(channel="invocations", native_id="ann")
        for to in ("person nobody", nobody, ChannelIdentity(channel="fax", native_id="1")):
            with pytest.raises(UnsupportedError) as caught:
                await house.host.deliver(to, "hi")
        assert caught.value.message.startswith(
            "There is no channel 'fax' that can speak to people first; those that can: "
        )
        with pytest.raises(InvalidRequestError):
            await house.host.deliver(ANN, Message("user", ["hi"]))
        assert list(await house.host.deliveries.list()) == []


async def test_a_dead_letter_is_found_tried_again_and_arrives(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="frontdesk.audit")
    async with open_house(tmp_path, text_limit=10) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        await house.platforms["chat"].fail("blocked", method="send", times=1)
        sent = await house.host.deliver(ANN, "It is ten o'clock, dear.")
        dead = await house.wait_for_ends("chat", "dead")
        assert [one.error for one in reversed(dead)] == ["blocked", *["an earlier part is dead"] * (len(sent) - 1)]
        with pytest.raises(NotFoundError):
            await house.host.deliveries.get("dlv_none")
        again = await house.host.deliveries.retry(sent[0].delivery_id, by="olga")
        assert again.status in ("pending", "sending", "accepted")
        assert "".join(await house.wait_for_answers("chat", ann, len(sent))).replace(" ", "") == "Itisteno'clock,dear."
        accepted = await house.wait_for_ends("chat", "accepted")
        assert [one.code for one in accepted[-1].history] == ["blocked", "tried again", "accepted"]
        with pytest.raises(ConflictError):
            await house.host.deliveries.retry(sent[0].delivery_id)
        assert (
            f"delivery retried by operator: delivery_id={sent[0].delivery_id} channel=chat actor=olga "
            "previous_status=dead" in caplog.text
        )
        assert "clock" not in caplog.text


async def test_what_waits_can_be_dropped_and_what_follows_goes_on(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        ann = await house.platforms["chat"].user("Ann", user_id="ann")
        await house.platforms["chat"].fail("flood", method="send", times=1, retry_after=3600)
        (first,) = await house.host.deliver(ANN, "one")

        async def waits() -> bool:
            return (await house.host.deliveries.get(first.delivery_id)).error == "flood"

        await until(waits)
        await house.host.deliver(ANN, "two")
        dropped = await house.host.deliveries.drop(first.delivery_id)
        assert dropped.status == "cancelled"
        assert await house.wait_for_answers("chat", ann, 1) == ["two"]
        with pytest.raises(ConflictError):
            await house.host.deliveries.drop(first.delivery_id)
        await house.wait_for_ends("chat")
        assert await house.host.deliveries.counts() == {"cancelled": 1, "accepted": 1}


async def test_a_turn_that_speaks_first_in_its_own_conversation_is_told_at_once(tmp_path: Path) -> None:
    """It would wait for its own end."""
    refused: list[str] = []

    async def target(text: str) -> str:
        for house in houses:
            try:
                await house.host.deliver(ANN, "psst")
            except ConflictError as error:
                refused.append(error.code)
        return "done"

    houses: list[ChatHost] = []
    async with open_house(tmp_path, target=target) as house:
        houses.append(house)
        await house.meet("chat", "Ann", "ann")
        assert refused == ["own_turn"]
