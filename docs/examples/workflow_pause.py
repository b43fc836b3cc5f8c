"""Serves a workflow that makes an offer, waits for the guest's word, and books. The wait outlasts a restart."""

from dataclasses import dataclass
from typing import Any

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel


@dataclass
class Choice:
    accepted: bool
    nights: int = 1


class Clerk(Executor):
    @handler
    async def offer(self, guest: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(f"Welcome, {guest}.")
        await context.request_info({"room": "the attic", "price": 90}, Choice)

    @response_handler
    async def book(self, offer: dict[str, Any], choice: Choice, context: WorkflowContext[str, str]) -> None:
        if choice.accepted:
            await context.yield_output(f"Booked: {offer['room']}, {choice.nights * offer['price']} €.")
        else:
            await context.yield_output("Another time, then.")


def build():
    return WorkflowBuilder(name="booking", start_executor=Clerk(id="clerk"), output_from="all").build()


# With state_dir="state" the pause outlasts the process; without, it is kept in memory.
host = AgentFrameworkHost(target=build, channels=[InvocationsChannel(), ResponsesChannel()])
