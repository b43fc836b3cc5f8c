"""A tool that needs a human's word: the question goes out as the API has it, and only its own answer runs the tool."""

import asyncio
import json
from typing import Any

import pytest
from openai import APIStatusError, ConflictError, NotFoundError

from tests.scenarios.responses.cast import Till, call
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

PAY = call("pay", "call_pay", amount=5)
REFUND = call("refund", "call_refund", amount=3)


def answer(question: Any, approve: bool = True, **more: Any) -> Any:
    """A human's word."""
    return {"type": "mcp_approval_response", "approval_request_id": question.id, "approve": approve, **more}


def dump_item(item: Any) -> Any:
    """An item as a client sends it back."""
    return item.model_dump(exclude_none=True)


async def test_the_question_goes_out_and_the_answer_runs_the_tool(customer_of: Any) -> None:
    till = Till()
    async with open_client(till.agent([PAY], ["paid"])) as desk:
        customer = customer_of(desk)
        asked = await customer.create("pay 5")
        (question,) = asked.output
        assert (question.type, question.name, question.server_label) == ("mcp_approval_request", "pay", "Concierge")
        assert json.loads(question.arguments) == {"amount": 5}
        assert (asked.status, till.ran) == ("completed", [])
        assert (await customer.retrieve(asked.id)).output == [question]
        told = await customer.create([answer(question)], previous_response_id=asked.id)
        assert (told.output_text, till.ran) == ("paid", [("pay", 5)])
        (given,) = await customer.input_items(told.id)
        assert (given.type, given.approve) == ("mcp_approval_response", True)


async def test_the_same_over_two_streams(customer_of: Any) -> None:
    till = Till()
    async with open_client(till.agent(["one moment", PAY], ["pa", "id"])) as desk:
        customer = customer_of(desk)
        _, asked = await customer.stream("pay 5")
        message, question = asked.output
        assert (message.type, question.type, till.ran) == ("message", "mcp_approval_request", [])
        # What a stream shows of it is stored: the question comes in the last moment.
        assert list(desk.ledger.kept_approvals) == [question.id]
        events = await customer.events([answer(question)], previous_response_id=asked.id)
        assert (events[-1].response.output_text, till.ran) == ("paid", [("pay", 5)])


async def test_a_no_with_a_reason_reaches_the_agent_and_runs_nothing(customer_of: Any) -> None:
    till = Till()
    target = till.agent([PAY], ["I will not"])
    async with open_client(target) as desk:
        customer = customer_of(desk)
        asked = await customer.create("pay 5")
        no = answer(asked.output[0], approve=False, reason="too much")
        told = await customer.create([no], previous_response_id=asked.id)
        assert (told.output_text, till.ran) == ("I will not", [])
        heard = [one for message in target.client.seen[-1] for one in message.contents]
        assert "too much" in [one.text for one in heard]
        assert not any(one.type == "function_result" and "paid" in str(one.result) for one in heard)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("stream", [True, False])
async def test_several_questions_of_one_turn_are_answered_together_or_apart(together: bool, stream: bool) -> None:
    till = Till()
    async with open_client(till.agent([PAY, REFUND], ["both done"])) as desk:
        customer = AsyncCustomer(desk)
        asked = await _ask(customer, stream, "pay and refund")
        pay, refund = asked.output
        assert [pay.name, refund.name] == ["pay", "refund"]
        if together:
            told = await _ask(customer, stream, [answer(pay), answer(refund)], previous_response_id=asked.id)
        else:
            half = await _ask(customer, stream, [answer(refund)], previous_response_id=asked.id)
            assert [item.type for item in half.output] == ["mcp_approval_request"]
            # The agent goes on when it has all the answers; until then it shows what is still open.
            assert (half.output[0].id, till.ran) == (pay.id, [])
            told = await _ask(customer, stream, [answer(half.output[0])], previous_response_id=half.id)
        assert told.output_text == "both done"
        assert sorted(till.ran) == [("pay", 5), ("refund", 3)]


async def _ask(customer: AsyncCustomer, stream: bool, said: Any, **body: Any) -> Any:
    return (await customer.stream(said, **body))[1] if stream else await customer.create(said, **body)


