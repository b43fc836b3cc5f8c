"""Questions where a hook decides who a request is for: their own person can answer them, and nobody else can."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost, ChannelIdentity, ChannelRequest, ChannelSession
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import serving
from frontdesk_testing.messages import MessageChannel
from tests.cards import outcome_in
from tests.scenarios.cast import call
from tests.scenarios.stores import new_store
from tests.scenarios.test_approvals import Bank
from tests.testing.messages.starting import new_platform

Hook = Callable[..., ChannelRequest]


def _user(request: ChannelRequest) -> str:
    return request.attributes.get("app_user", "ann")


def adds_attributes(request: ChannelRequest, **_: Any) -> ChannelRequest:
    assert request.identity is not None
    attributes = {**request.identity.attributes, "user": _user(request)}
    return replace(request, identity=replace(request.identity, attributes=attributes))


def sets_another_identity(request: ChannelRequest, **_: Any) -> ChannelRequest:
    return replace(request, identity=ChannelIdentity("app", _user(request)))


def sets_an_isolation_key(request: ChannelRequest, **_: Any) -> ChannelRequest:
    session = request.session or ChannelSession()
    return replace(request, session=replace(session, isolation_key=_user(request)))


def by_attribute(identity: ChannelIdentity) -> str:
    return identity.attributes["user"]


def by_attribute_or_guest(identity: ChannelIdentity) -> str:
    return identity.attributes.get("user", "guest")


WAYS: dict[str, tuple[Hook, Any]] = {
    "attributes that the resolver needs": (adds_attributes, by_attribute),
    "attributes that the resolver prefers": (adds_attributes, by_attribute_or_guest),
    "another identity": (sets_another_identity, None),
    "an isolation key": (sets_an_isolation_key, None),
}


@dataclass
class TwoDoorHost:
    """A host with two HTTP doors, what its tool has done, and what its hook has seen."""

    http: httpx.AsyncClient
    bank: Bank
    seen: list[ChannelRequest] = field(default_factory=list[ChannelRequest])

    async def post(self, path: str, user: str, **body: Any) -> httpx.Response:
        return await self.http.post(path, json={**body, "app_user": user})

    async def responses(self, user: str, *items: Any, **body: Any) -> httpx.Response:
        return await self.post("/responses", user, input=list(items), **body)


@asynccontextmanager
async def open_house(way: str, *turns: Any) -> AsyncIterator[TwoDoorHost]:
    hook, resolver = WAYS[way]
    bank, seen = Bank(), list[ChannelRequest]()

    def watched(request: ChannelRequest, **more: Any) -> ChannelRequest:
        seen.append(request)
        return hook(request, **more)

    doors = [ResponsesChannel(run_hook=watched), InvocationsChannel(run_hook=watched, extra_fields="attributes")]
    agent = bank.agent(*(turns or ([call("pay", amount=5)], ["done"])))
    host = AgentFrameworkHost(agent, channels=doors, identity_resolver=resolver, store=new_store())
    async with serving(host) as client:
        yield TwoDoorHost(client.http, bank, seen)


def _yes(question: Any) -> dict[str, Any]:
    return {"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": True}


def _text(response: httpx.Response) -> str:
    return response.json()["output"][-1]["content"][0]["text"]


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_to_invocations_was_refused_to_whom_the_question_was_for(way: str) -> None:
    async with open_house(way) as house:
        (question,) = (await house.post("/invocations", "ann", message="pay")).json()["approvals"]
        answer = {"id": question["id"], "approved": True}
        other = await house.post("/invocations", "bob", approval=answer)
        made_up = await house.post("/invocations", "bob", approval={**answer, "id": "made-up"})
        assert (other.status_code, other.json()["error"]) == (404, made_up.json()["error"])
        assert house.bank.paid == []
        given = await house.post("/invocations", "ann", approval=answer)
        assert (given.status_code, given.json()["text"], house.bank.paid) == (200, "done", [5]), given.text
        request = house.seen[-1]
        assert (request.operation, request.approvals[0].approval_id, request.input) == (
            "approval",
            question["id"],
            None,
        )


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_to_responses_was_refused_to_whom_the_question_was_for(way: str) -> None:
    async with open_house(way) as house:
        (question,) = (await house.post("/responses", "ann", input="pay")).json()["output"]
        other = await house.responses("bob", _yes(question))
        made_up = await house.responses("bob", _yes({"id": "made-up"}))
        assert (other.status_code, other.json()["error"]) == (404, made_up.json()["error"])
        assert (other.json()["error"]["param"], house.bank.paid) == ("input", [])
        given = await house.responses("ann", _yes(question))
        assert (given.status_code, house.bank.paid) == (200, [5]), given.text
        assert _text(given) == "done"
        assert (house.seen[-1].operation, len(house.seen[-1].approvals)) == ("approval", 1)


@pytest.mark.parametrize("way", WAYS)
async def test_a_repeated_question_was_not_compared_with_the_one_that_was_asked(way: str) -> None:
    async with open_house(way) as house:
        (question,) = (await house.post("/responses", "ann", input="pay")).json()["output"]
        forged = {**question, "arguments": '{"amount": 1}'}
        refused = await house.responses("ann", forged, _yes(question))
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[0]"), refused.text
        # Whoever it was not asked of learns nothing of what was asked.
        assert (await house.responses("bob", forged, _yes(question))).status_code == 404
        assert house.bank.paid == []
        assert (await house.responses("ann", question, _yes(question))).status_code == 200
        assert house.bank.paid == [5]


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_another_question_followed_was_dropped(way: str) -> None:
    asks = [call("pay", "call-1", amount=5), call("pay", "call-2", amount=7)]
    async with open_house(way, asks, ["done"]) as house:
        first, second = (await house.post("/responses", "ann", input="pay")).json()["output"]
        given = await house.responses("ann", first, _yes(first), second, _yes(second))
        assert (given.status_code, sorted(house.bank.paid)) == (200, [5, 7]), given.text


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_under_a_key_was_refused_to_whom_the_question_was_for(stream: bool) -> None:
    async with open_house("another identity") as house:
        (question,) = (await house.post("/responses", "ann", input="pay")).json()["output"]
        body = {"input": [question, _yes(question)], "app_user": "ann", "stream": stream}
        for _ in range(2):
            given = await house.http.post("/responses", json=body, headers={"idempotency-key": "once"})
            assert (given.status_code, "done" in given.text) == (200, True), given.text
        assert house.bank.paid == [5]


@pytest.mark.parametrize("way", WAYS)
async def test_a_button_was_refused_to_whom_the_question_was_for(way: str) -> None:
    hook, resolver = WAYS[way]
    bank = Bank()
    async with new_platform() as platform:
        chat = MessageChannel(
            platform_url=platform.url, token=platform.token, intake="polling", poll_seconds=1.0, run_hook=hook
        )
        agent = bank.agent([call("pay", amount=5)], ["done"])
        host = AgentFrameworkHost(agent, channels=[chat], identity_resolver=resolver, store=new_store())
        async with serving(host):
            ann = await platform.user("Ann")
            await platform.say(ann, "pay")
            (question,) = await platform.wait_for_answers(ann.chat_id, 1)
            await platform.click(ann, question, "Approve")
            shown = await platform.wait_for_answers(ann.chat_id, 2)
            assert [outcome_in(one.text) for one in shown] == ["pay: approved by “Ann”", "done"]
    assert bank.paid == [5]
