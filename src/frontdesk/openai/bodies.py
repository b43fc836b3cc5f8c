"""Helpers for bodies of the Responses and Chat Completions APIs. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec
from agent_framework import AgentResponse, Content, Message, WorkflowRunResult, add_usage_details

from frontdesk.framework.outputs import extract_messages
from frontdesk.framework.types import is_response, require_schema, whole_outputs
from frontdesk.http.bodies import refuse_body
from frontdesk.models.request import ChannelRequest, ClientTool

T = TypeVar("T")
OptionNames = tuple[str, str]
"""The name of an option in the API, and in the framework."""

COMMON_OPTIONS: tuple[OptionNames, ...] = (
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("presence_penalty", "presence_penalty"),
    ("frequency_penalty", "frequency_penalty"),
    ("parallel_tool_calls", "allow_multiple_tool_calls"),
    ("model", "model"),
    ("metadata", "metadata"),
    ("service_tier", "service_tier"),
    ("safety_identifier", "safety_identifier"),
    ("prompt_cache_key", "prompt_cache_key"),
)
# Without options a target can still answer; it only answers as it always does.
COMMON_IGNORED = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "parallel_tool_calls"})


def convert(value: Any, kind: type[T], where: str) -> T:
    """Convert a part of a body to a type, or raise an error that names the invalid parameter."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        refuse_body(error, where)


def list_given_options(body: msgspec.Struct, names: Iterable[OptionNames]) -> dict[OptionNames, Any]:
    return {both: value for both in names if (value := getattr(body, both[0])) is not None}


def parse_tool_choice(choice: Any) -> tuple[str, Sequence[str]]:
    """Return a tool choice in the framework's form: the mode, and the named tools."""
    if not isinstance(choice, dict):
        return choice or "auto", ()
    chosen = cast("dict[str, Any]", choice)
    name = chosen.get("required_function_name")
    return chosen["mode"], chosen["allowed_tools"] if name is None else [name]


def json_schema_format(
    name: str, schema: Mapping[str, Any], strict: bool | None, description: str | None, where: str
) -> dict[str, Any]:
    """Return the framework's form of a JSON schema response format."""
    require_schema(schema, where)
    form: dict[str, Any] = {"name": name, "schema": schema, "strict": bool(strict)}
    if description is not None:
        form["description"] = description
    return {"type": "json_schema", "json_schema": form}


_encoder = msgspec.json.Encoder(enc_hook=str)
_HALVES = re.compile("[\ud800-\udfff]")


def encode(value: Any) -> bytes:
    """Encode a value as JSON. Lone surrogates, which a model may produce, are replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mend(msgspec.to_builtins(value, enc_hook=str)))


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_mend(name): _mend(part) for name, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_mend(part) for part in cast("list[Any]", value)]
    return value


def answers(result: Any) -> Sequence[AgentResponse[Any]]:
    """Return a result as agent responses, for any kind of target."""
    if is_response(result):
        return (result,)
    if not isinstance(result, WorkflowRunResult):
        return ()
    outputs = whole_outputs(result)
    return [output if is_response(output) else AgentResponse(messages=extract_messages(output)) for output in outputs]


def finish_reason(said: Sequence[AgentResponse[Any]]) -> str | None:
    """Return the finish reason of the last response, if the model reported one."""
    reason: Any = said[-1].finish_reason if said else None
    return reason


def sum_usage(said: Sequence[AgentResponse[Any]]) -> Mapping[str, Any] | None:
    """Return the framework's total usage of all responses, or `None` if it has none."""
    if len(said) == 1 and said[0].usage_details is None:
        return None
    usage: dict[str, Any] = {}
    for answer in said:
        usage = dict(add_usage_details(cast(Any, usage), answer.usage_details) if usage else answer.usage_details or {})
    return usage or None


_CHARACTERS_PER_TOKEN = 4
"""The number of characters that a token has on average."""
_MEDIA_TOKENS = 1_000
"""The tokens of a picture or a file, about as many as a picture of the usual size takes."""
_MESSAGE_TOKENS = 4
"""The tokens with which a model is told that a message begins and ends."""


def text_tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def message_tokens(messages: Iterable[Message]) -> int:
    return sum(_MESSAGE_TOKENS + sum(map(_content_tokens, message.contents)) for message in messages)


def request_tokens(request: ChannelRequest) -> int:
    """Estimate the tokens of a request's own content: input, outputs, answers, instructions and tools."""
    said: Any = request.input
    total = text_tokens(said) + _MESSAGE_TOKENS if isinstance(said, str) else message_tokens(said or ())
    for output in request.client_outputs:
        total += _MESSAGE_TOKENS + _value_tokens(output.output)
    total += _MESSAGE_TOKENS * len(request.approvals)
    total += text_tokens(str(request.options.get("instructions") or ""))
    return total + _tool_tokens(request.client_tools)


def _tool_tokens(tools: Sequence[ClientTool]) -> int:
    return sum(text_tokens(tool.name + tool.description) + _value_tokens(tool.parameters) for tool in tools)


def _content_tokens(content: Content) -> int:
    if content.type in ("data", "uri"):
        return _MEDIA_TOKENS
    if content.type == "function_call":
        return text_tokens(str(content.name)) + _value_tokens(content.arguments)
    if content.type == "function_result":
        return _value_tokens(content.result)
    return text_tokens(content.text or "")


def _value_tokens(value: Any) -> int:
    if isinstance(value, str):
        return text_tokens(value)
    if isinstance(value, (list, tuple)):
        return sum(_content_tokens(part) if isinstance(part, Content) else _value_tokens(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    return text_tokens(msgspec.json.encode(value, enc_hook=str).decode())
