"""A workflow that asks: its requests are calls of a function, and their outputs take it further."""

import json
from typing import Any

import pytest
from agent_framework import FunctionTool
from openai import APIStatusError, BadRequestError

from tests.scenarios.cast import call
from tests.scenarios.pausing import Inn, Till, count_input, counter
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

YES = json.dumps({"accepted": True, "nights": 2})


def _output(item: Any, said: Any = YES) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": item.call_id, "output": said}


def _answer(item: Any, approve: bool = True) -> dict[str, Any]:
    return {"type": "mcp_approval_response", "approval_request_id": item.id, "approve": approve}


def _texts(response: Any) -> list[str]:
    return [item.content[0].text for item in response.output if item.type == "message"]


def _list_asked(response: Any) -> list[Any]:
    return [item for item in response.output if item.type == "function_call"]


async def test_a_request_goes_out_as_a_call_and_its_output_comes_back(customer_of: Any) -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        customer = customer_of(desk)
        asked = await customer.create("anna")
        (item,) = _list_asked(asked)
        assert (item.name, asked.status, _texts(asked)) == ("request_info", "completed", ["welcome anna"])
        assert json.loads(item.arguments) == {
            "request_id": item.call_id,
            "data": {"room": "attic", "price": 90},
            "response_type": "Choice",
        }
        assert _list_asked(await customer.retrieve(asked.id)) == [item]
        told = await customer.create([_output(item)], previous_response_id=asked.id)
        assert _texts(told) == ["anna takes the attic for 2", "bags for 2 nights"]
        then = await customer.create("who?", previous_response_id=told.id)
        assert _texts(then) == ["served anna"]
        assert inn.ledger == ["attic 2"]


async def test_a_streamed_request_comes_with_its_events(customer_of: Any) -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        customer = customer_of(desk)
        events, asked = await customer.stream("anna")
        (item,) = _list_asked(asked)
        arguments = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
        assert "".join(arguments) == item.arguments
        events, told = await customer.stream([_output(item)], previous_response_id=asked.id)
        assert _texts(told) == ["anna takes the attic for 2", "bags for 2 nights"]


async def test_branches_of_a_pause_go_their_own_ways() -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("anna")
        (item,) = _list_asked(asked)
        yes = await customer.create([_output(item)], previous_response_id=asked.id)
        no = await customer.create([_output(item, '{"accepted": false}')], previous_response_id=asked.id)
        assert (_texts(yes)[0], _texts(no)[0]) == ("anna takes the attic for 2", "pity")
        ben = await customer.create("ben", previous_response_id=no.id)
        told = await customer.create([_output(_list_asked(ben)[0])], previous_response_id=ben.id)
        assert _texts(await customer.create("who?", previous_response_id=told.id)) == ["served anna, ben"]
        assert _texts(await customer.create("who?", previous_response_id=yes.id)) == ["served anna"]


async def test_runs_that_leave_no_message_behind_are_told_apart_by_their_checkpoints() -> None:
    async with open_client(counter, run_hook=count_input) as desk:
        customer = AsyncCustomer(desk)
        first = await customer.create("1")
        second = await customer.create("2", previous_response_id=first.id)
        branch = await customer.create("4", previous_response_id=first.id)
        assert [json.loads(_texts(one)[0]) for one in (first, second, branch)] == [{"sum": 1}, {"sum": 3}, {"sum": 5}]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("certainly", "Choice"),
        ('{"accepted": 7}', "Choice"),
        ([{"type": "input_text", "text": "certainly"}], "Choice"),
        ([{"type": "input_image", "image_url": "data:image/png;base64,aGk="}], "Choice"),
    ],
)
async def test_an_output_of_another_type_is_refused_and_nothing_is_used_up(said: Any, message: str) -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("anna")
        (item,) = _list_asked(asked)
        with pytest.raises(BadRequestError, match=message) as refused:
            await customer.create([_output(item, said)], previous_response_id=asked.id)
        assert (refused.value.param, inn.ledger) == ("input", [])
        parts = [{"type": "input_text", "text": YES}]
        assert await customer.create([_output(item, parts)], previous_response_id=asked.id)


async def test_a_message_instead_of_the_answer_or_beside_it_is_refused() -> None:
    async with open_client(Inn()) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("anna")
        (item,) = _list_asked(asked)
        with pytest.raises(APIStatusError, match="waits for an answer") as refused:
            await customer.create("hello?", previous_response_id=asked.id)
        assert (refused.value.status_code, refused.value.code) == (409, "answer_needed")
        beside = [_output(item), {"role": "user", "content": "please"}]
        with pytest.raises(BadRequestError, match="accepts answers only"):
            await customer.create(beside, previous_response_id=asked.id)
        with pytest.raises(BadRequestError, match="No pending tool call"):
            await customer.create([_output(item)])
        assert await customer.create([_output(item)], previous_response_id=asked.id)


