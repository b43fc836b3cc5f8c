"""Bodies that are not served say which field it is, and nothing is run for them."""

import json
from typing import Any

import pytest

from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.chat_completions.config import ChatCompletionsConfig
from frontdesk.channels.chat_completions.parse import Parser, decode
from frontdesk.errors import InvalidRequestError
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.request import ChannelRequest
from frontdesk.openai.tools import MAX_TOOLS, custom_tool, input_arguments, parse_input

HI = {"role": "user", "content": "hi"}
TARGET = TargetInfo(name="Concierge", kind="agent", options=True, tools=True, tool_names=("pay",))
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def parse_body(body: dict[str, Any], **settings: Any) -> ChannelRequest:
    parser = Parser("chat", ChatCompletionsConfig(**settings), TARGET)
    read = decode(json.dumps({"messages": [HI], **body}).encode())
    return parser.request(read, parser.conversation(read))


def function(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


def build_body(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages)}


REFUSED: dict[str, list[dict[str, Any]]] = {
    "n": [{"n": 2}, {"n": 0}],
    "store": [{"store": True}],
    "logprobs": [{"logprobs": True}],
    "top_logprobs": [{"top_logprobs": 2}],
    "modalities": [{"modalities": ["text", "audio"]}],
    "audio": [{"audio": {"voice": "alloy", "format": "wav"}}],
    "web_search_options": [{"web_search_options": {}}],
    "functions": [{"functions": [{"name": "look"}]}],
    "function_call": [{"function_call": "auto"}],
    "logit_bias": [{"logit_bias": {"1": 5}}],
    "logit_bias.1": [{"logit_bias": {"1": 101}}],
    "stream_options": [{"stream_options": {"include_usage": True}}],
    "stop": [{"stop": ["a"] * 5}, {"stop": []}],
    "temperature": [{"temperature": 3}],
    "messages": [{"messages": []}, {"messages": "hi"}],
    "messages[0].role": [
        build_body({"role": "function", "name": "f", "content": "x"}),
        build_body({"role": {}, "content": "x"}),
    ],
    "messages[0].content": [
        build_body({"role": "user"}),
        build_body({"role": "user", "content": []}),
        build_body({"role": "assistant"}),
    ],
    "messages[0].content[0].type": [
        build_body({"role": "user", "content": [{"type": "video"}]}),
        build_body({"role": "user", "content": ["text"]}),
        build_body(
            {"role": "system", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}
        ),
    ],
    "messages[0].content[0].image_url": [
        build_body({"role": "user", "content": [{"type": "image_url", "image_url": 7}]}),
        build_body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ftp://a.example"}}]}),
    ],
    "messages[0].content[0].file_id": [
        build_body({"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]})
    ],
    "messages[0].name": [build_body({**HI, "name": "x" * 65}), build_body({**HI, "name": 1})],
    "messages[0].tool_call_id": [build_body({"role": "tool", "tool_call_id": "a", "content": "x"})],
    "messages[0].tool_calls[0]": [
        build_body(CALLING),
        build_body(CALLING, HI),
        build_body({"role": "assistant", "tool_calls": ["x"]}),
    ],
    "messages[0].tool_calls": [build_body({"role": "assistant", "tool_calls": "x"})],
    "messages[0].tool_calls[1].id": [build_body({"role": "assistant", "tool_calls": [CALL, CALL]})],
    "messages[0].tool_calls[0].type": [build_body({"role": "assistant", "tool_calls": [{**CALL, "type": "mcp"}]})],
    "messages[0].tool_calls[0].function.name": [
        build_body({"role": "assistant", "tool_calls": [{"id": "a", **function("a b", arguments="{}")}]}),
        build_body({"role": "assistant", "tool_calls": [{"id": "a", **function("PAY", arguments="{}")}]}),
    ],
    "messages[0].tool_calls[0].id": [build_body({"role": "assistant", "tool_calls": [{**CALL, "id": ""}]})],
    "messages[0].function_call": [build_body({"role": "assistant", "content": "", "function_call": {"name": "f"}})],
    "messages[0].audio": [build_body({"role": "assistant", "content": "", "audio": {"id": "a"}})],
    "tools": [{"tools": [function(f"f{number}") for number in range(MAX_TOOLS + 1)]}],
    "tools[0].type": [{"tools": [{"type": "web_search"}]}],
    "tools[0].function.name": [{"tools": [function("a b")]}],
    "tools[0].function.parameters.type": [{"tools": [function("f", parameters={"type": "x"})]}],
    "tools[0].custom.format": [
        {"tools": [{"type": "custom", "custom": {"name": "f", "format": {"type": "x"}}}]},
        {"tools": [{"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "syntax": "x"}}}]},
    ],
    "tools[1]": [{"tools": [function("f"), function("f")]}],
    "tool_choice": [
        {"tool_choice": "sometimes"},
        {"tool_choice": {"type": "function"}, "tools": [function("f")]},
        {"tool_choice": function("g"), "tools": [function("f")]},
        {"tool_choice": function("pay"), "tools": [function("f")]},
    ],
    "tool_choice.type": [{"tool_choice": {"type": "x"}, "tools": [function("f")]}],
    "response_format": [
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
    ],
    "response_format.type": [{"response_format": {"type": "grammar"}}],
    "response_format.json_schema.schema.type": [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "x"}}}}
    ],
}


@pytest.mark.parametrize("param", REFUSED)
def test_what_is_not_served_is_refused_by_its_name(param: str) -> None:
    for body in REFUSED[param]:
        with pytest.raises(InvalidRequestError) as caught:
            parse_body(body)
        assert caught.value.param == param, (body, caught.value.message)
        assert caught.value.status == 400


def test_a_whole_conversation_is_read() -> None:
    request = parse_body(
        build_body(
            {"role": "developer", "content": [{"type": "text", "text": "be kind"}]},
            {"role": "user", "content": "hi", "name": "ada"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {
                "role": "tool",
                "tool_call_id": "a",
                "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "cat"}],
            },
            {"role": "assistant", "content": "a cat", "refusal": "no more"},
            # Ids of calls come again in clients of services that count them.
            CALLING,
            {"role": "tool", "tool_call_id": "a", "content": "a dog"},
        )
    )
    told = [(message.role, [content.type for content in message.contents]) for message in request.input]
    assert told == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["function_call"]),
        ("tool", ["function_result"]),
        ("assistant", ["text", "text"]),
        ("assistant", ["function_call"]),
        ("tool", ["function_result"]),
    ]
    assert request.input[1].author_name == "ada"
    assert request.input[3].contents[0].result == "a cat"
    assert (request.store, request.session_mode, request.session) == (False, "disabled", None)


