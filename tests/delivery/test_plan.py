"""Who gets what: rows are made before anything is written, and one destination's trouble is its own."""

from collections.abc import Sequence
from typing import Any

import pytest
from agent_framework import AgentResponse, Content, Message

from frontdesk.clock import SystemClock
from frontdesk.delivery.plan import AsksAllow, Planner
from frontdesk.delivery.push import read_payload, send
from frontdesk.delivery.routing import KEPT_APART
from frontdesk.ids import RandomIds
from frontdesk.interfaces.channel import Channel, ChannelPush, ChannelPushCodec
from frontdesk.interfaces.hooks import ChannelResponseContext
from frontdesk.models.delivery import Delivery
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord, LastSeen
from frontdesk.models.reply import ResponseTarget
from frontdesk.models.request import AdmittedRequest, ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord
from frontdesk.serialization.codec import from_json, to_json
from frontdesk.stores.memory.store import InMemoryStateStore
from tests.delivery.scripted import ScriptedChannel

WEB = ChannelIdentity(channel="web", native_id="ann")
CHAT = ChannelIdentity(channel="chat", native_id="7", attributes={"name": "Ann"})
SMS = ChannelIdentity(channel="sms", native_id="+49")
QUESTION = Message("user", [Content.from_text("what time is it?")])
ANSWER = AgentResponse(messages=[Message("assistant", [Content.from_text("ten")])])
RUN = RunRecord(run_id="run_1", owner="ann", channel="web", status="completed", created_at=0.0, input=[QUESTION])


class Plan:
    """A planner and what it knows."""

    def __init__(self, *channels: Channel, allow: AsksAllow | None = None) -> None:
        self.store = InMemoryStateStore()
        known = {one.name: one for one in (*channels, ScriptedChannel("web"))}
        self.planner = Planner(self.store, known, RandomIds(), SystemClock(), allow=allow)

    async def know(self, *identities: ChannelIdentity) -> None:
        async with self.store.transaction() as transaction:
            for one in identities:
                transaction.remember_identity(IdentityRecord(identity=one, isolation_key="ann", created_at=0.0))

    async def rows(self, request: ChannelRequest, *, pushes: bool = False, who: Any = WEB) -> Sequence[Delivery]:
        admitted = admit(request, pushes=pushes, who=who)
        way = await self.planner.route(admitted)
        return await self.planner.rows(admitted, ANSWER, RUN, way, [QUESTION])


def admit(request: ChannelRequest, *, pushes: bool = False, who: ChannelIdentity = WEB) -> AdmittedRequest:
    """Only the gate admits requests; what it admitted is read from a record."""
    tree: Any = {"$": "AdmittedRequest", "owner": "ann", "run_id": "run_1", "admitted_at": 0.0, "pushes": pushes}
    tree |= {"request": to_json(request), "caller": to_json(Caller(identity=who)), "identity": to_json(who)}
    return from_json(tree)


def asks(target: ResponseTarget, **fields: Any) -> ChannelRequest:
    return ChannelRequest(channel="web", response_target=target, **fields)


async def test_every_destination_has_its_own_answer_and_the_echo_comes_first() -> None:
    plan = Plan(ScriptedChannel("chat"), ScriptedChannel("sms"))
    await plan.know(CHAT, SMS)
    rows = await plan.rows(asks(ResponseTarget.all_linked(echo_input=True)))
    assert [(one.channel, one.payload, one.is_echo, one.part, one.parts) for one in rows] == [
        ("chat", "what time is it?", True, 0, 2),
        ("chat", "ten", False, 1, 2),
        ("sms", "what time is it?", True, 0, 2),
        ("sms", "ten", False, 1, 2),
    ]
    assert len({one.delivery_id for one in rows}) == 4
    assert len({one.answer_id for one in rows}) == 2
    assert rows[0].identity == CHAT


async def test_an_echo_looked_like_an_answer_to_a_channel_that_has_only_push() -> None:
    class Plain(ScriptedChannel):
        def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
            return [[one.role for one in result.result.messages]]

    plan = Plan(Plain("chat"))
    await plan.know(CHAT)
    rows = await plan.rows(asks(ResponseTarget.channel("chat", echo_input=True)))
    assert [one.payload for one in rows] == [["user"], ["assistant"]]


async def test_where_nobody_has_said_anything_there_is_no_echo() -> None:
    plan = Plan(ScriptedChannel("chat"))
    await plan.know(CHAT)
    admitted = admit(asks(ResponseTarget.channel("chat", echo_input=True)))
    way = await plan.planner.route(admitted)
    (row,) = await plan.planner.rows(admitted, ANSWER, RUN, way, [])
    assert not row.is_echo


