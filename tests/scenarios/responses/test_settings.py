"""What of a request reaches the agent is the operator's decision, and the response tells what was used."""

from typing import Any

import pytest
from agent_framework import ChatOptions
from openai import BadRequestError

from frontdesk.models.request import ChannelRequest
from frontdesk_testing import EchoAgent
from tests.scenarios.responses.cast import build_answering
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

EVERYTHING: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.25,
    "max_output_tokens": 100,
    "parallel_tool_calls": False,
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"verbosity": "low"},
    "truncation": "auto",
    "service_tier": "flex",
    "safety_identifier": "someone",
    "prompt_cache_key": "here",
    "top_logprobs": 2,
    "metadata": {"order": "7"},
    "user": "someone",
    "max_tool_calls": 3,
    "include": ["reasoning.encrypted_content"],
    "extra_body": {"presence_penalty": 0.5, "frequency_penalty": 0.25, "hosting": {"tier": "gold"}},
}
_AWAY = ("model", "store", "user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "truncation")


async def test_only_what_is_harmless_reaches_the_agent_by_default() -> None:
    target = build_answering(lambda _: ["fine"])
    async with open_client(target) as desk:
        response = await AsyncCustomer(desk).create("hello", **EVERYTHING)
        options = target.client.options[-1]
        assert {name: options[name] for name in ("temperature", "top_p", "max_tokens")} == {
            "temperature": 0.5,
            "top_p": 0.25,
            "max_tokens": 100,
        }
        assert (options["presence_penalty"], options["frequency_penalty"]) == (0.5, 0.25)
        assert (options["allow_multiple_tool_calls"], options["verbosity"]) == (False, "low")
        assert options["reasoning"] == {"effort": "low", "summary": "auto"}
        for name in (*_AWAY, "hosting", "top_logprobs", "max_tool_calls"):
            assert options.get(name) is None, name
        assert (response.temperature, response.top_p, response.max_output_tokens) == (0.5, 0.25, 100)
        assert (response.truncation, response.service_tier) == ("disabled", "default")
        assert (response.safety_identifier, response.prompt_cache_key, response.top_logprobs) == (None, None, 0)
        assert (response.reasoning and response.reasoning.effort, response.max_tool_calls) == ("low", None)
        assert response.text is not None
        assert response.text.verbosity == "low"


async def test_what_the_operator_names_reaches_it_too() -> None:
    target = build_answering(lambda _: ["fine"])
    names = ["model", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "truncation"]
    async with open_client(target, forward=[*names, "top_logprobs"]) as desk:
        response = await AsyncCustomer(desk).create("hello", store=False, **EVERYTHING)
        options = target.client.options[-1]
        assert {name: options.get(name) for name in names} == {
            "model": "Concierge",
            "store": False,
            "metadata": {"order": "7"},
            "service_tier": "flex",
            "safety_identifier": "someone",
            "prompt_cache_key": "here",
            "truncation": "auto",
        }
        assert (options.get("temperature"), options.get("user")) == (None, None)
        assert (response.truncation, response.service_tier, response.temperature) == ("auto", "flex", 1.0)
        assert (response.safety_identifier, response.top_logprobs) == ("someone", 2)


@pytest.mark.parametrize(
    ("setting", "heard", "told"), [("append", "Be kind.\nBe brief.", "Be brief."), ("ignore", "Be kind.", None)]
)
async def test_instructions_are_added_or_ignored(setting: Any, heard: str, told: str | None) -> None:
    target = build_answering(lambda _: ["fine"], instructions="Be kind.")
    async with open_client(target, instructions=setting) as desk:
        customer = AsyncCustomer(desk)
        response = await customer.create("hello", instructions="Be brief.")
        assert target.client.options[-1]["instructions"] == heard
        assert response.instructions == told
        # They count for one request, not for those that continue it.
        after = await customer.create("and now?", previous_response_id=response.id)
        assert target.client.options[-1]["instructions"] == "Be kind."
        assert after.instructions is None


@pytest.mark.parametrize("stream", [False, True])
async def test_instructions_are_refused(stream: bool) -> None:
    async with open_client(build_answering(lambda _: ["never"]), instructions="refuse") as desk:
        with pytest.raises(BadRequestError) as caught:
            await AsyncCustomer(desk).create("hello", instructions="Be brief.", stream=stream)
        assert caught.value.param == "instructions"
        assert desk.untouched()


async def test_unknown_keys_reach_the_hook_and_nothing_else() -> None:
    seen: list[ChannelRequest] = []

    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        seen.append(request)
        return request

    target = build_answering(lambda _: ["fine"])
    async with open_client(target, run_hook=hook) as desk:
        extra = {"hosting": {"tier": "gold"}, "made_up": [1, 2]}
        response = await AsyncCustomer(desk).create("hello", extra_body=extra, temperature=0.5)
        assert seen[0].attributes == extra
        assert set(target.client.options[-1]) <= {*ChatOptions.__annotations__}
        assert "made_up" not in response.model_dump_json()
        assert "made_up" not in str(desk.runs())


async def test_an_agent_without_options_answers_as_it_always_does_and_says_so() -> None:
    async with open_client(EchoAgent()) as desk:
        customer = AsyncCustomer(desk)
        response = await customer.create("hello", temperature=0.5, reasoning={"effort": "low"}, instructions="Shout.")
        assert (response.output_text, response.temperature, response.reasoning) == ("hello", 1.0, None)
        assert response.instructions is None
        for name, value in (("max_output_tokens", 16), ("tool_choice", "required")):
            options: Any = {name: value}
            with pytest.raises(BadRequestError) as caught:
                await customer.create("hello", **options)
            assert caught.value.param == name
        with pytest.raises(BadRequestError) as caught:
            await customer.create("hello", text={"format": {"type": "json_object"}})
        assert caught.value.param == "text"
        tool: Any = {"type": "function", "name": "look", "parameters": {}}
        with pytest.raises(BadRequestError) as caught:
            await customer.create("hello", tools=[tool])
        assert caught.value.param == "tools"
