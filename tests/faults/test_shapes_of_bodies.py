"""Size, depth and width of bodies against every route: refused in the channel's own shape, or answered and recorded."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_framework import Message
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Route, WebSocketRoute
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.stores.sql import records
from frontdesk_testing import HostClient, serving
from tests.examples import examples
from tests.faults.loop_steps import count_steps
from tests.scenarios.cast import build_scripted

MOST, VALUES = 256 * 1024, 10_000
SMALL = {"max_body_bytes": MOST, "max_body_values": VALUES}
SAID = {"role": "user", "content": "hi"}
JSON = {"content-type": "application/json"}
STEPS = 60_000
"""How many calls one step of the loop may make, whatever a body brings: a hundredth of a second or so."""

Body = dict[str, Any]


def _nest(depth: int) -> Any:
    return json.loads("[" * depth + "]" * depth)


SHAPES: dict[str, Any] = {
    "deep": _nest(110),
    "just deep enough": _nest(55),
    "wide": [0] * 25_000,
    "many empty lists": [[]] * 20_000,
    "many keys": {str(number): 0 for number in range(12_000)},
    "many keys, but not too many": {str(number): 0 for number in range(9_000)},
    "large": "x" * (2 * MOST),
    "a long text": "x" * (MOST // 2),
    "a text of commas": "[,{" * (MOST // 6),
    "a huge number": 10**3_000,
    "a number beyond the machine's": 10**30,
    "a dollar": {"$": {"$": "Content", "type": "text"}},
    "a null character": "\u0000" * 100,
}

PLACES: dict[str, list[tuple[str, Any]]] = {
    "/v1/responses": [
        ("a field that nobody knows", lambda shape: {"input": "hi", "x": shape}),
        ("a field of an item that nobody knows", lambda shape: {"input": [{**SAID, "x": shape}]}),
        (
            "a part",
            lambda shape: {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a", "x": shape}]}]},
        ),
        ("the content", lambda shape: {"input": [{"role": "user", "content": shape}]}),
        ("an item of the host's", lambda shape: {"input": [SAID, {"type": "mcp_call", "output": shape}]}),
        ("the input", lambda shape: {"input": shape}),
        ("the metadata", lambda shape: {"input": "hi", "metadata": {"a": shape}}),
        ("the metadata itself", lambda shape: {"input": "hi", "metadata": shape}),
        (
            "the tools",
            lambda shape: {"input": "hi", "tools": [{"type": "function", "name": "f", "parameters": {"x": shape}}]},
        ),
        (
            "the schema",
            lambda shape: {
                "input": "hi",
                "text": {"format": {"type": "json_schema", "name": "n", "schema": {"x": shape}}},
            },
        ),
    ],
    "/v1/responses/input_tokens": [
        ("a field of an item that nobody knows", lambda shape: {"input": [{**SAID, "x": shape}]}),
        ("the content", lambda shape: {"input": [{"role": "user", "content": shape}]}),
    ],
    "/v1/responses/compact": [
        ("a field of an item that nobody knows", lambda shape: {"model": None, "input": [{**SAID, "x": shape}]}),
        ("the content", lambda shape: {"model": None, "input": [{"role": "user", "content": shape}]}),
    ],
    "/v1/conversations": [
        ("a field of an item that nobody knows", lambda shape: {"items": [{"type": "message", **SAID, "x": shape}]}),
        ("the metadata", lambda shape: {"metadata": {"a": shape}}),
    ],
    "/v1/conversations/{conversation_id}": [("the metadata", lambda shape: {"metadata": {"a": shape}})],
    "/v1/conversations/{conversation_id}/items": [
        ("a field of an item that nobody knows", lambda shape: {"items": [{"type": "message", **SAID, "x": shape}]}),
        ("an item of the host's", lambda shape: {"items": [{"type": "mcp_call", "output": shape}]}),
    ],
    "/v1/chat/completions": [
        ("a field that nobody knows", lambda shape: {"messages": [SAID], "x": shape}),
        ("a field of a message that nobody knows", lambda shape: {"messages": [{**SAID, "x": shape}]}),
        ("the content", lambda shape: {"messages": [{"role": "user", "content": shape}]}),
        ("the messages", lambda shape: {"messages": shape}),
        ("the calls", lambda shape: {"messages": [{"role": "assistant", "tool_calls": shape}]}),
        ("the metadata", lambda shape: {"messages": [SAID], "metadata": {"a": shape}}),
        (
            "the tools",
            lambda shape: {
                "messages": [SAID],
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": shape}}}],
            },
        ),
        (
            "the schema",
            lambda shape: {
                "messages": [SAID],
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"x": shape}}},
            },
        ),
    ],
    "/invocations": [
        ("the message", lambda shape: {"message": shape}),
        ("the input", lambda shape: {"input": shape}),
        ("the metadata", lambda shape: {"message": "hi", "metadata": {"a": shape}}),
        ("a field that nobody knows", lambda shape: {"message": "hi", "x": shape}),
        ("the responses", lambda shape: {"responses": {"a": shape}, "session_id": "s"}),
    ],
}
"""Where in the body of each route a shape is put."""

WITHOUT_A_BODY = {"/v1/responses/{run_id}/cancel", "/invocations/{run_id}/cancel"}


class EveryChannelHost:
    """A served host with every HTTP channel."""

    def __init__(self, client: HostClient, host: AgentFrameworkHost, model: Any) -> None:
        self.http, self.url = client.http, client.base_url
        self.host = host
        self.model = model
        """What was asked of the model is in `seen`."""
        self.conversation = ""

    async def post(self, path: str, body: Body) -> httpx.Response:
        filled = path.replace("{conversation_id}", self.conversation).replace("{run_id}", "nothing")
        return await self.http.post(filled, content=json.dumps(body).encode(), headers=JSON)

    async def routes(self) -> list[str]:
        """Every path that takes a POST, once: `/responses` and `/v1/responses` are one door."""
        found: list[str] = []
        for route in self.host.app.routes:
            if not isinstance(route, Route) or ":path" in route.path:
                continue
            answer = await self.http.request("TRACE", re.sub(r"\{\w+\}", "x", route.path))
            if "POST" in answer.headers.get("allow", ""):
                found.append(route.path)
        # `azure-ai-projects` calls the same routes below `/openai`.
        assert all(path.removeprefix("/openai") in found for path in found)
        found = [path for path in found if not path.startswith("/openai/")]
        return [path for path in found if f"/v1{path}" not in found]

    async def need_recorded(self, path: str, answer: httpx.Response) -> None:
        """What was answered with 200 can be asked for, all of it."""
        shown = answer.json()
        if path in ("/v1/responses/input_tokens", "/v1/chat/completions"):
            # Nothing is kept of it.
            return
        if path == "/v1/responses":
            links = [f"/v1/responses/{shown['id']}", f"/v1/responses/{shown['id']}/input_items"]
        elif path == "/v1/responses/compact":
            links = [f"/v1/responses/{shown['id']}"]
        elif path == "/invocations":
            links = [f"/invocations/{shown['id']}"]
        elif path == "/v1/conversations":
            links = [f"/v1/conversations/{shown['id']}", f"/v1/conversations/{shown['id']}/items"]
        else:
            links = [f"/v1/conversations/{self.conversation}", f"/v1/conversations/{self.conversation}/items"]
        for link in links:
            assert (await self.http.get(link)).status_code == 200, link


def _answer(messages: list[Message]) -> list[str]:
    return ["y" * 200_000 if messages and messages[-1].text == "long" else '{"done": 1}']


@asynccontextmanager
async def open_house(place: Path, **settings: Any) -> AsyncIterator[EveryChannelHost]:
    agent = build_scripted(_answer)
    channels = [
        ResponsesChannel(compactor=lambda messages: "all that was said", **settings),
        ChatCompletionsChannel(**settings),
        ConversationsChannel(**settings),
        InvocationsChannel(**settings),
    ]
    host = AgentFrameworkHost(agent, channels=channels, state_dir=place)
    async with serving(host) as client:
        house = EveryChannelHost(client, host, agent.client)
        house.conversation = (await house.post("/v1/conversations", {})).json()["id"]
        yield house


def _in_shape(path: str, answer: httpx.Response) -> None:
    error = answer.json()["error"]
    assert error["code"]
    assert error["message"]
    assert ("type" in error) is not path.startswith("/invocations"), error
    assert len(answer.content) < 10_000


@pytest.mark.parametrize("path", PLACES)
async def test_every_shape_is_refused_or_recorded(path: str, tmp_path: Path) -> None:
    async with open_house(tmp_path, **SMALL) as house:
        for name, shape in SHAPES.items():
            for place, body_of in PLACES[path]:
                answer = await house.post(path, body_of(shape))
                case = f"{name} in {place}: {answer.status_code} {answer.text[:300]}"
                assert answer.status_code == 200 or 400 <= answer.status_code < 500, case
                if answer.status_code == 200:
                    await house.need_recorded(path, answer)
                else:
                    _in_shape(path, answer)
                if name in ("deep", "wide", "many empty lists", "many keys"):
                    assert answer.status_code == 400, case
                if name == "large":
                    assert answer.status_code == 413, case


async def test_every_route_with_a_body_is_in_the_table(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        assert set(await house.routes()) == PLACES.keys() | WITHOUT_A_BODY
        sockets = {route.path for route in house.host.app.routes if isinstance(route, WebSocketRoute)}
        assert sockets == {"/responses", "/v1/responses", "/openai/v1/responses"}


async def test_every_shape_on_a_websocket_is_refused_or_recorded(tmp_path: Path) -> None:
    async with open_house(tmp_path, **SMALL) as house:
        address = f"{house.url.replace('http', 'ws')}/v1/responses"
        async with connect(address, max_size=None, proxy=None) as socket:
            for name, shape in SHAPES.items():
                for place, body_of in PLACES["/v1/responses"]:
                    await socket.send(json.dumps({"type": "response.create", **body_of(shape)}))
                    last = await _last(socket)
                    if last["type"] == "error":
                        assert 400 <= last["status"] < 500, (name, place, last)
                        assert last["error"]["message"]
                    else:
                        assert last["type"] == "response.completed", (name, place, str(last)[:300])
                        link = f"/v1/responses/{last['response']['id']}"
                        assert (await house.http.get(link)).status_code == 200
                        assert (await house.http.get(f"{link}/input_items")).status_code == 200


async def _last(socket: Any) -> Any:
    while True:
        event = json.loads(await socket.recv())
        if event["type"] == "error" or event["type"].removeprefix("response.") in ("completed", "failed", "incomplete"):
            return event


free = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9) | st.just("$"), inner, max_size=3),
    max_leaves=8,
)
deep = st.builds(lambda value, levels: _wrap(value, levels), free, st.sampled_from([0, 0, 5, 50, 58, 62, 90, 99]))


def _wrap(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


@given(shapes=st.lists(deep, min_size=6, max_size=6))
@examples(4)
async def test_whatever_was_accepted_can_be_asked_for(
    shapes: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with open_house(tmp_path_factory.mktemp("any")) as house:
        for path, places in PLACES.items():
            for shape, (place, body_of) in product(shapes, places):
                ran = len(house.model.seen)
                answer = await house.post(path, body_of(shape))
                assert answer.status_code < 500, (place, shape, answer.text)
                if answer.status_code == 200:
                    await house.need_recorded(path, answer)
                else:
                    assert len(house.model.seen) == ran, "it was refused after it ran"


async def test_brackets_in_a_field_that_nobody_knows_ran_and_were_not_recorded(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        refused = await house.post("/v1/responses", {"input": [{**SAID, "x": _nest(110)}], "stream": True})
        assert refused.status_code == 400
        error = refused.json()["error"]
        assert (error["code"], error["param"]) == ("nested_too_deep", "input[0]")
        assert not house.model.seen


async def test_many_references_to_one_large_item_read_it_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house(tmp_path) as house:
        made = (await house.post("/v1/responses", {"input": "long"})).json()
        reply = made["output"][0]["id"]
        decoded: list[int] = []
        decode = records.decode

        def counted(data: bytes) -> Any:
            if len(data) > 200_000:
                decoded.append(len(data))
            return decode(data)

        monkeypatch.setattr(records, "decode", counted)
        few = await house.post("/v1/responses", {"input": [{"type": "item_reference", "id": reply}] * 20 + [SAID]})
        assert few.status_code == 200, few.text
        assert len(decoded) == 1
        many = await house.post("/v1/responses", {"input": [{"type": "item_reference", "id": reply}] * 400 + [SAID]})
        assert many.status_code == 413, many.status_code
        error = many.json()["error"]
        assert (error["code"], error["param"]) == ("body_too_large", "input[167]")
        assert len(decoded) == 2


async def test_a_wide_body_held_everybody_up(tmp_path: Path) -> None:
    body = b'{"input": [{"role": "user", "content": "hi", "x": [%b[]]}]}' % (b"[]," * 300_000)
    async with open_house(tmp_path) as house:
        await house.http.get("/healthz")
        with count_steps() as steps:
            answer = await house.http.post("/v1/responses", content=body, headers=JSON)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_many_values")
        assert steps.longest < STEPS


async def test_the_widest_body_that_is_taken_leaves_the_loop_free(tmp_path: Path) -> None:
    """Each value of it is one that the host reads."""
    parts = [{"type": "input_text", "text": "a"}] * 300
    body = json.dumps({"input": [{"role": "user", "content": parts}, *[SAID] * 10]}).encode()
    known = json.dumps(
        {"input": "hi", "tools": [{"type": "function", "name": "f", "parameters": {"enum": [0] * 90_000}}]}
    )
    async with open_house(tmp_path) as house:
        await house.http.get("/healthz")
        with count_steps() as steps:
            for content in (body, known.encode()):
                answer = await house.http.post("/v1/responses", content=content, headers=JSON)
                assert answer.status_code in (200, 400), answer.text
                if answer.status_code == 200:
                    await house.need_recorded("/v1/responses", answer)
        assert steps.longest < STEPS
