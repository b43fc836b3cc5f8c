"""Tools of the host's own are hidden, named, or shown in full, as the channel is set."""

import json
from typing import Any

import pytest
from agent_framework import Content, tool

from tests.scenarios.responses.cast import Till, agent, call
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

SCRIPT = [[call("add", a=1, b=2)], ["it is 3"]]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("setting", "shown"),
    [("hide", None), ("summary", ("{}", None)), ("full", ('{"a": 1, "b": 2}', "3"))],
)
async def test_a_call_of_the_hosts_is_shown_as_set(setting: Any, shown: Any, stream: bool) -> None:
    till = Till()
    async with open_client(till.agent(*SCRIPT), host_tools=setting) as desk:
        customer = AsyncCustomer(desk)
        response: Any = (await customer.stream("?"))[1] if stream else await customer.create("?")
        assert (response.output_text, till.ran) == ("it is 3", [("add", 1, 2)])
        *calls, message = response.output
        assert message.type == "message"
        if shown is None:
            assert calls == []
            assert b'"add"' not in desk.tap.exchanges[0].body
            return
        (item,) = calls
        assert (item.type, item.name, item.server_label) == ("mcp_call", "add", "Concierge")
        assert (item.status, item.arguments, item.output) == ("completed", *shown)


async def test_the_events_of_a_call(customer_of: Any) -> None:
    async with open_client(Till().agent(*SCRIPT), host_tools="full") as desk:
        events = await customer_of(desk).events("?")
        assert [event.type for event in events[2:8]] == [
            "response.output_item.added",
            "response.mcp_call.in_progress",
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done",
            "response.mcp_call.completed",
            "response.output_item.done",
        ]


async def test_text_around_a_hidden_call_is_two_messages() -> None:
    async with open_client(Till().agent(["let me see", call("add", a=1, b=2)], ["it is 3"])) as desk:
        customer = AsyncCustomer(desk)
        response: Any = (await customer.stream("?"))[1]
        assert [item.content[0].text for item in response.output] == ["let me see", "it is 3"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_fails_is_shown_without_its_reason(stream: bool) -> None:
    @tool
    def broken() -> str:
        """Fails."""
        raise RuntimeError("the secret reason")

    target = agent([call("broken")], ["sorry"], tools=[broken])
    async with open_client(target, host_tools="full") as desk:
        customer = AsyncCustomer(desk)
        response: Any = (await customer.stream("?"))[1] if stream else await customer.create("?")
        assert (response.output[0].status, response.output_text) == ("failed", "sorry")
        assert b"the secret reason" not in desk.tap.exchanges[0].body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("approve", [True, False])
async def test_a_call_that_waited_for_a_human_was_shown_before_it_was_made_and_not_after(
    stream: bool, approve: bool
) -> None:
    till = Till()
    async with open_client(till.agent([call("pay", amount=5)], ["fine"]), host_tools="full") as desk:
        customer = AsyncCustomer(desk)
        asked: Any = (await customer.stream("?"))[1] if stream else await customer.create("?")
        (question,) = asked.output
        assert question.type == "mcp_approval_request"
        answer: Any = [{"type": "mcp_approval_response", "approval_request_id": question.id, "approve": approve}]
        more = {"previous_response_id": asked.id}
        response: Any = (await customer.stream(answer, **more))[1] if stream else await customer.create(answer, **more)
        *made, message = response.output
        assert message.content[0].text == "fine"
        if not approve:
            assert (made, till.ran) == ([], [])
            return
        (item,) = made
        assert (item.type, item.name, item.status, item.output) == ("mcp_call", "pay", "completed", "paid 5")
        assert (json.loads(item.arguments), item.approval_request_id) == ({"amount": 5}, question.id)
        assert (await customer.retrieve(response.id)).output[0] == item


@pytest.mark.parametrize("stream", [False, True])
async def test_of_several_calls_that_waited_each_is_shown_when_it_was_made(stream: bool) -> None:
    till = Till()
    several = [call("pay", "one", amount=5), call("add", "two", a=1, b=2), call("refund", "three", amount=7)]
    async with open_client(till.agent(several, ["fine"]), host_tools="full") as desk:
        customer = AsyncCustomer(desk)
        last: Any = (await customer.stream("?"))[1] if stream else await customer.create("?")
        shown = list(last.output)
        while questions := [item for item in last.output if item.type == "mcp_approval_request"]:
            answer: Any = {"type": "mcp_approval_response", "approval_request_id": questions[0].id, "approve": True}
            more = {"previous_response_id": last.id}
            last = (await customer.stream([answer], **more))[1] if stream else await customer.create([answer], **more)
            shown += last.output
        made = [(item.name, item.status, item.output) for item in shown if item.type == "mcp_call"]
        assert sorted(made) == [
            ("add", "completed", "3"),
            ("pay", "completed", "paid 5"),
            ("refund", "completed", "refunded 7"),
        ]
        assert sorted(till.ran) == [("add", 1, 2), ("pay", 5), ("refund", 7)]


async def test_calls_at_the_models_service_are_shown_too() -> None:
    said = [
        Content.from_mcp_server_tool_call("k", "fetch", server_name="files", arguments={"path": "a"}),
        Content.from_mcp_server_tool_result("k", output=[Content.from_text("found")]),
        Content.from_search_tool_call("s", tool_name="web_search", arguments={"q": "x"}),
        "found it",
    ]
    async with open_client(agent(said), host_tools="full") as desk:
        response: Any = await AsyncCustomer(desk).create("?")
        fetch, search, message = response.output
        assert (fetch.name, fetch.server_label, json.loads(fetch.arguments)) == ("fetch", "files", {"path": "a"})
        assert "found" in fetch.output
        assert (search.name, search.status) == ("web_search", "incomplete")
        assert message.type == "message"
