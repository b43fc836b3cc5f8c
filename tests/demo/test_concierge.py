"""The demo's agent in the real framework: its tools, its stream, its usage, and the choice of its model."""

import importlib.util
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.demo import build_host, choose_client
from frontdesk.demo.host import ScriptedClient
from frontdesk.demo.stories import Hotel, calculate, list_tools
from frontdesk.host.config import openai_settings


def concierge(hotel: Hotel | None = None) -> Agent[Any]:
    return Agent(ScriptedClient(pause=0), name="Concierge", tools=list_tools(hotel or Hotel()))


async def test_a_tool_answers_and_usage_is_told() -> None:
    answer = await concierge().run("When does the bar open?")
    assert answer.text.startswith("The bar is open from 17:00")
    assert answer.usage_details is not None
    assert (answer.usage_details.get("total_token_count") or 0) > len(answer.text.split())


async def test_it_streams_word_by_word() -> None:
    stream = concierge().run("hello", stream=True)
    words = [update.text async for update in stream if update.text]
    final = await stream.get_final_response()
    assert len(words) > 20
    assert "".join(words) == final.text
    assert final.usage_details is not None
    assert final.usage_details.get("output_token_count") == len(words)


@pytest.mark.parametrize(
    ("approved", "left", "said"), [(True, 3, "Booked: one sea view room"), (False, 4, "As you wish")]
)
async def test_nothing_is_booked_without_a_yes(approved: bool, left: int, said: str) -> None:
    hotel = Hotel()
    agent, session = concierge(hotel), AgentSession()
    asked = await agent.run("Book a sea view room for two nights", session=session)
    [request] = asked.user_input_requests
    assert hotel.left["sea view"] == 4
    answer = Message("user", [request.to_function_approval_response(approved)])
    assert (await agent.run(answer, session=session)).text.startswith(said)
    assert hotel.left["sea view"] == left


def test_a_full_hotel_says_so() -> None:
    hotel = Hotel()
    answers = [hotel.book("attic", 1) for _ in range(4)]
    assert [answer.partition(":")[0] for answer in answers[:3]] == ["Booked"] * 3
    assert answers[2].endswith("M-003.")
    assert answers[3] == "The attic rooms are all taken, I am afraid."


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("3 * (110 + 12)", "3 * (110 + 12) = 366"),
        ("-7 / 2", "-7 / 2 = -3.5"),
        ("0.1 + 0.2", "0.1 + 0.2 = 0.3"),
        ("1 / 0", "That divides by zero, and even we can't."),
        ("2 ** 9", "I can't work out '2 ** 9'."),
        ("True + 1", "I can't work out 'True + 1'."),
        ("1 +", "I can't work out '1 +'."),
    ],
)
async def test_sums(expression: str, told: str) -> None:
    [answer] = await calculate.invoke(arguments={"expression": expression})
    assert answer.text == told


@given(st.text(alphabet="0123456789.+-*/()ej_ x", max_size=100))
async def test_no_sum_is_too_strange(expression: str) -> None:
    [answer] = await calculate.invoke(arguments={"expression": expression})
    assert answer.text


def test_without_a_key_the_model_is_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    choice = choose_client()
    assert isinstance(choice.client, ScriptedClient)
    assert "no key, no network" in choice.note


@pytest.mark.skipif(importlib.util.find_spec("agent_framework_openai") is not None, reason="the extra is installed")
def test_a_key_without_the_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret")
    choice = choose_client()
    assert isinstance(choice.client, ScriptedClient)
    assert 'pip install ".[openai]"' in choice.note


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({}, (None, None)),
        ({"OPENAI_API_KEY": ""}, (None, None)),
        ({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"}, ("k", "m")),
        ({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", "OPENAI_CHAT_MODEL": "n"}, ("k", "n")),
    ],
)
def test_the_key_and_the_model_come_from_the_environment(
    environment: dict[str, str], settings: tuple[str | None, str | None]
) -> None:
    assert openai_settings(environment) == settings


def test_the_host_is_built_with_a_client_of_ones_own() -> None:
    host = build_host(ScriptedClient(pause=0))
    assert (host.target.name, host.target.kind, host.warnings) == ("Concierge", "agent", [])
    assert [channel.path for channel in host.channels] == ["/chat", "/invocations", "", "", ""]