async def test_one_yes_and_one_no() -> None:
    till = Till()
    async with open_client(till.agent([PAY, REFUND], ["done"])) as desk:
        customer = AsyncCustomer(desk)
        asked: Any = await customer.create("pay and refund")
        answers = [answer(asked.output[0], approve=False), answer(asked.output[1])]
        await customer.create(answers, previous_response_id=asked.id)
        assert till.ran == [("refund", 3)]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_question_beside_a_call_of_the_clients(together: bool, stream: bool) -> None:
    till = Till()
    target = till.agent([PAY, call("look", "client", place="roof")], ["paid for a cat"])
    look: Any = {"type": "function", "name": "look", "parameters": {}}
    output = {"type": "function_call_output", "call_id": "client", "output": "a cat"}
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        asked = await _ask(customer, stream, "pay for what is there", tools=[look])
        made, question = asked.output
        assert (made.type, question.type) == ("function_call", "mcp_approval_request")
        with pytest.raises(APIStatusError, match="No tool output found"):
            await customer.create([answer(question)], tools=[look], previous_response_id=asked.id)
        if together:
            said = [output, answer(question)]
        else:
            asked = await _ask(customer, stream, [output], tools=[look], previous_response_id=asked.id)
            assert till.ran == []
            said = [answer(question)]
        told = await _ask(customer, stream, said, tools=[look], previous_response_id=asked.id)
        assert (told.output_text, till.ran) == ("paid for a cat", [("pay", 5)])
        given = [one for message in target.client.seen[-1] for one in message.contents if one.type == "function_result"]
        assert {one.call_id: one.result for one in given} == {"call_pay": "paid 5", "client": "a cat"}


async def test_history_that_is_sent_again_needs_no_previous_response() -> None:
    till = Till()
    target = till.agent([PAY], ["paid"], ["you are welcome"])
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        said: list[Any] = [{"role": "user", "content": "pay 5"}]
        asked = await customer.create(said)
        said += [dump_item(asked.output[0]), answer(asked.output[0])]
        told = await customer.create(said)
        assert (told.output_text, till.ran) == ("paid", [("pay", 5)])
        assert [role for role, _ in target.client.said()].count("user") == 1
        said += [dump_item(told.output[0]), {"role": "user", "content": "thanks"}]
        last = await customer.create(said)
        # The answer is history by then, and history runs nothing.
        assert (last.output_text, till.ran) == ("you are welcome", [("pay", 5)])
        assert target.client.said() == [("user", "pay 5"), ("assistant", "paid"), ("user", "thanks")]


async def test_an_answer_can_come_alone() -> None:
    till = Till()
    async with open_client(till.agent([PAY], ["paid"])) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("pay 5")
        assert (await customer.create([answer(asked.output[0])])).output_text == "paid"
        assert till.ran == [("pay", 5)]


async def test_two_branches_of_one_question_run_the_tool_once() -> None:
    till = Till()
    async with open_client(till.agent([PAY], ["paid"], ["paid"])) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("pay 5")
        yes = [answer(asked.output[0])]
        results = await asyncio.gather(
            *(customer.create(yes, previous_response_id=asked.id) for _ in range(5)), return_exceptions=True
        )
        assert till.ran == [("pay", 5)]
        assert len([one for one in results if isinstance(one, ConflictError)]) == 4
        with pytest.raises(ConflictError) as caught:
            await customer.create(yes, previous_response_id=asked.id)
        assert (caught.value.code, caught.value.param) == ("approval_answered", "input")


async def test_a_conversation_can_leave_a_question_unanswered() -> None:
    till = Till()
    async with open_client(till.agent([PAY], ["never mind"], ["paid"])) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("pay 5")
        other = await customer.create("what time is it?", previous_response_id=asked.id)
        assert (other.output_text, till.ran) == ("never mind", [])
        told = await customer.create([answer(asked.output[0])], previous_response_id=asked.id)
        assert (told.output_text, till.ran) == ("paid", [("pay", 5)])


async def test_what_was_asked_can_not_be_altered() -> None:
    till = Till()
    async with open_client(till.agent([PAY], ["never"])) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("pay 5")
        question = dump_item(asked.output[0])
        for altered in ({"arguments": '{"amount": 500}'}, {"name": "refund"}):
            for more in ({}, {"previous_response_id": asked.id}):
                with pytest.raises(APIStatusError) as caught:
                    await customer.create([{**question, **altered}, answer(asked.output[0])], **more)
                assert (caught.value.status_code, caught.value.param) == (400, "input[0]")
        assert till.ran == []


@pytest.mark.parametrize("stream", [False, True])
async def test_without_a_stored_session_nothing_can_wait(stream: bool) -> None:
    till = Till()
    async with open_client(till.agent([PAY])) as desk:
        customer = AsyncCustomer(desk)
        if stream:
            last = (await customer.events("pay 5", store=False))[-1]
            assert (last.type, last.response.error.code) == ("response.failed", "invalid_prompt")
            assert "session" in last.response.error.message
        else:
            failed = await customer.create("pay 5", store=False)
            assert (failed.status, failed.error.code) == ("failed", "invalid_prompt")
            assert "session" in failed.error.message
        assert (till.ran, desk.runs(), desk.ledger.kept_approvals) == ([], [], {})


async def test_an_answer_to_nothing_is_refused() -> None:
    till = Till()
    async with open_client(till.agent([PAY], ["hello"])) as desk:
        customer = AsyncCustomer(desk)
        asked = await customer.create("pay 5")
        made_up = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
        for said, more in (
            ([made_up], {}),
            ([made_up], {"previous_response_id": asked.id}),
            ([made_up, answer(asked.output[0])], {"previous_response_id": asked.id}),
        ):
            with pytest.raises(NotFoundError):
                await customer.create(said, **more)
        assert till.ran == []
