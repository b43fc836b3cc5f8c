"""A workflow with typed input behind two channels, with checkpoints: orders come over HTTP and from Telegram.

frontdesk serve docs/examples/order_workflow.py:host

order_workflow.rest beside it has the requests.
"""

import os
from dataclasses import dataclass, replace
from typing import Any

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

from frontdesk import AgentFrameworkHost, ChannelRequest, ChannelSession
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.telegram import TelegramChannel


@dataclass
class Order:
    """What the workflow takes."""

    customer_id: str
    item: str


class Desk(Executor):
    """Takes orders. A checkpoint holds those of its session."""

    def __init__(self) -> None:
        super().__init__("desk")
        self.items: list[str] = []

    @handler
    async def take(self, order: Order, context: WorkflowContext[str, str]) -> None:
        self.items.append(order.item)
        await context.yield_output(f"{order.customer_id}: {', '.join(self.items)}")

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"items": self.items}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.items = list(state["items"])


def build():
    desk = Desk()
    return WorkflowBuilder(name="orders", start_executor=desk, output_from=[desk]).build()


def order_of_payload(request: ChannelRequest, *, protocol_request, **_) -> ChannelRequest:
    """Over HTTP the body is the order, and may name the checkpoint to go on from."""
    order = Order(protocol_request["customer_id"], protocol_request["item"])
    session = ChannelSession(key=order.customer_id)
    attributes = dict(request.attributes)
    if checkpoint := protocol_request.get("resume_from_checkpoint"):
        attributes["workflow.checkpoint_id"] = checkpoint
    return replace(request, input=order, session=session, attributes=attributes)


def order_of_message(request: ChannelRequest, *, protocol_request, **_) -> ChannelRequest:
    """In a chat the message is the item, and the sender the customer."""
    message = request.input[-1] if isinstance(request.input, list) else request.input
    item = message if isinstance(message, str) else message.text
    return replace(request, input=Order(request.identity.native_id, item))


telegram = TelegramChannel(
    bot_token=os.environ.get("BOT_TOKEN", "123456:a-token-that-opens-nothing-at-all"),
    api_url=os.environ.get("TELEGRAM_API_URL", "https://api.telegram.org"),
    transport="polling",
    allowlist=None,
    run_hook=order_of_message,
)
invocations = InvocationsChannel(run_hook=order_of_payload, extra_fields="attributes")
host = AgentFrameworkHost(target=build, channels=[invocations, telegram], state_dir="orders")

if __name__ == "__main__":
    host.serve()
