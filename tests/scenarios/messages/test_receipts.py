"""The platform says later what became of a message that it has accepted."""

import asyncio
from typing import Any

import msgspec
import pytest

from frontdesk.models.delivery import Delivery
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import get_store
from frontdesk_testing.messages.platform.records import EventState
from frontdesk_testing.messages.wire import Event
from tests.scenarios.messages.chat import MessagesHost, open_chat, post


async def receipts(chat: MessagesHost) -> list[EventState]:
    return [state for state in await chat.platform.events() if state.event.receipt is not None]


async def only_delivery(chat: MessagesHost) -> Delivery:
    (delivery,) = await get_store(chat.host).outbox.find()
    return delivery


def hold_pushes(chat: MessagesHost) -> asyncio.Event:
    """Keep what the platform has accepted from being recorded until the event is set."""
    channel: Any = chat.channel
    push_part, release = channel.push_part, asyncio.Event()

    async def held(part: Any) -> Any:
        receipt = await push_part(part)
        await release.wait()
        return receipt

    channel.push_part = held
    return release


async def test_a_receipt_that_comes_after_the_push_was_recorded() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        (answer,) = await chat.platform.wait_for_answers(ada.chat_id)
        event = await chat.platform.report(ada.chat_id, answer.message_id, "delivered")
        await chat.platform.wait_for_acknowledged(event)
        delivery = await only_delivery(chat)
        assert (delivery.status, [attempt.code for attempt in delivery.history]) == (
            "accepted",
            ["accepted", "delivered"],
        )


async def test_a_receipt_that_comes_before_the_push_is_recorded_is_sent_again() -> None:
    async with open_chat(EchoAgent()) as chat:
        await chat.platform.set(receipts=True, retry_seconds=0.05)
        release = hold_pushes(chat)
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")

        async def refused() -> bool:
            return any(state.answers for state in await receipts(chat))

        await chat.platform.until(refused)
        assert (await only_delivery(chat)).status == "sending"
        release.set()
        (receipt,) = await receipts(chat)
        await chat.platform.wait_for_acknowledged(receipt.event)
        (receipt,) = await receipts(chat)
        assert (receipt.answers[0], receipt.answers[-1]) == (503, 200)
        delivery = await only_delivery(chat)
        assert [attempt.code for attempt in delivery.history] == ["accepted", "delivered"]
        assert len(await chat.platform.answers(ada.chat_id)) == 1


async def test_a_failure_makes_a_dead_letter_that_an_operator_can_send_again() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        (answer,) = await chat.platform.wait_for_answers(ada.chat_id)
        event = await chat.platform.report(ada.chat_id, answer.message_id, "failed", reason="the phone is off")
        await chat.platform.wait_for_acknowledged(event)
        dead = await only_delivery(chat)
        assert (dead.status, dead.error) == ("dead", "not delivered: the phone is off")
        # The platform would take the same key for the message that failed.
        await chat.platform.set(dedupe=False)
        await chat.host.deliveries.retry(dead.delivery_id)
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello", "hello"]


async def test_a_receipt_of_a_live_answer_is_noted_once_the_answer_is_whole() -> None:
    async with open_chat(EchoAgent(), live="auto") as chat:
        await chat.platform.set(receipts=True, retry_seconds=0.05)
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        await chat.platform.wait_for_answers(ada.chat_id)
        (receipt,) = await receipts(chat)
        await chat.platform.wait_for_acknowledged(receipt.event)
        assert (await only_delivery(chat)).history[-1].code == "delivered"


@pytest.mark.parametrize(("age", "status"), [(0.0, 503), (3600.0, 200)])
async def test_a_receipt_of_a_message_that_nobody_knows_is_refused_for_a_while(age: float, status: int) -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        event = await chat.platform.say(ada, "hello")
        (answer,) = await chat.platform.wait_for_answers(ada.chat_id)
        told: Event = await chat.platform.report(ada.chat_id, answer.message_id, "delivered")
        assert told.receipt is not None
        unknown = msgspec.structs.replace(told.receipt, message_id="msg_of_nobody")
        response = await post(chat, msgspec.structs.replace(told, receipt=unknown, at=event.at - age))
        assert response.status_code == status


async def test_polls_have_no_receipts() -> None:
    async with open_chat(EchoAgent(), intake="polling", poll_seconds=1.0) as chat:
        await chat.platform.set(receipts=True)
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one")
        await chat.platform.say(ada, "two")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["one", "two"]
        assert [state.attempts for state in await receipts(chat)] == [0, 0]
