"""Whatever is sent instead of a good body gets a clear error, and nothing runs and nothing is stored."""

import json
from typing import Any

import httpx
import pytest
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import parrot
from tests.scenarios.desk import PATH, InvocationsHost, open_client

JSON = {"content-type": "application/json"}
BIG = "x" * (1024 * 1024)


def assert_refused(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The status and the shape that every error has."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "param", "id"}
    assert body["error"]["code"] == code
    assert body["error"]["message"].strip()
    return body["error"]


async def _nothing_happened(desk: InvocationsHost, agent: Any) -> None:
    assert agent.client.seen == []
    assert desk.untouched()
    # The server is as well as before.
    assert (await desk.ask("hi", session_id="s")).status_code == 200


NOT_JSON = {
    "nothing": b"",
    "words": b"hello",
    "half an object": b'{"message": "hi"',
    "two objects": b'{"message": "hi"}{}',
    "a byte order mark": b'\xef\xbb\xbf{"message": "hi"}',
    "not a number": b'{"input": NaN}',
    "invalid utf-8 at the start": b"\xff\xfe",
    "invalid utf-8 in a text": b'{"message": "\xc3\x28"}',
    "invalid utf-8 in a name": b'{"\xff": 1}',
    "half a surrogate pair": b'{"message": "\\ud800 alone"}',
    "a raw line end in a text": b'{"message": "a\nb"}',
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
async def test_it_was_not_json(body: bytes) -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        assert_refused(await desk.client.post(PATH, content=body, headers=JSON), 400, "invalid_json")
        await _nothing_happened(desk, agent)


TOO_DEEP: dict[str, tuple[bytes, str | None]] = {
    "10,000 nested arrays": (b"[" * 10_000 + b"]" * 10_000, None),
    "10,000 nested arrays as input": (b'{"input": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", None),
    "10,000 nested objects as input": (b'{"input": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}", None),
    "700 nested arrays as input": (b'{"input": ' + b"[" * 700 + b'"x"' + b"]" * 700 + b"}", "input[0]"),
}


@pytest.mark.parametrize(("body", "param"), TOO_DEEP.values(), ids=TOO_DEEP)
async def test_it_was_nested_too_deep(body: bytes, param: str | None) -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        response = await desk.client.post(PATH, content=body, headers=JSON)
        assert assert_refused(response, 400, "nested_too_deep").get("param") == param
        await _nothing_happened(desk, agent)


NOT_A_BODY: dict[str, tuple[Any, str | None]] = {
    "null": (None, None),
    "a list": ([], None),
    "a text": ("hi", None),
    "no message": ({}, "message"),
    "a message and an input": ({"message": "a", "input": "b"}, "message"),
    "a message that is a number": ({"message": 1}, "message"),
    "a message that is null": ({"message": None}, "message"),
    "an empty list": ({"message": []}, "message"),
    "257 parts": ({"message": [{"type": "text", "text": "x"}] * 257}, "message"),
    "a part of no kind": ({"message": [{"text": "x"}]}, "message[0]"),
    "a part of an unknown kind": ({"message": [{"type": "video", "text": "x"}]}, "message[0].type"),
    "a part with an unknown field": ({"message": [{"type": "text", "text": "x", "y": 1}]}, "message[0]"),
    "a text part without text": ({"message": [{"type": "text"}]}, "message[0]"),
    "data that is not base64": (
        {"message": [{"type": "data", "data": "?", "media_type": "image/png"}]},
        "message[0].data",
    ),
    "a media type that is none": (
        {"message": [{"type": "data", "data": "aGk=", "media_type": "png\r\nx: y"}]},
        "message[0].media_type",
    ),
    "a uri that is a file": (
        {"message": [{"type": "uri", "uri": "file:///etc/passwd", "media_type": "text/plain"}]},
        "message[0].uri",
    ),
    "a stream flag in words": ({"message": "a", "stream": "yes"}, "stream"),
    "a background flag in numbers": ({"message": "a", "background": 1}, "background"),
    "an unknown field": ({"message": "a", "mesage": "b"}, None),
    "an unknown option": ({"message": "a", "options": {"model": "x"}}, "options"),
    "an option out of range": ({"message": "a", "options": {"temperature": 3}}, "options.temperature"),
    "metadata that is not text": ({"message": "a", "metadata": {"a": 1}}, "metadata.a"),
    "17 pieces of metadata": ({"message": "a", "metadata": {str(n): "" for n in range(17)}}, "metadata"),
    "an approval without an answer": ({"approval": {"id": "x"}}, "approval"),
    "an approval in words": ({"approval": {"id": "x", "approved": "true"}}, "approval.approved"),
    "an input that an agent can't hear": ({"input": {"city": "Rome"}}, "input"),
    "an empty input": ({"input": []}, "input"),
}


@pytest.mark.parametrize(("body", "param"), NOT_A_BODY.values(), ids=NOT_A_BODY)
@pytest.mark.parametrize("stream", [False, True])
async def test_it_was_json_but_not_a_body(body: Any, param: str | None, stream: bool) -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        if stream and isinstance(body, dict) and "stream" not in body:
            body = {**body, "stream": True}
        content = body if isinstance(body, bytes) else json.dumps(body)
        error = assert_refused(await desk.client.post(PATH, content=content, headers=JSON), 400, "invalid_request")
        assert error.get("param") == param
        await _nothing_happened(desk, agent)


IDS = {
    "a NUL": "a\x00b",
    "a way out of a folder": "../x",
    "two dots": "..",
    "nothing": "",
    "a slash": "a/b",
    "a line end": "a\r\nset-cookie: b",
    "a blank": "a b",
    "another alphabet": "сессия",
    "a megabyte": BIG,
    "257 letters": "x" * 257,
}


@pytest.mark.parametrize("value", IDS.values(), ids=IDS)
async def test_a_session_id_was(value: str) -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        error = assert_refused(await desk.ask(session_id=value), 400, "invalid_request")
        assert error["param"] == "session_id"
        assert len(error["message"]) < 500
        if value and len(value) < 1000:
            query = await desk.client.post(PATH, params={"agent_session_id": value}, json={"message": "hi"})
            assert assert_refused(query, 400, "invalid_request")["param"] == "session_id"
        await _nothing_happened(desk, agent)


@pytest.mark.parametrize("value", IDS.values(), ids=IDS)
async def test_an_approval_id_was(value: str) -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        response = await desk.post({"approval": {"id": value, "approved": True}})
        assert assert_refused(response, 400, "invalid_request")["param"] == "approval.id"
        await _nothing_happened(desk, agent)


@pytest.mark.parametrize("value", ["../x", "..", "a b", "a/b", "x" * 257, "\xe9"])
async def test_an_invocation_id_in_a_header_was(value: str) -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        response = await desk.ask(headers={"x-agent-invocation-id": value.encode("latin-1")})
        assert assert_refused(response, 400, "invalid_request")["param"] == "x-agent-invocation-id"
        await _nothing_happened(desk, agent)


PATHS = {
    "..": 400,
    "a%00b": 400,
    "%2e%2e": 400,
    "x" * 257: 400,
    "a%20b": 400,
    "%ff": 400,
    "../x": 404,
    "..%2fx": 404,
    "a%2fb": 404,
    "docs": 404,
    "docs/": 404,
}


@pytest.mark.parametrize(("path", "status"), PATHS.items())
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_invocation_id_in_a_path_was(path: str, status: int, method: str) -> None:
    async with open_client(parrot()) as desk:
        tail = "/cancel" if method == "POST" else ""
        head = f"{method} {PATH}/{path}{tail} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
        answer = await desk.raw(f"{head}content-length: 0\r\n\r\n".encode())
        start, _, body = answer.partition(b"\r\n\r\n")
        assert start.startswith(f"HTTP/1.1 {status} ".encode())
        assert json.loads(body)["error"]["code"] == ("invalid_request" if status == 400 else "not_found")
        assert desk.untouched()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", ""])
async def test_the_body_was_called_something_else(kind: str) -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        response = await desk.client.post(PATH, content=b'{"message": "hi"}', headers={"content-type": kind})
        assert_refused(response, 415, "unsupported_media_type")
        await _nothing_happened(desk, agent)


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json", None]
)
async def test_the_body_was_called_json_in_other_words(kind: str | None) -> None:
    async with open_client(parrot()) as desk:
        headers = {} if kind is None else {"content-type": kind}
        response = await desk.client.post(PATH, content=b'{"message": "hi"}', headers=headers)
        assert response.status_code == 200


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("PUT", ""), ("DELETE", "/x"), ("POST", "/x"), ("GET", "/x/cancel")]
)
async def test_the_method_was_another(method: str, path: str) -> None:
    async with open_client(parrot()) as desk:
        response = await desk.client.request(method, f"{PATH}{path}")
        assert_refused(response, 405, "method_not_allowed")
        assert response.headers["allow"] in ("GET", "POST")
        assert desk.untouched()


async def test_options_came_to_a_function_that_takes_none() -> None:
    async def plain(text: str) -> str:
        raise AssertionError

    async with open_client(plain) as desk:
        for body in ({}, {"stream": True}):
            response = await desk.ask(options={"temperature": 1}, session_id="s", **body)
            assert assert_refused(response, 400, "invalid_request")["param"] == "temperature"
        assert desk.untouched()


class Anything(Executor):
    """Gives back what it gets."""

    @handler
    async def back(self, value: list, context: WorkflowContext[Any, list]) -> None:
        await context.yield_output(value)


async def test_an_input_was_too_deep_to_be_answered() -> None:
    anything = Anything("anything")
    builder = WorkflowBuilder(name="anything", start_executor=anything, output_from=[anything])
    async with open_client(builder, InvocationsChannel()) as desk:
        for depth in (10, 900, 980):
            body = b'{"input": ' + b"[" * depth + b"]" * depth + b"}"
            response = await desk.client.post(PATH, content=body, headers=JSON)
            assert response.headers["content-type"] == "application/json"
            assert response.status_code == 200 or set(response.json()) == {"error"}
            assert not desk.active
