"""A request under an idempotency key runs once, and whoever sends it again gets the same answer."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import httpx
import pytest
from agent_framework import tool

from frontdesk import ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import open_client, until

PATHS = {"responses": ("/v1/responses", "input"), "invocations": ("/invocations", "message")}


class Counter:
    """A target that counts, and waits where it is told to."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def answer(self, text: str) -> str:
        self.heard.append(text)
        await self.go_on.wait()
        if text == "fail":
            raise RuntimeError("no")
        return f"{text} {len(self.heard)}"


Ask = Callable[..., Coroutine[Any, Any, httpx.Response]]


def _asker(desk: Any, door: str) -> Ask:
    path, field = PATHS[door]

    async def ask(text: str, key: str | None = "k", **more: Any) -> httpx.Response:
        headers = {} if key is None else {"idempotency-key": key}
        return await desk.client.post(path, json={field: text, **more}, headers=headers)

    return ask


def _open(target: Any) -> Any:
    return open_client(target, channels=[InvocationsChannel(), ResponsesChannel()])


@pytest.mark.parametrize("door", PATHS)
@pytest.mark.parametrize("text", ["hello", "fail"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_came_twice_ran_twice(door: str, text: str, stream: bool) -> None:
    counter = Counter()
    async with _open(counter.answer) as desk:
        ask = _asker(desk, door)
        first, again = [await ask(text, stream=stream) for _ in range(2)]
        assert (first.status_code, again.status_code, counter.heard) == (200, 200, [text])
        assert first.text == again.text
        assert (await ask(text, "another", stream=stream)).text != first.text


@pytest.mark.parametrize("door", PATHS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_came_again_while_it_ran_waits_for_the_answer(door: str, stream: bool) -> None:
    counter = Counter()
    counter.go_on.clear()
    async with _open(counter.answer) as desk:
        ask = _asker(desk, door)
        first = asyncio.create_task(ask("hello", stream=stream))
        await until(lambda: bool(counter.heard))
        others = [asyncio.create_task(ask("hello", stream=stream)) for _ in range(3)]
        counter.go_on.set()
        answers = [(await one).text for one in (first, *others)]
        assert (len(set(answers)), counter.heard) == (1, ["hello"])


@pytest.mark.parametrize("door", PATHS)
async def test_a_client_that_gave_up_lost_its_run_and_its_answer(door: str) -> None:
    counter = Counter()
    counter.go_on.clear()
    async with _open(counter.answer) as desk:
        ask = _asker(desk, door)
        given_up = asyncio.create_task(ask("hello"))
        await until(lambda: bool(counter.heard))
        given_up.cancel()
        with suppress(asyncio.CancelledError):
            await given_up
        again = asyncio.create_task(ask("hello"))
        counter.go_on.set()
        assert "hello 1" in (await again).text
        assert counter.heard == ["hello"]


@pytest.mark.parametrize("door", PATHS)
async def test_another_request_under_the_same_key_is_refused(door: str) -> None:
    counter = Counter()
    async with _open(counter.answer) as desk:
        ask = _asker(desk, door)
        await ask("hello", metadata={"a": "1", "b": "2"})
        refused = await ask("good bye", metadata={"a": "1", "b": "2"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "idempotency_key_reused")
        # The same in another order is the same.
        assert (await ask("hello", metadata={"b": "2", "a": "1"})).status_code == 200
        assert counter.heard == ["hello"]


@pytest.mark.parametrize("door", PATHS)
@pytest.mark.parametrize("key", ["", "x" * 256, "é", "a\tb"])
async def test_a_key_that_is_none_is_refused(door: str, key: str) -> None:
    counter = Counter()
    path, field = PATHS[door]
    async with _open(counter.answer) as desk:
        headers = {b"idempotency-key": key.encode("latin-1")}
        refused = await desk.client.post(path, json={field: "hello"}, headers=headers)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "Idempotency-Key")
        assert not counter.heard


async def test_a_key_for_what_is_not_stored_or_has_an_id_is_refused() -> None:
    counter = Counter()
    async with _open(counter.answer) as desk:
        unkept = await _asker(desk, "responses")("hello", store=False)
        headers = {"idempotency-key": "k", "x-agent-invocation-id": "mine"}
        named = await desk.client.post("/invocations", json={"message": "hello"}, headers=headers)
        assert [one.json()["error"]["param"] for one in (unkept, named)] == ["Idempotency-Key"] * 2
        assert not counter.heard


@pytest.mark.parametrize("door", PATHS)
async def test_a_background_run_that_was_asked_for_twice_is_one(door: str) -> None:
    counter = Counter()
    async with _open(counter.answer) as desk:
        ask = _asker(desk, door)
        ids = {(await ask("hello", background=True)).json()["id"] for _ in range(3)}
        assert len(ids) == 1
        await until(lambda: not desk.active and bool(counter.heard))
        assert counter.heard == ["hello"]


async def test_a_background_stream_that_was_asked_for_twice_is_read_twice() -> None:
    counter = Counter()
    async with _open(counter.answer) as desk:
        ask = _asker(desk, "responses")
        first, again = [await ask("hello", background=True, stream=True) for _ in range(2)]
        assert (first.text, counter.heard) == (again.text, ["hello"])


async def test_a_refused_request_used_its_key_up() -> None:
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    async with _open(build_scripted([[call("pay", amount=5)], ["done"]], tools=[pay])) as desk:
        ask = _asker(desk, "responses")
        missing = await ask("hello", previous_response_id="resp_nobody")
        assert (missing.status_code, len(desk.runs())) == (400, 0)
        asked = (await ask("pay 5")).json()
        answer = {"type": "mcp_approval_response", "approval_request_id": asked["output"][0]["id"], "approve": True}
        body = {"input": [answer], "previous_response_id": asked["id"]}
        first, again = [
            await desk.client.post("/v1/responses", json=body, headers={"idempotency-key": "yes"}) for _ in range(2)
        ]
        assert (first.text, paid) == (again.text, [5])
        # Under another key it is another request, which comes too late and leaves nothing behind.
        late = [
            await desk.client.post("/v1/responses", json=body, headers={"idempotency-key": "late"}) for _ in range(2)
        ]
        assert [one.status_code for one in late] == [409, 409]
        assert (len(desk.runs()), paid) == (2, [5])


async def test_a_compaction_that_was_asked_for_twice_was_made_twice() -> None:
    made: list[Any] = []

    def compactor(messages: Any) -> str:
        made.append(messages)
        return "short"

    async with open_client(Counter().answer, channels=[ResponsesChannel(compactor=compactor)]) as desk:

        async def compact(text: str) -> httpx.Response:
            body, headers = {"model": "any", "input": text}, {"idempotency-key": "k"}
            return await desk.client.post("/v1/responses/compact", json=body, headers=headers)

        first, again = [await compact("hello") for _ in range(2)]
        assert (first.text, len(made)) == (again.text, 1)
        assert (await compact("good bye")).status_code == 422
        assert (await _asker(desk, "responses")("hello")).status_code == 422


async def test_the_key_of_one_caller_is_not_that_of_another() -> None:
    counter = Counter()
    auth = ApiKeyAuth({"ada": "key-of-ada-1234567", "bob": "key-of-bob-1234567"})
    async with open_client(counter.answer, channels=[ResponsesChannel(auth=auth)]) as desk:
        ids = set()
        for name in ("ada", "bob", "ada"):
            headers = {"idempotency-key": "k", "x-api-key": f"key-of-{name}-1234567"}
            ids.add((await desk.client.post("/v1/responses", json={"input": "hello"}, headers=headers)).json()["id"])
        assert (len(ids), counter.heard) == (2, ["hello", "hello"])


async def test_a_request_without_a_key_writes_no_more_than_before() -> None:
    counter = Counter()
    async with _open(counter.answer) as desk:
        ask = _asker(desk, "responses")
        await ask("first", None)
        before = len(desk.ledger.writes)
        await ask("hello", None)
        plain = [name for name, _ in desk.ledger.writes[before:]]
        assert plain == ["save_session", "append_history", "save_run"]
