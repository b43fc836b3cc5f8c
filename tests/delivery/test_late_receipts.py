"""What a platform says after it accepted a part is noted, once, and a failure is shown to operators."""

import asyncio
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.delivery.receipts import settle
from frontdesk.models.delivery import ANEW, Attempt, Delivery, DeliveryStatus
from frontdesk_testing.store_samples import NOW, delivery
from tests.scenarios.delivery.parcel_chat import ParcelChat, echo
from tests.scenarios.desk import until
from tests.scenarios.stores import new_store

FAILED = "not delivered: blocked"
STATES: list[tuple[DeliveryStatus, str, DeliveryStatus]] = [
    ("accepted", "delivered", "accepted"),
    ("accepted", FAILED, "dead"),
    ("unknown", "delivered", "accepted"),
    ("unknown", FAILED, "dead"),
    ("dead", "delivered", "accepted"),
    ("dead", FAILED, "dead"),
    ("cancelled", "delivered", "cancelled"),
    ("cancelled", FAILED, "cancelled"),
]


def build_ended(status: DeliveryStatus = "accepted", *codes: str) -> Delivery:
    history = tuple(Attempt(at=NOW, code=code) for code in codes)
    return delivery(status=status, error="too old" if status == "dead" else None, ended_at=NOW, history=history)


def settle_all(found: Delivery, *statements: tuple[str, float | None]) -> Delivery:
    """A delivery after some statements, each a second later."""
    for number, (code, at) in enumerate(statements, start=1):
        found = settle(found, code, at=at, now=NOW + number) or found
    return found


@pytest.mark.parametrize(("before", "code", "after"), STATES)
def test_a_statement_changes_what_has_ended(before: DeliveryStatus, code: str, after: DeliveryStatus) -> None:
    settled = settle_all(build_ended(before), (code, None))
    assert settled.status == after
    assert [one.code for one in settled.history] == [code]
    # Why it never went out is not overwritten.
    assert settled.error == ("too old" if (before, after) == ("dead", "dead") else code if after == "dead" else None)


@pytest.mark.parametrize("code", ["delivered", FAILED])
def test_a_repeat_changes_nothing(code: str) -> None:
    once = settle_all(build_ended(), (code, None))
    assert settle(once, code, at=None, now=NOW + 9) is None
    assert settle(once, code, at=NOW + 1, now=NOW + 9) is None


@pytest.mark.parametrize(
    ("statements", "status", "noted"),
    [
        ([(FAILED, None), ("delivered", None)], "accepted", 2),
        ([("delivered", None), (FAILED, None)], "dead", 2),
        # The first one again, after the second.
        ([(FAILED, None), ("delivered", None), (FAILED, None)], "accepted", 2),
        # The platform's own times count, in whichever order they arrive.
        ([(FAILED, NOW + 20), ("delivered", NOW + 10)], "dead", 2),
        ([("delivered", NOW + 20), (FAILED, NOW + 10)], "accepted", 2),
        ([("delivered", NOW + 10), (FAILED, NOW + 20)], "dead", 2),
    ],
)
def test_the_newest_statement_decides_and_none_is_lost(statements: Any, status: DeliveryStatus, noted: int) -> None:
    settled = settle_all(build_ended(), *statements)
    assert (settled.status, len(settled.history)) == (status, noted)


def test_after_another_try_a_platform_may_say_the_same_again() -> None:
    again = build_ended("accepted", FAILED, ANEW, "accepted")
    assert settle_all(again, (FAILED, None)).status == "dead"


async def test_a_failure_after_acceptance_is_a_dead_letter_that_can_be_sent_again() -> None:
    chat = ParcelChat()
    host = AgentFrameworkHost(echo, channels=[chat, ParcelChat("other")], store=new_store())
    async with host.app.router.lifespan_context(host.app):
        part = await chat.hear(chat.who("ann"), "hello")

        async def settles(**names: Any) -> bool:
            return await chat.context.events.settle_delivery(**names)

        await until(lambda: settles(receipt="receipt 1", status="delivered"))
        key = part.idempotency_key
        assert await settles(key=key, status="delivered")
        assert (await host.deliveries.get(key)).status == "accepted"
        assert await settles(receipt="receipt 1", status="failed", reason="blocked\n by the user")
        (dead,) = await host.deliveries.list(status="dead")
        assert (dead.delivery_id, dead.error) == (key, "not delivered: blocked by the user")
        assert [one.code for one in dead.history] == ["accepted", "delivered", dead.error]
        await host.deliveries.retry(key)
        await until(lambda: settles(receipt="receipt 2", status="delivered"))
        # What is said of the earlier try is about nothing any more.
        assert not await settles(receipt="receipt 1", status="failed")
        assert (await host.deliveries.get(key)).status == "accepted"


async def test_unknown_names_and_those_of_other_channels_are_not_found() -> None:
    chat, other = ParcelChat(), ParcelChat("other")
    host = AgentFrameworkHost(echo, channels=[chat, other], store=new_store())
    async with host.app.router.lifespan_context(host.app):
        part = await chat.hear(chat.who("ann"), "hello")
        await until(lambda: chat.context.events.settle_delivery(receipt="receipt 1", status="delivered"))
        assert not await chat.context.events.settle_delivery(receipt="receipt 9", status="failed")
        assert not await chat.context.events.settle_delivery(key="dlv_9", status="failed")
        assert not await other.context.events.settle_delivery(receipt="receipt 1", status="failed")
        assert not await other.context.events.settle_delivery(key=part.idempotency_key, status="failed")
        wrong: list[Any] = [{}, {"receipt": "r", "key": "k"}]
        for names in wrong:
            with pytest.raises(ValueError, match="the receipt or the idempotency key"):
                await chat.context.events.settle_delivery(status="failed", **names)
        status: Any = "read"
        with pytest.raises(ValueError, match="must be"):
            await chat.context.events.settle_delivery(receipt="receipt 1", status=status)


async def test_of_many_that_say_the_same_at_once_it_is_noted_once() -> None:
    chat = ParcelChat()
    host = AgentFrameworkHost(echo, channels=[chat], store=new_store())
    async with host.app.router.lifespan_context(host.app):
        part = await chat.hear(chat.who("ann"), "hello")
        await until(lambda: chat.context.events.settle_delivery(receipt="receipt 1", status="delivered"))
        statements = [chat.context.events.settle_delivery(receipt="receipt 1", status="failed") for _ in range(10)]
        assert all(await asyncio.gather(*statements))
        noted = (await host.deliveries.get(part.idempotency_key)).history
        assert [one.code for one in noted] == ["accepted", "delivered", "not delivered"]
