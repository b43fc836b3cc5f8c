"""What can't be served is refused in the API's own words, with the parameter's name, and leaves nothing behind."""

from typing import Any

import pytest

from tests.scenarios.cast import echo
from tests.scenarios.responses.cast import Till, parrot
from tests.scenarios.responses.desk import ResponsesHost, open_client

USER: Any = {"role": "user", "content": "hello"}
FUNCTION: Any = {"type": "function", "name": "look"}
DEEP = b'{"input": [{"role": "user", "content": ' + b"[" * 10_000 + b"]" * 10_000 + b"}]}"


def item(**body: Any) -> dict[str, Any]:
    """A request of one item, behind a good one."""
    return {"input": [USER, body]}


def part(**body: Any) -> dict[str, Any]:
    """A request of one part, behind a good one."""
    return item(role="user", content=[{"type": "input_text", "text": "see"}, body])


def form(schema: Any, **more: Any) -> dict[str, Any]:
    """A request for a structure."""
    return {"input": "hello", "text": {"format": {"type": "json_schema", "name": "form", "schema": schema, **more}}}


def function(parameters: Any) -> dict[str, Any]:
    """A request with a function of the client's."""
    return {"input": "hello", "tools": [FUNCTION, {**FUNCTION, "name": "ask", "parameters": parameters}]}


