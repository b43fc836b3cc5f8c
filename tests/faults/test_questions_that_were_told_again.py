"""A workflow told of a question again that was decided, and as an agent it was refused for it."""

from typing import Any

import pytest
from agent_framework import (
    AgentExecutor,
    AgentExecutorRequest,
    Executor,
    Message,
    Workflow,
    WorkflowAgent,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    tool,
)

from tests.faults.answer_steps import code
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import open_client


class Start(Executor):
    """Hands what was said to all agents."""

    @handler
    async def begin(self, said: list[Message], context: WorkflowContext[AgentExecutorRequest]) -> None:
        await context.send_message(AgentExecutorRequest(messages=said, should_respond=True))


class Tills:
    """Two agents in a workflow that both ask before they pay; the first fails after it has paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pays."""
            self.paid.append(amount)
            return f"paid {amount}"

        def breaks(messages: list[Any]) -> Any:
            if any(one.type == "function_result" for message in messages for one in message.contents):
                raise RuntimeError("no network")
            return [call("pay", "c1", amount=1)]

        self._agents = (
            build_scripted(breaks, tools=[pay]),
            build_scripted([[call("pay", "c2", amount=2)], ["done"]], tools=[pay]),
        )

    def __call__(self) -> Workflow:
        start = Start("start")
        tills = [AgentExecutor(agent, id=f"till-{number}") for number, agent in enumerate(self._agents, 1)]
        builder = WorkflowBuilder(name="tills", start_executor=start, output_from=[*tills])
        return builder.add_fan_out_edges(start, [*tills]).build()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("as_agent", [False, True])
async def test_a_question_that_was_used_up_came_again_and_was_taken_for_another(as_agent: bool, stream: bool) -> None:
    tills = Tills()
    target: Any = (lambda: WorkflowAgent(tills())) if as_agent else tills
    async with open_client(target) as desk:
        run = (await desk.ask("pay", session_id="s")).json()
        by_amount = {one["arguments"]["amount"]: one["id"] for one in run["approvals"]}
        first = await desk.post({"approval": {"id": by_amount[1], "approved": True}})
        assert (first.json()["status"], tills.paid) == ("failed", [1])
        second = await desk.post({"approval": {"id": by_amount[2], "approved": True}, "stream": stream})
        assert "approval_id_taken" not in second.text
        assert (second.status_code, tills.paid) == (200, [1, 2])
        assert code(await desk.post({"approval": {"id": by_amount[1], "approved": True}})) == (409, "approval_answered")
        assert tills.paid == [1, 2]
