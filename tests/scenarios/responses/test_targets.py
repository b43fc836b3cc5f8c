"""Whatever the target is, the door is the same."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import (
    AgentExecutor,
    AgentResponse,
    Content,
    Executor,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from openai import BadRequestError
from openai.types.responses import Response

from frontdesk.models.request import ChannelRequest
from tests.scenarios.cast import PlainAgent, echo, spell, voices
from tests.scenarios.responses.cast import agent
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client


def _text(request: ChannelRequest, **_: Any) -> ChannelRequest:
    """A workflow's input is its own affair: here, the text of what was said."""
    said = request.input
    return request.replace(input=said if isinstance(said, str) else said[-1].text)


def _texts(response: Response) -> list[str]:
    items: Any = response.output
    return ["".join(part.text for part in item.content) for item in items]


async def test_a_workflow_answers_with_each_of_its_outputs(customer_of: Any) -> None:
    async with open_client(voices, run_hook=_text) as desk:
        customer = customer_of(desk)
        whole = await customer.create("Hello")
        assert (_texts(whole), whole.model) == (["HELLO 1", "hello"], "voices")
        _, streamed = await customer.stream("Hello")
        assert _texts(streamed) == ["HELLO 1", "hello"]


class Relay(Executor):
    """Hands out whatever kind of output it was made for."""

    def __init__(self, output: Any) -> None:
        super().__init__("relay")
        self._output = output

    @handler
    async def say(self, text: str, context: WorkflowContext[Any, Any]) -> None:
        """Says it."""
        await context.yield_output(self._output)


def _relay(output: Any) -> Any:
    def build() -> Any:
        one = Relay(output)
        return WorkflowBuilder(name="relay", start_executor=one, output_from=[one]).build()

    return build


CONVERSATION = [Message("user", ["asked"]), Message("assistant", ["told"]), Message("assistant", ["more"])]
USAGE: Any = {"input_token_count": 2, "output_token_count": 1}


@pytest.mark.parametrize(
    ("output", "texts"),
    [
        ("words", ["words"]),
        ({"a": 1}, ['{"a":1}']),
        (Message("assistant", ["words"]), ["words"]),
        (CONVERSATION, ["told", "more"]),
        (AgentResponse(messages=[Message("assistant", ["words"])], usage_details=USAGE), ["words"]),
    ],
)
async def test_every_kind_of_output_is_said(output: Any, texts: list[str]) -> None:
    async with open_client(_relay(output), run_hook=_text) as desk:
        customer = AsyncCustomer(desk)
        whole = await customer.create("hello")
        _, streamed = await customer.stream("hello")
        assert _texts(whole) == _texts(streamed) == texts
        if isinstance(output, AgentResponse):
            assert whole.usage is not None
            assert whole.usage.total_tokens == 3


async def test_agents_in_a_workflow_stream_their_words(customer_of: Any) -> None:
    def build() -> Any:
        usage = Content.from_usage(USAGE)
        first = AgentExecutor(agent(["one ", "two", usage]), id="first")
        second = AgentExecutor(agent(["three ", "four", usage]), id="second")
        return (
            WorkflowBuilder(name="relay", start_executor=first, output_from=[first, second])
            .add_edge(first, second)
            .build()
        )

    async with open_client(build) as desk:
        customer = customer_of(desk)
        whole = await customer.create("hello")
        events, streamed = await customer.stream("hello")
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert deltas == ["one ", "two", "three ", "four"]
        assert _texts(whole) == _texts(streamed) == ["one two", "three four"]
        for response in (whole, streamed):
            assert response.usage.total_tokens == 6


async def test_a_function_answers(customer_of: Any) -> None:
    async with open_client(echo) as desk:
        customer = customer_of(desk)
        assert (await customer.create("hello")).output_text == "you said hello"
        assert (await customer.stream("hello"))[1].output_text == "you said hello"


async def test_a_generator_answers_in_its_own_pieces(customer_of: Any) -> None:
    async with open_client(spell) as desk:
        customer = customer_of(desk)
        assert (await customer.create("abc")).output_text == "abc"
        events = await customer.events("abc")
        assert [event.delta for event in events if event.type == "response.output_text.delta"] == ["a", "b", "c"]


async def test_a_function_that_hears_everything_keeps_a_conversation() -> None:
    async def count(messages: list[Message]) -> str:
        return f"{len(messages)} messages"

    async with open_client(count) as desk:
        customer = AsyncCustomer(desk)
        first = await customer.create("one")
        assert (await customer.create("two", previous_response_id=first.id)).output_text == "3 messages"


async def test_a_function_that_says_two_things_says_two_things_in_a_stream_too() -> None:
    async def twice(text: str) -> Any:
        return AgentResponse(messages=[Message("assistant", [text]), Message("assistant", [text.upper()])])

    async with open_client(twice) as desk:
        customer = AsyncCustomer(desk)
        assert _texts(await customer.create("hello")) == ["hello", "HELLO"]
        assert _texts((await customer.stream("hello"))[1]) == ["hello", "HELLO"]


async def test_a_generator_can_say_more_than_words() -> None:
    async def think(text: str) -> AsyncIterator[Any]:
        yield Content.from_text_reasoning(text="hm")
        yield text

    async with open_client(think) as desk:
        _, response = await AsyncCustomer(desk).stream("hello")
        assert [item.type for item in response.output] == ["reasoning", "message"]


async def test_anything_that_runs_like_an_agent_is_one(customer_of: Any) -> None:
    async with open_client(PlainAgent()) as desk:
        customer = customer_of(desk)
        first = await customer.create("one")
        assert first.output_text == "1 messages"
        assert (await customer.stream("two", previous_response_id=first.id))[1].output_text == "3 messages"


@pytest.mark.parametrize("target", [voices, echo])
async def test_what_a_target_can_not_take_is_refused_by_name(target: Any) -> None:
    tool: Any = {"type": "function", "name": "look", "parameters": {}}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("tools", {"tools": [tool]}),
        ("max_output_tokens", {"max_output_tokens": 16}),
        ("text", {"text": {"format": {"type": "json_object"}}}),
    ]
    hook: dict[str, Any] = {"run_hook": _text} if target is voices else {}
    async with open_client(target, **hook) as desk:
        for param, body in asked:
            for stream in (False, True):
                with pytest.raises(BadRequestError) as caught:
                    await AsyncCustomer(desk).create("hello", stream=stream, **body)
                assert caught.value.param == param
        assert desk.untouched()
