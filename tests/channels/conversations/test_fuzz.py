"""Any JSON as a body is taken or refused; nothing else ever comes of it, and what was taken can be read."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.channels.responses.test_parse import _any_json, _good, _likely
from tests.examples import examples

# It draws examples until it has enough, and other processes may use the same cores.
pytestmark = pytest.mark.timeout(300)

_item = st.sampled_from(_good) | st.dictionaries(st.text(max_size=5), _any_json, max_size=3) | _likely
_bodies = st.fixed_dictionaries(
    {}, optional={"items": st.lists(_item, max_size=4) | _any_json, "metadata": _any_json, "more": _any_json}
)
_deep: Any = "core"
for _ in range(200):
    _deep = [_deep]


def _deeper(item: dict[str, Any]) -> dict[str, Any]:
    return {"items": [{**item, "more": _deep}]}


async def _with_host(work: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def count(messages: list[Any]) -> str:
        return f"{len(messages)}"

    host = AgentFrameworkHost(count, channels=[ResponsesChannel(), ConversationsChannel()])
    async with (
        host.app.router.lifespan_context(host.app),
        httpx.AsyncClient(transport=httpx.ASGITransport(host.app), base_url="http://127.0.0.1") as http,
    ):
        await work(http)


@given(_bodies, _bodies)
@example({"items": [{"role": "user", "content": "\ud800"}]}, {"metadata": {"\udfff": "\ud800"}})
@example(_deeper({"role": "user", "content": "x"}), _deeper({"role": "user", "content": "x"}))
@example({"items": [{"role": "user", "content": "x", "more": 10**30}]}, {"items": [{"type": []}]})
def test_any_body_is_taken_or_refused(first: Any, second: Any) -> None:
    async def send(http: httpx.AsyncClient) -> None:
        made = await _post(http, "/conversations", first)
        if made.status_code != 200:
            made = await http.post("/conversations", json={})
        name = made.json()["id"]
        await _post(http, f"/conversations/{name}", second)
        await _post(http, f"/conversations/{name}/items", second)
        listed = await http.get(f"/conversations/{name}/items")
        assert listed.status_code == 200, listed.text
        for item in listed.json()["data"]:
            assert (await http.get(f"/conversations/{name}/items/{item['id']}")).json() == item
        asked = await http.post("/responses", json={"input": "hello", "conversation": name})
        assert asked.status_code in (200, 400), asked.text

    asyncio.run(_with_host(send))


async def _post(http: httpx.AsyncClient, path: str, body: Any) -> httpx.Response:
    headers = {"content-type": "application/json"}
    answer = await http.post(path, content=json.dumps(body).encode(), headers=headers)
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 400:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    return answer


@pytest.mark.parametrize("raw", [b"x", b"{", b'{"items": [', b"\xff", b"[" * 100_000, b'"text"', b"null"])
async def test_what_is_no_json_is_refused(raw: bytes) -> None:
    async def send(http: httpx.AsyncClient) -> None:
        answer = await http.post("/conversations", content=raw, headers={"content-type": "application/json"})
        assert answer.status_code == 400

    await _with_host(send)


@given(st.text(max_size=30))
@examples(60)
def test_any_query_is_taken_or_refused(query: str) -> None:
    async def send(http: httpx.AsyncClient) -> None:
        name = (await http.post("/conversations", json={})).json()["id"]
        for word in ("limit", "order", "after", "include", "include[]"):
            answer = await http.get(f"/conversations/{name}/items", params={word: query})
            assert answer.status_code in (200, 400, 404)

    asyncio.run(_with_host(send))
