"""Scenario 9 of the design: a workflow with typed input, behind Invocations and behind a chat."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_framework import Executor, FileCheckpointStorage, Workflow, WorkflowBuilder, WorkflowContext, handler

from frontdesk import AgentFrameworkHost, ChannelRequest, ChannelSession, HostedRunResult
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.testing import serving
from tests.scenarios.messages.chat import open_chat


@dataclass
class Order:
    """What the workflow takes."""

    customer_id: str
    item: str


class OrderExecutor(Executor):
    """Takes orders, and counts them."""

    def __init__(self) -> None:
        super().__init__("desk")
        self.orders: list[str] = []

    @handler
    async def take(self, order: Order, context: WorkflowContext[str, str]) -> None:
        self.orders.append(order.item)
        await context.yield_output(f"{order.customer_id}: {', '.join(self.orders)}")

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"orders": self.orders}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.orders = list(state["orders"])


def builds(place: Path) -> Any:
    """The workflow brings a storage of its own."""

    def build() -> Workflow:
        desk = OrderExecutor()
        storage = FileCheckpointStorage(place, allowed_checkpoint_types=[f"{Order.__module__}:{Order.__qualname__}"])
        return WorkflowBuilder(
            name="orders", start_executor=desk, output_from=[desk], checkpoint_storage=storage
        ).build()

    return build


def order_of(request: ChannelRequest, *, protocol_request: Any, **_: Any) -> ChannelRequest:
    """The hook of the scenario: it reads the payload."""
    order = Order(protocol_request["customer_id"], protocol_request["item"])
    return replace(
        request,
        input=order,
        session=ChannelSession(key=protocol_request["customer_id"]),
        checkpoint_id=protocol_request.get("resume_from_checkpoint"),
    )


async def test_a_hook_makes_the_input_of_the_payload_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    channel = InvocationsChannel(run_hook=order_of, extra_fields="attributes")
    async with serving(AgentFrameworkHost(builds(tmp_path), channels=[channel])) as client:

        async def order(item: str, **more: Any) -> dict[str, Any]:
            body = {"customer_id": "c-1", "item": item, **more}
            answer = await client.http.post("/invocations", json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        first = await order("tea")
        assert first["text"] == "c-1: tea"
        assert (await order("cake"))["text"] == "c-1: tea, cake"
        # From the first checkpoint the cake was never ordered.
        again = await order("jam", resume_from_checkpoint=first["checkpoint_id"])
        assert again["text"] == "c-1: tea, jam"
    assert any(name.endswith(".json") for _, _, names in os.walk(tmp_path) for name in names)


def spoken(request: ChannelRequest, *, protocol_request: Any, **_: Any) -> ChannelRequest:
    """The hook of the chat: the same workflow needs no more."""
    return replace(request, input=Order(protocol_request["sender"]["name"], request.input))


def as_text(result: HostedRunResult[Any], *, context: Any) -> HostedRunResult[Any]:
    """The workflow's outputs, as this channel shows them."""
    return replace(result, result=f"Ordered on {context.channel_name}: {result.result.get_outputs()[0]}")


async def test_the_same_workflow_behind_a_chat_needs_only_other_hooks(tmp_path: Path) -> None:
    async with open_chat(builds(tmp_path), run_hook=spoken, response_hook=as_text) as chat:
        ann = await chat.platform.user("Ann")
        await chat.platform.say(ann, "tea")
        assert await chat.heard(ann.chat_id) == ["Ordered on messages: Ann: tea"]
        await chat.platform.say(ann, "cake")
        assert (await chat.heard(ann.chat_id, 2))[-1] == "Ordered on messages: Ann: tea, cake"
