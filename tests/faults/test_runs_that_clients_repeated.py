"""A failed run was a 500, and clients try again after a 500: one call of theirs ran the agent three times."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from agent_framework import tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.memory.store import InMemoryStateStore
from tests.scenarios.chat_completions.desk import open_client as open_chat_desk
from tests.scenarios.responses.cast import build_answering, call
from tests.scenarios.responses.desk import open_client
from tests.scenarios.responses.sockets import LAST, dial

FAILED = {
    "code": "invalid_prompt",
    "message": "The agent failed while it answered.",
    "type": "server_error",
    "param": None,
}
"""The error of every failed run, which real clients neither repeat nor fail to read."""


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

        return build_answering(answer, tools=[charge])


async def test_one_call_of_the_openai_client_charged_three_times() -> None:
    shop = Shop()
    async with open_client(shop.agent(), beside=[ConversationsChannel()]) as desk:
        client = desk.client().with_options(max_retries=2)
        made = await client.conversations.create()
        failed = await client.responses.create(model="any", input="charge 5", conversation=made.id)
        assert (failed.status, failed.error and failed.error.to_dict()) == ("failed", FAILED)
        assert (shop.charged, len(desk.runs())) == ([5], 1)
        items = [item.to_dict() async for item in client.conversations.items.list(made.id)]
        assert [item["type"] for item in items] == ["message"]


async def test_one_streamed_call_of_the_openai_client_charges_once() -> None:
    shop = Shop()
    async with open_client(shop.agent()) as desk:
        client = desk.client().with_options(max_retries=2)
        events = [event async for event in await client.responses.create(model="any", input="go", stream=True)]
        last: Any = events[-1]
        assert (last.type, last.response.error.to_dict()) == ("response.failed", FAILED)
        assert (shop.charged, len(desk.runs())) == ([5], 1)


async def test_the_codex_cli_repeated_a_failed_run_for_the_code_of_its_error() -> None:
    """`make clients` asks the CLI itself: it repeated the run five times on a WebSocket, and then five by POST."""
    async with open_client(Shop().agent()) as desk:
        whole = (await desk.post({"input": "charge 5"})).json()
        streamed = _last(await desk.post({"input": "charge 5", "stream": True}))
        background = _last(await desk.post({"input": "charge 5", "stream": True, "background": True}))
        path = f"/v1/responses/{background['response']['id']}"
        followed = _last(await desk.http.get(path, params={"stream": "true"}))
        kept = (await desk.http.get(path)).json()
        async with dial(desk) as line:
            told = await line.ask("charge 5")
        for event in (streamed, background, followed, told):
            assert (event["type"], event["response"]["status"]) == ("response.failed", "failed")
            assert event["response"]["error"] == FAILED
        assert (whole["error"], kept["error"]) == (FAILED, FAILED)


def _last(streamed: httpx.Response) -> dict[str, Any]:
    return json.loads(streamed.text.rpartition("data: ")[2])


async def test_the_ai_sdk_repeated_a_chat_stream_for_the_type_of_its_error() -> None:
    shop = Shop()
    async with open_chat_desk(shop.agent()) as desk:
        body = {"model": "any", "messages": [{"role": "user", "content": "charge 5"}]}
        whole = await desk.post(body)
        streamed = await desk.post({**body, "stream": True})
        assert (whole.status_code, whole.headers["x-should-retry"]) == (424, "false")
        for error in (whole.json()["error"], _last(streamed)["error"]):
            assert error.pop("message").startswith("The agent failed while it answered. (chatcmpl_")
            assert error == {"type": "invalid_request_error", "param": None, "code": "target_failed"}
        assert shop.charged == [5, 5]


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
    async with open_client(target) as desk:
        client = desk.client().with_options(max_retries=2)
        events = [event async for event in await client.responses.create(model="any", input="go", stream=True)]
        assert (events[0].type, events[-1].type) == ("response.created", "response.failed")
        assert target.called == 1


async def test_a_socket_refused_a_run_that_had_failed_before_its_first_event() -> None:
    target = FailsAtOnce()
    async with open_client(target) as desk, dial(desk) as line:
        await line.create("go")
        events = await line.until(*LAST)
        assert [events[0]["type"], events[-1]["type"]] == ["response.created", "response.failed"]
        assert (events[-1]["response"]["error"], target.called) == (FAILED, 1)


class AwayAtTheEnd(InMemoryStateStore):
    """A store that is away when the end of a run is to be written."""

    def transaction(self) -> Any:
        raise StoreUnavailableError


async def test_a_run_whose_end_could_not_be_written_was_asked_for_again() -> None:
    called: list[str] = []

    async def count(text: str) -> str:
        called.append(text)
        return "done"

    async with open_client(count, store=AwayAtTheEnd()) as desk:
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