async def test_some_requests_are_answered_and_the_others_are_shown_again() -> None:
    async with open_client(Inn()) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("two guests")
        first, second = _list_asked(asked)
        told = await customer.create([_output(first)], previous_response_id=asked.id)
        assert [one.call_id for one in _list_asked(told)] == [second.call_id]
        fed = await customer.create([_output(second, "eggs")], previous_response_id=told.id)
        assert _texts(fed) == ["breakfast: eggs"]


async def test_approvals_inside_a_workflow_are_asked_and_answered(customer_of: Any) -> None:
    till = Till([call("pay", "c1", amount=5), call("pay", "c2", amount=7)], ["done"])
    async with open_client(till) as desk:
        customer = customer_of(desk)
        asked = await customer.create("pay twice")
        first, second = asked.output
        assert (first.type, first.name, json.loads(first.arguments)) == ("mcp_approval_request", "pay", {"amount": 5})
        told = await customer.create([_answer(second)], previous_response_id=asked.id)
        assert [item.id for item in told.output] == [first.id]
        told = await customer.create([_answer(first, approve=False)], previous_response_id=told.id)
        assert (told.output_text, till.paid) == ("done", [7])


async def test_one_approval_runs_once_over_the_branches_of_a_pause() -> None:
    till = Till()
    async with open_client(till) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("pay")
        (question,) = asked.output
        assert (await customer.create([_answer(question)], previous_response_id=asked.id)).output_text == "done"
        with pytest.raises(APIStatusError) as refused:
            await customer.create([_answer(question)], previous_response_id=asked.id)
        assert (refused.value.status_code, refused.value.code, till.paid) == (409, "approval_answered", [5])


async def test_nothing_waits_for_a_response_that_is_not_stored() -> None:
    async with open_client(Inn()) as desk:
        customer = AsyncCustomer(desk)
        failed = await customer.create("anna", store=False)
        assert (failed.status, failed.error.code) == ("failed", "invalid_prompt")
        asked = await customer.create("anna")
        (item,) = _list_asked(asked)
        told = await customer.create([_output(item)], previous_response_id=asked.id, store=False)
        assert _texts(told)[0] == "anna takes the attic for 2"
        # It has left nothing behind: the question is as open as before.
        told = await customer.create([_output(item, '{"accepted": false}')], previous_response_id=asked.id)
        assert _texts(told)[0] == "pity"
        then = await customer.create("who?", previous_response_id=told.id, store=False)
        assert _texts(then) == ["served anna"]


async def test_an_approval_beside_a_call_counts_once_in_all_branches() -> None:
    look = FunctionTool(name="look", description="Looks.", func=None, input_model={"type": "object"})
    script = [[call("pay", "c1", amount=5), call("look", "c2")], *(["done"] for _ in range(4))]
    till = Till(*script, more=[look])
    async with open_client(till) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("look and pay")
        question, item = asked.output
        assert (question.type, item.type) == ("mcp_approval_request", "function_call")
        # With the call still open, it could be answered twice, and the tool would run for each.
        with pytest.raises(BadRequestError, match="before the approval"):
            await customer.create([_answer(question)], previous_response_id=asked.id)
        branches = [await customer.create([_output(item, "a cat")], previous_response_id=asked.id) for _ in range(2)]
        assert [one.output[0].id for one in branches] == [question.id, question.id]
        told = await customer.create([_answer(question)], previous_response_id=branches[0].id)
        assert (told.output_text, till.paid) == ("done", [5])
        for branch in branches:
            with pytest.raises(APIStatusError) as refused:
                await customer.create([_answer(question)], previous_response_id=branch.id)
            assert (refused.value.status_code, refused.value.code) == (409, "approval_answered")
        assert till.paid == [5]


async def test_an_approval_and_a_call_are_answered_together() -> None:
    look = FunctionTool(name="look", description="Looks.", func=None, input_model={"type": "object"})
    till = Till([call("pay", "c1", amount=5), call("look", "c2")], ["done"], more=[look])
    async with open_client(till) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("look and pay")
        question, item = asked.output
        both = [_answer(question), _output(item, "a cat")]
        told = await customer.create(both, previous_response_id=asked.id)
        assert (told.output_text, till.paid) == ("done", [5])
