"""Agents written with `openai-agents`, whose model is our host."""

from typing import Any

from agent_framework import Message
from agents import Agent, OpenAIResponsesModel, RunConfig, set_tracing_disabled

from tests.scenarios.responses.cast import build_answering, piece
from tests.scenarios.responses.desk import ResponsesHost

# It would call home.
set_tracing_disabled(True)
QUIET = RunConfig(tracing_disabled=True)


def build_visiting_agent(desk: ResponsesHost, **options: Any) -> Agent[Any]:
    """An agent of somebody else's."""
    model = OpenAIResponsesModel(model="Concierge", openai_client=desk.client())
    return Agent(name="Guest", instructions="Be brief.", model=model, **options)


def build_looking() -> Any:
    """A model that looks once, and says what was seen."""

    def answer(messages: list[Message]) -> Any:
        if messages[-1].role == "tool":
            return ["there is ", str(messages[-1].contents[-1].result)]
        call_id = f"call_{len(messages)}"
        return [piece(call_id, '{"place": ', "look"), piece(call_id, '"garden"}')]

    return build_answering(answer)
