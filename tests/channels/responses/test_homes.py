"""Every kind of content that the framework has goes somewhere, or is left out for a reason that is written here."""

import json
from typing import Any, get_args

import pytest
from agent_framework import AgentResponse, Content, Message
from agent_framework._types import ContentType

from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.render import Renderer
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import encode
from tests.channels.responses.contents import PIXEL

PICTURE = Content.from_uri(PIXEL, media_type="image/png")
TEXT = Content.from_text("words")
CALL = Content.from_function_call("host", "add", arguments='{"a": 1}')

KINDS: dict[str, list[Content]] = {
    "text": [TEXT],
    "text_reasoning": [Content.from_text_reasoning(text="thoughts")],
    "data": [Content.from_data(b"%PDF", "application/pdf")],
    "uri": [Content.from_uri("https://example.com/a.png", media_type="image/png")],
    "error": [Content.from_error(message="it is closed")],
    "function_call": [Content.from_function_call("client", "look", arguments="{}")],
    "function_result": [CALL, Content.from_function_result("host", result="3")],
    "usage": [Content.from_usage({"input_token_count": 1, "output_token_count": 2})],
    "hosted_file": [Content.from_hosted_file("file_1", name="a.txt")],
    "hosted_vector_store": [Content.from_hosted_vector_store("vs_1")],
    "code_interpreter_tool_call": [Content.from_code_interpreter_tool_call(call_id="k", inputs=[TEXT])],
    "code_interpreter_tool_result": [
        Content.from_code_interpreter_tool_call(call_id="k", inputs=[TEXT]),
        Content.from_code_interpreter_tool_result(call_id="k", outputs=[TEXT]),
    ],
    "image_generation_tool_call": [Content.from_image_generation_tool_call(image_id="i")],
    "image_generation_tool_result": [Content.from_image_generation_tool_result(image_id="i", outputs=PICTURE)],
    "mcp_server_tool_call": [Content.from_mcp_server_tool_call("k", "fetch", server_name="files", arguments={"a": 1})],
    "mcp_server_tool_result": [
        Content.from_mcp_server_tool_call("k", "fetch", server_name="files"),
        Content.from_mcp_server_tool_result("k", output="found"),
    ],
    "search_tool_call": [Content.from_search_tool_call("k", tool_name="web", arguments={"q": "x"})],
    "search_tool_result": [
        Content.from_search_tool_call("k", tool_name="web"),
        Content.from_search_tool_result("k", tool_name="web", result="found"),
    ],
    "shell_tool_call": [Content.from_shell_tool_call(call_id="k", commands=["ls"])],
    "shell_tool_result": [
        Content.from_shell_tool_call(call_id="k", commands=["ls"]),
        Content.from_shell_tool_result(call_id="k", outputs=[Content.from_shell_command_output(stdout="a.txt")]),
    ],
    "shell_command_output": [Content.from_shell_command_output(stdout="a.txt")],
    "computer_tool_call": [Content("computer_tool_call", call_id="k", actions=[{"type": "click"}])],
    "computer_tool_result": [
        Content("computer_tool_call", call_id="k", actions=[{"type": "click"}]),
        Content("computer_tool_result", call_id="k", screenshot=PICTURE),
    ],
    "function_approval_request": [Content.from_function_approval_request("ask", CALL)],
    "function_approval_response": [Content.from_function_approval_response(True, "ask", CALL)],
    "oauth_consent_request": [Content.from_oauth_consent_request("https://example.com/consent")],
}

# What a kind comes to, besides the call that comes with it: the item, and the words in it that show that nothing got
# lost on the way.
HOMES: dict[str, tuple[str, str]] = {
    "text": ("message", '"type": "output_text", "text": "words"'),
    "text_reasoning": ("reasoning", '"type": "summary_text", "text": "thoughts"'),
    "data": ("message", '"text": "data:application/pdf;base64,JVBERg=="'),
    "uri": ("message", '"type": "url_citation", "url": "https://example.com/a.png"'),
    "error": ("message", '"refusal": "it is closed"'),
    "function_call": ("function_call", '"call_id": "client", "name": "look"'),
    "function_result": ("mcp_call", '"output": "3"'),
    "hosted_file": ("message", '"type": "file_citation", "file_id": "file_1", "filename": "a.txt"'),
    "code_interpreter_tool_call": ("mcp_call", '"arguments": "{\\"code\\":\\"words\\"}"'),
    "code_interpreter_tool_result": ("mcp_call", "words"),
    "image_generation_tool_result": ("image_generation_call", PIXEL.partition("base64,")[2]),
    "mcp_server_tool_call": ("mcp_call", '"server_label": "files"'),
    "mcp_server_tool_result": ("mcp_call", '"output": "found"'),
    "search_tool_call": ("mcp_call", '"name": "web", "arguments": "{\\"q\\":\\"x\\"}"'),
    "search_tool_result": ("mcp_call", '"output": "found"'),
    "shell_tool_call": ("mcp_call", '"arguments": "{\\"commands\\":[\\"ls\\"]}"'),
    "shell_tool_result": ("mcp_call", "a.txt"),
    "computer_tool_call": ("mcp_call", "click"),
    "computer_tool_result": ("mcp_call", "image/png"),
    "function_approval_request": ("mcp_approval_request", '"id": "ask", "name": "add", "arguments": "{\\"a\\": 1}"'),
    "oauth_consent_request": ("message", '"type": "url_citation", "url": "https://example.com/consent"'),
}
NOWHERE = {
    "usage": "it is counted in `usage`",
    "hosted_vector_store": "a store at the model's service means nothing to a caller of ours",
    "image_generation_tool_call": "the picture comes with its result",
    "shell_command_output": "it is a part of a shell's result, and never stands alone",
    "function_approval_response": "an answer of the caller's own",
}


def test_every_kind_is_in_the_list() -> None:
    kinds = set(get_args(ContentType))
    assert set(KINDS) == kinds
    assert set(HOMES) | set(NOWHERE) == kinds
    assert not set(HOMES) & set(NOWHERE)


def _response(contents: list[Content]) -> dict[str, Any]:
    renderer = Renderer(ResponsesConfig(host_tools="full"), TargetInfo(name="Concierge", kind="agent"))
    run = RunRecord(
        run_id="resp_1",
        owner="me",
        channel="responses",
        status="completed",
        created_at=1.0,
        finished_at=2.0,
        details={"tools": [{"name": "look"}]},
    )
    result = AgentResponse.from_updates(AgentResponse(messages=[Message("assistant", contents)]).to_updates())
    return json.loads(encode(renderer.response(run, result)))


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_a_kind_has_a_home(kind: str) -> None:
    (item,) = _response(KINDS[kind])["output"]
    home, words = HOMES[kind]
    assert item["type"] == home
    assert words in json.dumps(item)


@pytest.mark.parametrize("kind", sorted(NOWHERE))
def test_a_kind_without_one_leaves_no_trace_in_the_output(kind: str) -> None:
    response = _response(KINDS[kind])
    assert response["output"] == []
    assert (response["usage"] is not None) is (kind == "usage")
