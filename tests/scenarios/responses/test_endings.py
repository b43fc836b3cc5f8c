"""A run can end in more ways than one, and each way is told."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import Content

from frontdesk_testing import FailingAgent
from tests.scenarios.responses.cast import Finish, Till, agent, build_answering, call
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

REASON = "the secret reason"


def _secret(desk: Any) -> bool:
    return any(REASON.encode() in exchange.body for exchange in desk.tap.exchanges)


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
async def test_an_answer_that_was_cut_off_is_incomplete(customer_of: Any, finish: str, reason: str) -> None:
    async with open_client(build_answering(lambda _: ["once upon", Finish(finish)])) as desk:
        customer = customer_of(desk)
        whole = await customer.create("a story")
        events = await customer.events("a story")
        assert events[-1].type == "response.incomplete"
        for response in (whole, events[-1].response, await customer.retrieve(whole.id)):
            assert (response.status, response.incomplete_details.reason) == ("incomplete", reason)
            assert (response.output_text, response.output[0].status) == ("once upon", "incomplete")
            assert response.completed_at is None


async def test_an_agent_that_fails_at_once(customer_of: Any) -> None:
    async with open_client(FailingAgent(RuntimeError(REASON))) as desk:
        customer = customer_of(desk)
        failed = await customer.create("hello")
        (run,) = desk.runs()
        assert (failed.id, failed.status, failed.error.code) == (run.run_id, "failed", "invalid_prompt")
        assert await customer.retrieve(run.run_id) == failed
        assert not _secret(desk)


async def test_an_agent_that_fails_half_way(customer_of: Any) -> None:
    async with open_client(agent(["once ", "upon ", RuntimeError(REASON)])) as desk:
        events = await customer_of(desk).events("a story")
        last = events[-1]
        assert (last.type, last.response.status, last.response.error.code) == (
            "response.failed",
            "failed",
            "invalid_prompt",
        )
        (message,) = last.response.output
        assert (message.status, message.content[0].text) == ("incomplete", "once upon ")
        assert not _secret(desk)


@pytest.mark.parametrize("before", [[], [call("look", place="garden")], [Content.from_text_reasoning(text="hm")]])
async def test_whatever_was_open_is_closed_when_it_fails(before: list[Content]) -> None:
    async with open_client(agent([*before, RuntimeError(REASON)])) as desk:
        look: Any = {"type": "function", "name": "look", "parameters": {}}
        events = await AsyncCustomer(desk).events("?", tools=[look])
        assert events[-1].type == "response.failed"
        assert not _secret(desk)


async def test_a_tool_loop_that_fails_in_its_second_round() -> None:
    async with open_client(Till().agent([call("add", a=1, b=2)], ["it is ", RuntimeError(REASON)])) as desk:
        customer = AsyncCustomer(desk)
        assert (await customer.events("?"))[-1].type == "response.failed"
        assert not _secret(desk)


async def test_a_function_that_fails_half_way() -> None:
    async def spell(text: str) -> AsyncIterator[str]:
        yield text
        raise RuntimeError(REASON)

    async with open_client(spell) as desk:
        customer = AsyncCustomer(desk)
        events = await customer.events("hello")
        assert [event.type for event in events][-2:] == ["response.output_item.done", "response.failed"]
        assert (await customer.create("hello")).status == "failed"
        assert not _secret(desk)


async def test_a_hook_that_fails_in_the_middle_of_a_stream() -> None:
    def hook(update: Any) -> Any:
        if "two" in update.text:
            raise RuntimeError(REASON)
        return update

    async with open_client(agent(["one ", "two"]), stream_transform_hook=hook) as desk:
        events = await AsyncCustomer(desk).events("?")
        assert events[-1].type == "response.failed"
        assert not _secret(desk)


async def test_a_refusal_is_told_as_one(customer_of: Any) -> None:
    no = {"core": {"model_output_kind": "refusal"}}
    words = [Content.from_text(word, additional_properties=no) for word in ("I will ", "not")]
    async with open_client(build_answering(lambda _: words)) as desk:
        customer = customer_of(desk)
        events, final = await customer.stream("do it")
        for response in (await customer.create("do it"), final):
            (part,) = response.output[0].content
            assert (part.type, part.refusal, response.status) == ("refusal", "I will not", "completed")
        kinds = [event.type for event in events if "refusal" in event.type]
        assert kinds == ["response.refusal.delta", "response.refusal.delta", "response.refusal.done"]


async def test_an_error_that_the_agent_reports_itself_is_said() -> None:
    said = ["half of it ", Content.from_error(message="the other half is missing")]
    async with open_client(build_answering(lambda _: said)) as desk:
        customer = AsyncCustomer(desk)
        for response in (await customer.create("?"), (await customer.stream("?"))[1]):
            first, second = response.output[0].content
            assert (first.text, second.refusal) == ("half of it ", "the other half is missing")
