"""What waits for a place that the platform has closed ends at once, and nothing else does."""

from typing import Any

from frontdesk import AgentFrameworkHost
from frontdesk.clock import SystemClock
from frontdesk.models.delivery import Delivery
from frontdesk_testing.store_samples import delivery
from tests.scenarios.delivery.parcel_chat import ParcelChat, echo
from tests.scenarios.stores import new_store

LATER = 3600.0


def build_waiting(name: str, place: str, *, at: float, **fields: Any) -> Delivery:
    due = {"created_at": at, "due_at": at + LATER}
    return delivery(name, channel="chat", conversation_id=place, answer_id=name, **{**due, **fields})


async def test_what_waits_for_a_place_ends_with_the_reason() -> None:
    chat, store, now = ParcelChat(), new_store(), SystemClock().now()
    host = AgentFrameworkHost(echo, channels=[chat], store=store)
    rows = [
        build_waiting("first", "team", at=now),
        build_waiting("second", "team", at=now),
        build_waiting("thread", '["team","5"]', at=now),
        build_waiting("late", "team", at=now + 10),
        build_waiting("unclear", "other team", at=now, status="unknown"),
        build_waiting("another", '["team 2","5"]', at=now),
        build_waiting("elsewhere", "team", at=now).replace(channel="mail"),
    ]
    async with host.app.router.lifespan_context(host.app):
        async with store.transaction() as transaction:
            for row in rows:
                transaction.add_delivery(row)
        context, also = chat.context, (lambda name: name.startswith('["team",'))
        assert await context.events.end_deliveries("team", reason="kicked", before=now + 5, also=also) == 3
        assert await context.events.end_deliveries("team", reason="kicked", before=now + 5, also=also) == 0
        assert await context.events.end_deliveries("other team", reason="kicked") == 0
        found = {row.delivery_id: row for row in await store.outbox.find()}
    ended = [name for name, row in found.items() if row.status == "dead"]
    assert sorted(ended) == ["first", "second", "thread"]
    assert {(found[name].error, found[name].history[-1].code) for name in ended} == {("kicked", "kicked")}


async def test_the_old_name_of_a_conversation_that_moved_is_closed_and_the_conversation_is_not() -> None:
    chat, store, now = ParcelChat(), new_store(), SystemClock().now()
    host = AgentFrameworkHost(echo, channels=[chat], store=store)
    async with host.app.router.lifespan_context(host.app):
        async with store.transaction() as transaction:
            transaction.add_delivery(build_waiting("first", "old", at=now))
        await chat.context.events.alias_conversation("old", "new")
        assert await chat.context.events.end_deliveries("old", reason="kicked") == 0
        assert await chat.context.events.end_deliveries("new", reason="kicked") == 1
