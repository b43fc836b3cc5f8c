"""The facts of the protocol that clients of hosted agents rely on: routes, headers, the query parameter, the errors."""

import asyncio
from typing import Any

import httpx
import pytest

from frontdesk import ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import echo
from tests.scenarios.desk import open_client

INVOCATION = "x-agent-invocation-id"
SESSION = "x-agent-session-id"
REQUEST = "x-request-id"

# A run "known" of a session "s" is there before each of them is asked.
ROUTES: dict[str, tuple[str, str, Any, int]] = {
    "create": ("POST", "/invocations", {"message": "hi"}, 200),
    "create in the background": ("POST", "/invocations", {"message": "hi", "background": True}, 202),
    "create in a session": ("POST", "/invocations?agent_session_id=t", {"message": "hi"}, 200),
    "get": ("GET", "/invocations/known", None, 200),
    "cancel": ("POST", "/invocations/known/cancel", None, 200),
    "the document": ("GET", "/invocations/docs/openapi.json", None, 200),
    "get another": ("GET", "/invocations/unknown", None, 404),
    "cancel another": ("POST", "/invocations/unknown/cancel", None, 404),
    "a trailing slash": ("POST", "/invocations/", {"message": "hi"}, 200),
}


@pytest.mark.parametrize(("method", "path", "body", "status"), ROUTES.values(), ids=ROUTES)
async def test_a_route(method: str, path: str, body: Any, status: int) -> None:
    async with open_client(echo) as desk:
        await desk.ask("hi", session_id="s", headers={INVOCATION: "known"})
        response = await desk.client.request(method, path, json=body)
        assert response.status_code == status
        assert response.headers["content-type"] == "application/json"
        if response.is_error:
            _is_envelope(response)


def _is_envelope(response: httpx.Response) -> None:
    body = response.json()
    assert list(body) == ["error"]
    assert isinstance(body["error"]["code"], str)
    assert isinstance(body["error"]["message"], str)


@pytest.mark.parametrize("body", [{}, {"stream": True}, {"background": True}], ids=["json", "stream", "background"])
async def test_the_ids_that_the_caller_chose_come_back_as_headers(body: dict[str, Any]) -> None:
    async with open_client(echo) as desk:
        chosen = {INVOCATION: "mine", REQUEST: "ticket-1"}
        response = await desk.ask("hi", session_id="s", headers=chosen, **body)
        assert response.headers[INVOCATION] == "mine"
        assert response.headers[SESSION] == "s"
        assert response.headers[REQUEST] == "ticket-1"


@pytest.mark.parametrize("body", [{}, {"stream": True}], ids=["json", "stream"])
async def test_ids_that_nobody_chose_are_made_up(body: dict[str, Any]) -> None:
    async with open_client(echo) as desk:
        first, second = [(await desk.ask("hi", **body)).headers for _ in range(2)]
        for name in (INVOCATION, SESSION, REQUEST):
            assert first[name]
            assert first[name] != second[name]
        assert (await desk.get(first[INVOCATION])).json()["session_id"] == first[SESSION]


@pytest.mark.parametrize("path", ["/invocations/known", "/invocations/known/cancel"])
async def test_looking_and_cancelling_say_which_run_it_was(path: str) -> None:
    async with open_client(echo) as desk:
        await desk.ask("hi", session_id="s", headers={INVOCATION: "known"})
        method = "POST" if path.endswith("cancel") else "GET"
        headers = (await desk.client.request(method, path)).headers
        assert (headers[INVOCATION], headers[SESSION]) == ("known", "s")


@pytest.mark.parametrize("given", ["a b", "x" * 257, "<script>", "a\tb"])
async def test_a_request_id_that_is_not_safe_to_repeat_is_not_repeated(given: str) -> None:
    async with open_client(echo) as desk:
        response = await desk.ask("hi", headers={REQUEST: given})
        assert response.status_code == 200
        assert response.headers[REQUEST] == response.headers[INVOCATION]
        refused = await desk.ask("hi", session_id="", headers={REQUEST: given})
        assert refused.headers[REQUEST].startswith("req_")


async def test_a_request_id_comes_back_on_errors_too() -> None:
    async with open_client(echo, InvocationsChannel(auth=ApiKeyAuth({"alice": "the-key-of-alice"}))) as desk:
        response = await desk.ask("hi", headers={REQUEST: "ticket-1"})
        assert (response.status_code, response.headers[REQUEST]) == (401, "ticket-1")
        _is_envelope(response)


async def test_the_session_in_the_body_may_be_null() -> None:
    async with open_client(echo) as desk:
        response = await desk.client.post("/invocations?agent_session_id=s", json={"message": "hi", "session_id": None})
        assert response.headers[SESSION] == "s"


async def test_events_have_a_name_a_number_and_one_line_of_json() -> None:
    async with open_client(echo) as desk:
        response = await desk.ask("two\nlines", stream=True)
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache, no-transform"
        *blocks, end = response.text.split("\n\n")
        assert end == ""
        for number, block in enumerate(blocks):
            name, place, data = block.split("\n")
            assert name.startswith("event: ")
            assert place == f"id: {number}"
            assert data.startswith("data: {")


async def test_an_idle_stream_is_kept_alive() -> None:
    go_on = asyncio.Event()

    async def slow(text: str) -> str:
        await go_on.wait()
        return text

    async with open_client(slow, InvocationsChannel(keep_alive=0.01)) as desk:
        lines: list[str] = []
        async with desk.client.stream("POST", "/invocations", json={"message": "hi", "stream": True}) as response:
            async for line in response.aiter_lines():
                lines.append(line)
                if lines.count(": keep-alive") == 2:
                    go_on.set()
        assert lines.count(": keep-alive") >= 2
        assert "event: completed" in lines
