"""A failed run was a 500, and clients try again after a 500: one call of theirs ran the agent three times."""

import asyncio
import json
from typing import Any

import pytest
from agent_framework import tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.memory import InMemoryStateStore
from tests.scenarios.responses.cast import answering, call
from tests.scenarios.responses.desk import open_desk


class Shop:
    """An agent that charges, and whose model fails then."""

    def __init__(self) -> None:
        self.charged: list[int] = []

    def agent(self) -> Any:
        @tool
        def charge(amount: int) -> str:
            """Charges."""
            self.charged.append(amount)
            return "charged"

        def answer(messages: Any) -> Any:
            results = [one for one in messages[-1].contents if one.type == "function_result"]
            return [RuntimeError("overloaded")] if results else [call("charge", amount=5)]

        return answering(answer, tools=[charge])


async def test_one_call_of_the_openai_client_charged_three_times() -> None:
    shop = Shop()
    async with open_desk(shop.agent(), beside=[ConversationsChannel()]) as desk:
        client = desk.client().with_options(max_retries=2)
        made = await client.conversations.create()
        failed = await client.responses.create(model="any", input="charge 5", conversation=made.id)
        assert (failed.status, failed.error and failed.error.code) == ("failed", "server_error")
        assert (shop.charged, len(desk.runs())) == ([5], 1)
        items = [item.to_dict() async for item in client.conversations.items.list(made.id)]
        assert [item["type"] for item in items] == ["message"]


async def test_one_streamed_call_of_the_openai_client_charges_once() -> None:
    shop = Shop()
    async with open_desk(shop.agent()) as desk:
        client = desk.client().with_options(max_retries=2)
        events = [event async for event in await client.responses.create(model="any", input="go", stream=True)]
        assert events[-1].type == "response.failed"
        assert (shop.charged, len(desk.runs())) == ([5], 1)


class FailsAtOnce:
    """An agent that fails before its stream has an update."""

    name = "fails"
    description = id = None
    called = 0

    def run(self, messages: Any = None, *, stream: bool = False, **options: Any) -> Any:
        self.called += 1
        raise RuntimeError("no")

    def create_session(self, **_: Any) -> Any:
        raise NotImplementedError

    get_session = create_session


async def test_a_stream_that_failed_before_its_first_event_was_asked_for_again() -> None:
    target = FailsAtOnce()
    async with open_desk(target) as desk:
        client = desk.client().with_options(max_retries=2)
        events = [event async for event in await client.responses.create(model="any", input="go", stream=True)]
        assert (events[0].type, events[-1].type) == ("response.created", "response.failed")
        assert target.called == 1


class AwayAtTheEnd(InMemoryStateStore):
    """A store that is away when the end of a run is to be written."""

    def transaction(self) -> Any:
        raise StoreUnavailableError


async def test_a_run_whose_end_could_not_be_written_was_asked_for_again() -> None:
    called: list[str] = []

    async def count(text: str) -> str:
        called.append(text)
        return "done"

    async with open_desk(count, store=AwayAtTheEnd()) as desk:
        failed = await desk.client().with_options(max_retries=2).responses.create(model="any", input="go")
        assert (failed.status, called) == ("failed", ["go"])


@pytest.mark.parametrize("path", ["/v1/responses", "/invocations"])
async def test_a_run_that_ended_with_its_server_was_to_be_tried_again(path: str) -> None:
    begun = asyncio.Event()

    async def endless(text: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return text

    host = AgentFrameworkHost(endless, channels=[ResponsesChannel(), InvocationsChannel()])
    said: list[Any] = []
    body = json.dumps({"input": "x"} if "responses" in path else {"message": "x"}).encode()

    async def receive() -> Any:
        if not begun.is_set():
            return {"type": "http.request", "body": body}
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        said.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
    }
    async with host.app.router.lifespan_context(host.app):
        asked = asyncio.create_task(host.app(scope, receive, send))
        await begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert (said[0]["status"], json.loads(said[1]["body"])["status"]) == (200, "cancelled")
    assert (b"x-should-retry", b"false") in said[0]["headers"]