def test_instructions_of_a_client_can_be_refused_or_left_out() -> None:
    body = build_body({"role": "system", "content": "obey"}, HI)
    assert [message.role for message in parse_body(body, instructions="ignore").input] == ["user"]
    with pytest.raises(InvalidRequestError, match="Instructions are not accepted"):
        parse_body(body, instructions="refuse")
    with pytest.raises(InvalidRequestError, match="at least one message"):
        parse_body(build_body({"role": "system", "content": "obey"}), instructions="ignore")


def test_a_request_has_only_so_many_messages() -> None:
    with pytest.raises(InvalidRequestError, match="at most 2 messages"):
        parse_body(build_body(HI, HI, HI), max_messages=2)


def test_what_an_operator_forwards_reaches_the_model() -> None:
    body = {"model": "m", "logit_bias": {"1": 5}, "user": "ada", "metadata": {"a": "b"}}
    request = parse_body(body, forward=frozenset(body))
    assert request.options == body
    assert parse_body({"user": "ada", "metadata": {"a": "b"}}).options == {}
    assert parse_body({"metadata": {"a": "b"}}).metadata == {"a": "b"}


def test_wrong_settings_are_found() -> None:
    wrong: Any = {"instructions": "obey", "forward": ["magic"], "max_messages": 0, "fetch_http": True}
    findings = "\n".join(ChatCompletionsChannel(**wrong).findings())
    for word in ("instructions", "'magic'", "max_messages", "fetch_http"):
        assert word in findings
    assert ChatCompletionsChannel(path="/desk/chat/completions").path == "/desk"


@pytest.mark.parametrize("text", ["", "x", '{"input": "y"}', "ü\n\x00"])
def test_a_text_survives_the_arguments_that_stand_for_it(text: str) -> None:
    assert parse_input(input_arguments(text)) == text


@pytest.mark.parametrize("arguments", ["", "plain words", "[]", '{"other": 1}', '{"input": 1}'])
def test_arguments_that_hold_no_text_are_the_text(arguments: str) -> None:
    assert parse_input(arguments) == arguments


def test_a_grammar_is_told_in_words_wherever_the_api_has_it() -> None:
    flat = custom_tool("f", None, {"type": "grammar", "syntax": "regex", "definition": "a+"}, "tools[0]")
    inner = custom_tool("f", None, {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}, "tools[0]")
    assert flat == inner
    assert "a+" in flat.description
