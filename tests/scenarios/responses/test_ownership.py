"""A response belongs to whoever made it: for anybody else it looks exactly like one that does not exist."""

import asyncio
from typing import Any

import pytest
from openai import AuthenticationError

from frontdesk import ApiKeyAuth
from frontdesk_testing import GatedAgent
from frontdesk_testing.internals import active_runs
from tests.scenarios.responses.cast import Till, call, parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import answers, open_client

ALICE, BOB = "the-key-of-alice", "the-key-of-bob-who-is-a-stranger"
NOBODYS = "resp_01a1de0ebdda27dff63ab5ee2ae40287"


def _auth() -> ApiKeyAuth:
    return ApiKeyAuth({"alice": ALICE, "bob": BOB})


def _calls(response_id: str, item_id: str) -> list[tuple[str, str, Any]]:
    """Every request that can name a response, or an item of one."""
    path = f"/v1/responses/{response_id}"
    return [
        ("GET", path, None),
        ("DELETE", path, None),
        ("POST", f"{path}/cancel", None),
        ("GET", f"{path}/input_items", None),
        ("GET", f"{path}/input_items?after={item_id}", None),
        ("POST", "/v1/responses", {"input": "hello", "previous_response_id": response_id}),
        ("POST", "/v1/responses", {"input": "hello", "previous_response_id": response_id, "stream": True}),
        ("POST", "/v1/responses", {"input": "hello", "previous_response_id": response_id, "store": False}),
        ("POST", "/v1/responses", {"input": [{"type": "item_reference", "id": item_id}]}),
        ("POST", "/v1/responses", {"input": [{"id": item_id}], "stream": True}),
    ]


@pytest.mark.parametrize("known", [True, False])
async def test_anothers_response_looks_like_none_on_every_route(known: bool) -> None:
    async with open_client(parrot(), auth=_auth()) as desk:
        alice, bob = AsyncCustomer(desk, ALICE), AsyncCustomer(desk, BOB)
        made = await alice.create("hello")
        if known:
            # Someone who was here before owns something, only not this.
            await bob.create("hello")
        item = made.output[0].id
        for item_id in (item, f"in_{item.partition('_')[2]}"):
            nobodys = f"{item_id.partition('_')[0]}_{NOBODYS.partition('_')[2]}0000"
            stranger = await answers(desk, BOB, _calls(made.id, item_id))
            nothing = await answers(desk, BOB, _calls(NOBODYS, nobodys))
            assert {status for status, _ in stranger} <= {400, 404}
            assert stranger == nothing
        assert (await alice.retrieve(made.id)).output_text == "you said hello"


async def test_a_running_response_of_anothers_can_not_be_seen_or_cancelled() -> None:
    agent = GatedAgent()
    async with open_client(agent, auth=_auth()) as desk:
        alice = AsyncCustomer(desk, ALICE)
        waiting = asyncio.create_task(alice.create("one two"))
        await agent.started.wait()
        (run,) = active_runs(desk.host)
        run_id = run.record.run_id
        stranger = await answers(desk, BOB, _calls(run_id, "msg_1")[:4])
        assert stranger == await answers(desk, BOB, _calls(NOBODYS, "msg_1")[:4])
        assert {status for status, _ in stranger} == {404}
        agent.release.set()
        assert (await waiting).output_text == "one two"


async def test_anothers_question_can_not_be_answered() -> None:
    till = Till()
    async with open_client(till.agent([call("pay", amount=5)], ["paid"]), auth=_auth()) as desk:
        alice = AsyncCustomer(desk, ALICE)
        asked = await alice.create("pay 5")
        question: Any = asked.output[0]
        yes = {"type": "mcp_approval_response", "approval_request_id": question.id, "approve": True}
        made_up = {**yes, "approval_request_id": "mcpr_1"}
        for more in ({}, {"previous_response_id": asked.id}):
            calls = [("POST", "/v1/responses", {"input": [one], **more}) for one in (yes, made_up)]
            stranger, nothing = await answers(desk, BOB, calls)
            assert stranger == nothing
            assert stranger[0] in (400, 404)
        assert till.ran == []
        assert (await alice.create([yes], previous_response_id=asked.id)).output_text == "paid"
        assert till.ran == [("pay", 5)]


async def test_two_people_have_two_conversations() -> None:
    target = parrot()
    async with open_client(target, auth=_auth()) as desk:
        for key in (ALICE, BOB):
            customer = AsyncCustomer(desk, key)
            first = await customer.create(f"one by {key}")
            await customer.create("two", previous_response_id=first.id)
            assert target.client.said()[0] == ("user", f"one by {key}")


async def test_without_a_key_nobody_comes_in(customer_of: Any) -> None:
    async with open_client(parrot(), auth=_auth()) as desk:
        customer = customer_of(desk, "some-other-long-key")
        for ask in (customer.create("hello"), customer.models(), customer.retrieve(NOBODYS)):
            with pytest.raises(AuthenticationError):
                await ask
        assert desk.untouched()