async def test_a_tier_that_policy_keeps_apart_gets_nothing() -> None:
    tiers = {"web": "internal", "chat": "internal", "sms": "public"}
    asked: list[tuple[str, str]] = []

    async def same_tier(source: str, there: str) -> bool:
        asked.append((source, there))
        return tiers[source] == tiers[there]

    plan = Plan(ScriptedChannel("chat"), ScriptedChannel("sms"), ScriptedChannel("fax"), allow=same_tier)
    await plan.know(CHAT, SMS)
    admitted = admit(asks(ResponseTarget.all_linked(echo_input=True)))
    way = await plan.planner.route(admitted)
    assert [one.channel for one in way.destinations] == ["chat"]
    assert [(one.address.channel, one.reason) for one in way.skipped] == [("sms", KEPT_APART)]
    rows = await plan.planner.rows(admitted, ANSWER, RUN, way, [QUESTION])
    assert {one.channel for one in rows} == {"chat"}
    # Asked about the channels that count, and about no other.
    assert sorted(set(asked) - {("web", "web")}) == [("web", "chat"), ("web", "sms")]


async def test_an_answer_to_an_event_goes_back_to_its_conversation() -> None:
    plan = Plan(ScriptedChannel("chat"))
    request = ChannelRequest(channel="chat", conversation_id="group 1", group=True)
    (row,) = await plan.rows(request, pushes=True, who=CHAT)
    assert (row.conversation_id, row.destination) == ("group 1", ("chat", "group 1"))


async def test_a_direct_chat_has_one_queue_whoever_speaks_first() -> None:
    plan = Plan(ScriptedChannel("chat"))
    request = ChannelRequest(channel="chat", conversation_id="dm 1")
    (answered,) = await plan.rows(request, pushes=True, who=CHAT)
    (told,) = await plan.planner.proactive("ann", CHAT, ANSWER.messages, RUN, "key")
    assert answered.conversation_id == "dm 1"
    assert answered.destination == told.destination == ("chat", "7")


async def test_the_payload_tells_nothing_of_what_the_run_has_read() -> None:
    class Whole(Channel, ChannelPush):
        name, path = "whole", "/whole"

        def contribute(self, context: Any) -> Any:
            return None

        async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
            return None

    plan = Plan(Whole())
    there = ChannelIdentity(channel="whole", native_id="1")
    (row,) = await plan.rows(asks(ResponseTarget.identity(there)))
    assert "what time" not in str(row.payload)
    again: HostedRunResult[Any] = from_json(row.payload)
    assert again.result.text == "ten"


async def test_the_hook_gets_a_copy_and_its_failure_ends_its_destination_alone() -> None:
    def angry(result: HostedRunResult[Any], *, context: ChannelResponseContext) -> HostedRunResult[Any]:
        result.result.messages.clear()
        raise RuntimeError("no")

    chat, sms = ScriptedChannel("chat"), ScriptedChannel("sms")
    chat.response_hook = angry
    plan = Plan(chat, sms)
    await plan.know(CHAT, SMS)
    dead, alive = await plan.rows(asks(ResponseTarget.channels(["chat", "sms"])))
    assert (dead.status, dead.error, dead.ended_at) == ("dead", "hook_failed", dead.created_at)
    assert (alive.status, alive.payload) == ("pending", "ten")


@pytest.mark.parametrize("content", [object(), ValueError])
async def test_what_has_no_json_form_ends_its_destination_alone(content: Any) -> None:
    class Odd(ScriptedChannel):
        def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
            if content is ValueError:
                raise ValueError("broken")
            return [content]

    plan = Plan(Odd("chat"), ScriptedChannel("sms"))
    await plan.know(CHAT, SMS)
    dead, alive = await plan.rows(asks(ResponseTarget.channels(["chat", "sms"])))
    assert (dead.status, dead.error) == ("dead", "not_encodable")
    assert alive.status == "pending"


async def test_a_channel_with_a_codec_of_its_own_gets_back_what_it_gave() -> None:
    class Coded(ScriptedChannel, ChannelPushCodec):
        def encode_push(self, result: Any) -> Any:
            return {"secret form": result[::-1]}

        def decode_push(self, payload: Any) -> Any:
            return payload["secret form"][::-1]

    chat = Coded("chat")
    plan = Plan(chat)
    await plan.know(CHAT)
    (row,) = await plan.rows(asks(ResponseTarget.channel("chat")))
    assert row.payload == {"secret form": "net"}
    await send(chat, row, read_payload(row))
    assert chat.texts() == ["ten"]


async def test_a_person_is_reached_where_they_were_last_seen_or_else_anywhere() -> None:
    plan = Plan(ScriptedChannel("chat"), ScriptedChannel("sms"))
    assert await plan.planner.reach("ann") is None
    await plan.know(CHAT, SMS)
    assert await plan.planner.reach("ann") == CHAT
    async with plan.store.transaction() as transaction:
        transaction.see(LastSeen(isolation_key="ann", identity=SMS, conversation_id=None, at=1.0))
    assert await plan.planner.reach("ann") == SMS
