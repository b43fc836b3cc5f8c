"""Serves a workflow. The host gets the function that builds it, so that each run has an instance of its own."""

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel


class Words(Executor):
    @handler
    async def count(self, text: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"{len(text.split())} words")
        await context.yield_output(" ".join(reversed(text.split())))


def build():
    return WorkflowBuilder(name="words", start_executor=Words(id="words"), output_from="all").build()


host = AgentFrameworkHost(target=build, channels=[InvocationsChannel()])
