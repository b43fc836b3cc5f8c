"""A response that is filled into a form is the very one that would be drawn."""

from typing import Any

from agent_framework import AgentResponse, Message
from hypothesis import given

from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.render import Renderer
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import encode
from tests.channels import plain_answers

RENDERER = Renderer(ResponsesConfig(), TargetInfo(name="100% model", kind="agent"))
RUN = RunRecord(run_id="resp_1", owner="o", channel="c", status="completed", created_at=1.0, finished_at=2.0)


@given(plain_answers.runs, plain_answers.answers)
def test_a_response_that_is_filled_in_is_the_one_that_would_be_drawn(
    run: RunRecord, answer: AgentResponse[Any]
) -> None:
    filled = RENDERER.plain(run, answer)
    assert filled is None or filled == encode(RENDERER.response(run, answer))


def test_most_responses_are_filled_in() -> None:
    answer = AgentResponse(messages=[Message("assistant", ["hello"])])
    assert RENDERER.plain(RUN.replace(details={"input": "hi"}), answer) is not None


def test_half_a_character_is_drawn() -> None:
    answer = AgentResponse(messages=[Message("assistant", ["\ud800"])])
    assert RENDERER.plain(RUN, answer) is None


def test_nothing_is_filled_in_for_a_run_without_an_answer() -> None:
    assert RENDERER.plain(RUN, None) is None