BODIES: list[tuple[Any, str | None]] = [
    # The body and its fields.
    ([], None),
    ("hello", None),
    ({}, "input"),
    ({"input": None}, "input"),
    ({"input": []}, "input"),
    ({"input": 7}, "input"),
    ({"input": [7]}, "input[0]"),
    ({"input": {"role": "user"}}, "input"),
    ({"input": "x" * 10_485_761}, "input"),
    ({"input": "hello", "model": 7}, "model"),
    ({"input": "hello", "stream": "yes"}, "stream"),
    ({"input": "hello", "store": 1}, "store"),
    ({"input": "hello", "temperature": 2.5}, "temperature"),
    ({"input": "hello", "temperature": "hot"}, "temperature"),
    ({"input": "hello", "top_p": -1}, "top_p"),
    ({"input": "hello", "max_output_tokens": 1.5}, "max_output_tokens"),
    ({"input": "hello", "max_output_tokens": 15}, "max_output_tokens"),
    ({"input": "hello", "max_tool_calls": 0}, "max_tool_calls"),
    ({"input": "hello", "top_logprobs": 21}, "top_logprobs"),
    ({"input": "hello", "truncation": "some"}, "truncation"),
    ({"input": "hello", "service_tier": "gold"}, "service_tier"),
    ({"input": "hello", "safety_identifier": "x" * 129}, "safety_identifier"),
    ({"input": "hello", "prompt_cache_key": 7}, "prompt_cache_key"),
    ({"input": "hello", "instructions": []}, "instructions"),
    ({"input": "hello", "metadata": []}, "metadata"),
    ({"input": "hello", "metadata": {"k" * 65: "x"}}, "metadata"),
    ({"input": "hello", "metadata": {"a": 7}}, "metadata.a"),
    ({"input": "hello", "metadata": {"a": "x" * 513}}, "metadata.a"),
    ({"input": "hello", "metadata": {str(number): "" for number in range(17)}}, "metadata"),
    ({"input": "hello", "include": ["everything"]}, "include[0]"),
    ({"input": "hello", "reasoning": {"effort": "enormous"}}, "reasoning.effort"),
    ({"input": "hello", "text": {"verbosity": "silent"}}, "text.verbosity"),
    ({"input": "hello", "text": {"format": {"type": "xml"}}}, "text.format.type"),
    ({"input": "hello", "conversation": "conv_1", "previous_response_id": "resp_1"}, "conversation"),
    ({"input": "hello", "conversation": ""}, "conversation"),
    ({"input": "hello", "conversation": "../etc"}, "conversation"),
    ({"input": "hello", "conversation": 5}, "conversation"),
    ({"input": "hello", "conversation": {}}, "conversation"),
    ({"input": "hello", "conversation": {"id": None}}, "conversation.id"),
    ({"input": "hello", "store": False, "background": True, "stream": False}, "store"),
    ({"input": "hello", "previous_response_id": 7}, "previous_response_id"),
    ({"input": "hello", "previous_response_id": "../x"}, "previous_response_id"),
    ({"input": "hello", "previous_response_id": "resp_\x00"}, "previous_response_id"),
    ({"input": "hello", "previous_response_id": "x" * 1_000_000}, "previous_response_id"),
    ({"input": "hello", "previous_response_id": "resp_1"}, "previous_response_id"),
    # Items.
    (item(), "input[1].type"),
    (item(type="massage"), "input[1].type"),
    (item(type=7), "input[1].type"),
    (item(type="telepathy_call", id="tp_1", status="completed"), "input[1].type"),
    (item(role="ghost", content="boo"), "input[1].role"),
    (item(role="user"), "input[1].content"),
    (item(role="user", content=7), "input[1].content"),
    (item(role="user", content="hello", id=7), "input[1].id"),
    (item(role="assistant", content="hello", phase="soon"), "input[1].phase"),
    (item(type="item_reference", id=7), "input[1].type"),
    (item(type="reasoning"), "input[1].summary"),
    (item(type="reasoning", summary=[], encrypted_content=7), "input[1].encrypted_content"),
    (item(type="function_call", call_id="a", arguments="{}"), "input[1].name"),
    (item(type="function_call", call_id="a", name="a b", arguments="{}"), "input[1].name"),
    (item(type="function_call", call_id="", name="look", arguments="{}"), "input[1].call_id"),
    (item(type="function_call", call_id="a", name="look", arguments={}), "input[1].arguments"),
    (item(type="function_call", call_id="a", name="look", arguments="{}"), "input"),
    (item(type="function_call", call_id="a", name="pay", arguments="{}"), "input[1].name"),
    (item(type="function_call_output", call_id="a", output="x"), "input"),
    (item(type="function_call_output", call_id="a" * 65, output="x"), "input[1].call_id"),
    (item(type="function_call_output", call_id="a"), "input[1].output"),
    (item(type="mcp_approval_request", id="a", name="pay"), "input[1].arguments"),
    (item(type="mcp_approval_response", approval_request_id="a"), "input[1].approve"),
    (item(type="mcp_approval_response", approval_request_id="a", approve="yes"), "input[1].approve"),
    (item(type="mcp_approval_response", approval_request_id="a", approve=True, reason=7), "input[1].reason"),
    # Parts.
    (item(role="user", content=[7]), "input[1].content[0]"),
    (part(type="input_video", video_url="x"), "input[1].content[1].type"),
    (part(type="input_text"), "input[1].content[1].text"),
    (part(type="input_image"), "input[1].content[1].image_url"),
    (part(type="input_image", image_url={"url": "x"}), "input[1].content[1].image_url"),
    (part(type="input_image", image_url="ftp://example.com/a.png"), "input[1].content[1].image_url"),
    (part(type="input_image", image_url="file:///etc/passwd"), "input[1].content[1].image_url"),
    (part(type="input_image", image_url="data:image/png,pixel"), "input[1].content[1].image_url"),
    (part(type="input_image", image_url="data:image/png;base64,%%%"), "input[1].content[1].image_url"),
    (part(type="input_image", file_id="file_1"), "input[1].content[1].file_id"),
    (part(type="input_file"), "input[1].content[1].file_data"),
    (part(type="input_file", file_data="not base64!"), "input[1].content[1].file_data"),
    (part(type="input_file", file_data="", filename=7), "input[1].content[1].filename"),
    (part(type="input_file", file_id="file_1"), "input[1].content[1].file_id"),
    (part(type="input_audio"), "input[1].content[1].input_audio"),
    (part(type="input_audio", input_audio={"format": "ogg", "data": ""}), "input[1].content[1].input_audio.format"),
    (part(type="input_audio", input_audio={"format": "wav", "data": "?"}), "input[1].content[1].input_audio.data"),
    # Tools and structures.
    ({"input": "hello", "tools": [{"type": "file_search"}]}, "tools[0].type"),
    ({"input": "hello", "tools": [{"type": "function"}]}, "tools[0]"),
    ({"input": "hello", "tools": [FUNCTION, FUNCTION]}, "tools[1].name"),
    ({"input": "hello", "tools": [{**FUNCTION, "name": "a b"}]}, "tools[0].name"),
    ({"input": "hello", "tools": [{**FUNCTION, "name": "add"}]}, "tools"),
    (function("none"), "tools[1].parameters"),
    (function({"type": "thing"}), "tools[1].parameters.type"),
    (function({"properties": {"a": 7}}), "tools[1].parameters.properties.a"),
    (function({"required": [7]}), "tools[1].parameters.required"),
    ({"input": "hello", "tool_choice": "some"}, "tool_choice"),
    ({"input": "hello", "tool_choice": {"type": "function"}}, "tool_choice"),
    ({"input": "hello", "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
    (form(None), "text.format"),
    (form({}, name=None), "text.format"),
    (form("a number"), "text.format.schema"),
    (form({"type": "thing"}), "text.format.schema.type"),
    (form({"anyOf": [{"type": "string"}, 7]}), "text.format.schema.anyOf[1]"),
]


async def _check_refused(desk: ResponsesHost, body: Any, param: str | None) -> None:
    for stream in (False, True):
        asked = body if not isinstance(body, dict) or "stream" in body else {**body, "stream": stream}
        refused = await desk.post(asked)
        assert refused.headers["content-type"] == "application/json"
        error = refused.json()["error"]
        assert (refused.status_code, error["type"]) == (400, "invalid_request_error"), (body, error)
        assert error["param"] == param, (str(body)[:200], error)
        assert error["message"]
        assert error["code"]


async def test_whatever_is_wrong_is_named() -> None:
    async with open_client(Till().agent(["never"])) as desk:
        for body, param in BODIES:
            await _check_refused(desk, body, param)
        assert desk.untouched()


async def test_what_is_not_json_is_refused() -> None:
    async with open_client(parrot()) as desk:
        for raw in (b"", b"{", b'{"input": "\xff"}', b'{"input": "hello"} more', b'{"input": NaN}'):
            refused = await desk.http.post("/v1/responses", content=raw, headers={"content-type": "application/json"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_json"), raw[:20]
        other = await desk.http.post("/v1/responses", content=b"input=hello", headers={"content-type": "text/plain"})
        assert other.status_code == 415
        deep = await desk.http.post("/v1/responses", content=DEEP, headers={"content-type": "application/json"})
        assert (deep.status_code, deep.json()["error"]["code"]) == (400, "nested_too_deep")
        assert desk.untouched()


async def test_too_much_is_refused() -> None:
    async with open_client(parrot()) as desk:
        many = await desk.post({"input": [USER] * 10_000})
        assert (many.status_code, many.json()["error"]["param"]) == (400, "input")
        named = await desk.post({"input": [{"type": "item_reference", "id": "msg_1"}] * 10_000})
        assert (named.status_code, named.json()["error"]["param"]) == (400, "input")
        head = b"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000000\r\n\r\n"
        # Nobody waits for the hundred million bytes.
        large = await desk.raw(head + b'{"input": "')
        assert large.startswith(b"HTTP/1.1 413 ")
        assert b'"code":"body_too_large"' in large
        assert desk.untouched()


async def test_an_address_is_refused_where_nobody_can_follow_it() -> None:
    async with open_client(echo) as desk:
        await _check_refused(
            desk,
            part(type="input_image", image_url="https://example.com/a.png"),
            "input[1].content[1].image_url",
        )
        await _check_refused(
            desk, part(type="input_file", file_url="https://example.com/a.pdf"), "input[1].content[1].file_url"
        )
        assert desk.untouched()


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=%C2%B2", "limit=" + "9" * 5000])
async def test_a_page_has_its_limits(query: str) -> None:
    async with open_client(parrot()) as desk:
        made = (await desk.post({"input": "hello"})).json()["id"]
        refused = await desk.http.get(f"/v1/responses/{made}/input_items?{query}")
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "limit")


@pytest.mark.parametrize(("query", "param", "status"), [("order=up", "order", 400), ("after=x", "after", 404)])
async def test_a_page_begins_somewhere_and_has_an_order(query: str, param: str, status: int) -> None:
    async with open_client(parrot()) as desk:
        made = (await desk.post({"input": "hello"})).json()["id"]
        refused = await desk.http.get(f"/v1/responses/{made}/input_items?{query}")
        assert (refused.status_code, refused.json()["error"]["param"]) == (status, param)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/responses", 405),
        ("PUT", "/v1/responses/resp_1", 405),
        ("GET", "/v1/responses/resp_1/cancel", 405),
        ("GET", "/v1/responses/resp_1", 404),
        ("GET", "/v1/responses/%2e%2e%2fx", 404),
        ("GET", "/v1/responses/resp_%00", 400),
        ("GET", "/v1/files", 404),
    ],
)
async def test_every_error_has_the_shape_of_the_api(method: str, path: str, status: int) -> None:
    async with open_client(parrot()) as desk:
        refused = await desk.http.request(method, path)
        assert refused.status_code == status
        assert set(refused.json()["error"]) == {"message", "type", "param", "code"}
