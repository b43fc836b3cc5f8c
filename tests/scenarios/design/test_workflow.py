"""Scenario 9 of the design: a workflow with typed input, behind Invocations and behind a chat."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_framework import (
    Content,
    Executor,
    FileCheckpointStorage,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from openai import AsyncOpenAI

from frontdesk import AgentFrameworkHost, ChannelRequest, ChannelSession, HostedRunResult
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk_testing import serving
from tests.scenarios.design.test_audit_outputs import answers_of, emits, texts_of
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


def build_order(request: ChannelRequest, *, protocol_request: Any, **_: Any) -> ChannelRequest:
    """The hook of the chat: the same workflow needs no more."""
    return replace(request, input=Order(protocol_request["sender"]["name"], request.input))


def as_text(result: HostedRunResult[Any], *, context: Any) -> HostedRunResult[Any]:
    """The workflow's outputs, as this channel shows them."""
    return replace(result, result=f"Ordered on {context.channel_name}: {result.result.get_outputs()[0]}")


def as_card(result: HostedRunResult[Any], *, context: Any) -> HostedRunResult[Any]:
    """The workflow's outputs, as a card for a client that draws one."""
    customer, _, items = result.result.get_outputs()[0].partition(": ")
    return replace(result, result={"title": f"Order of {customer}", "items": items.split(", ")})


CARD = {"title": "Order of c-1", "items": ["tea", "cake"]}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_card_that_a_response_hook_made_was_an_empty_answer_over_http(tmp_path: Path, stream: bool) -> None:
    channel = InvocationsChannel(run_hook=order_of, response_hook=as_card, extra_fields="attributes")
    async with serving(AgentFrameworkHost(builds(tmp_path), channels=[channel])) as client:
        await client.http.post("/invocations", json={"customer_id": "c-1", "item": "tea"})
        body = {"customer_id": "c-1", "item": "cake", "stream": stream}
        answer = await client.http.post("/invocations", json=body)
        assert answer.status_code == 200, answer.text
        shown = json.loads(answer.text.rpartition("data: ")[2]) if stream else answer.json()
        fetched = (await client.http.get(f"/invocations/{shown['id']}")).json()
    assert shown["outputs"] == fetched["outputs"] == [CARD]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ("a *word*", "a *word*"),
        (Content.from_text("a *word*"), "a *word*"),
        (Message("assistant", ["a *word*"]), "a *word*"),
        ([Content.from_text("a "), Content.from_text("word")], "a word"),
        (CARD, msgspec.json.encode(CARD).decode()),
    ],
    ids=["text", "content", "message", "list", "card"],
)
async def test_what_a_response_hook_made_of_the_outputs_is_shown_by_every_channel(made: Any, text: str) -> None:
    def hook(result: HostedRunResult[Any], *, context: Any) -> HostedRunResult[Any]:
        return replace(result, result=made)

    channels: Any = [
        kind(response_hook=hook)
        for kind in (ResponsesChannel, ChatCompletionsChannel, InvocationsChannel, WebChatChannel)
    ]
    async with (
        open_chat(emits({"a": 1}), channels=channels, response_hook=hook) as host,
        AsyncOpenAI(base_url=f"{host.base_url}/v1", api_key="none", max_retries=0) as client,
    ):
        said = await answers_of(host, client)
    assert texts_of(said["responses"]) == [text]
    assert said["completions"] == text
    # These are made of their updates, which a stream_transform_hook changes.
    assert (texts_of(said["responses stream"]), said["completions stream"]) == (['{"a":1}'], '{"a":1}')
    invocation = said["invocations"]
    assert (invocation["outputs"] == [CARD]) if made is CARD else (invocation["text"] == text)
    assert [one.text for one in said["chat"]] == [text]
    assert [one["text"] for one in said["page"]] == [text]


async def test_the_same_workflow_behind_a_chat_needs_only_other_hooks(tmp_path: Path) -> None:
    async with open_chat(builds(tmp_path), run_hook=build_order, response_hook=as_text) as chat:
        ann = await chat.platform.user("Ann")
        await chat.platform.say(ann, "tea")
        assert await chat.wait_for_answers(ann.chat_id) == ["Ordered on messages: Ann: tea"]
        await chat.platform.say(ann, "cake")
        assert (await chat.wait_for_answers(ann.chat_id, 2))[-1] == "Ordered on messages: Ann: tea, cake"
