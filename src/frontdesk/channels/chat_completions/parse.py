"""Parses Chat Completions bodies into a `ChannelRequest`. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from agent_framework import Content, Message

from frontdesk.channels.chat_completions.config import ChatCompletionsConfig, Instructions
from frontdesk.channels.chat_completions.schema import (
    AllowedChoice,
    CompletionBody,
    CustomTool,
    FunctionTool,
    NamedTool,
    ResponseFormat,
)
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.contents import refusal
from frontdesk.framework.types import require_schema
from frontdesk.http.bodies import MAX_VALUES, decode_as
from frontdesk.identifiers import is_named
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest, ClientTool
from frontdesk.openai.bodies import (
    COMMON_IGNORED,
    COMMON_OPTIONS,
    convert,
    json_schema_format,
    list_given_options,
    parse_tool_choice,
)
from frontdesk.openai.items import Item, Urls, read_parts
from frontdesk.openai.tools import MAX_TOOLS, custom_tool, input_arguments

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_AUTHOR_LENGTH = 64
_MAX_CALL_ID_LENGTH = 256
"""The API has no limit of its own, and clients of other services make longer ids than it does."""
_PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}
"""The parts that a message of each role may have."""


@dataclass
class Conversation:
    """The messages of the request so far."""

    messages: list[Message] = field(default_factory=list[Message])
    urls: Urls = field(default_factory=list[tuple[Content, str]])
    """The pictures that are named by their address, each with its place in the request."""
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    """The calls without an output, each with its place in the request."""


def read_messages(
    given: Sequence[dict[str, Any]], host_tools: Sequence[str], instructions: Instructions
) -> Conversation:
    """Read the messages of a request, without calls of the host's own tools."""
    said = Conversation()
    for place, body in enumerate(given):
        item = Item(body, f"messages[{place}]", host_tools)
        role = item.body.get("role")
        if not isinstance(role, str) or role not in _PARTS:
            message = "Use `tools`." if role == "function" else f"Unknown role: {role!r}."
            raise InvalidRequestError(message, param=f"{item.where}.role")
        if role == "tool":
            _tool_message(item, said)
            continue
        _require_outputs(said)
        if role == "assistant":
            _assistant(item, said)
        elif role == "user" or _takes_instructions(item, instructions):
            contents = _contents(item, role, said)
            said.messages.append(Message("user" if role == "user" else "system", contents, author_name=_author(item)))
    _require_outputs(said)
    if not said.messages:
        raise InvalidRequestError("The request requires at least one message.", param="messages")
    return said


def _takes_instructions(item: Item, instructions: Instructions) -> bool:
    if instructions == "refuse":
        raise InvalidRequestError("Instructions are not accepted: this host sets them.", param=f"{item.where}.role")
    return instructions == "append"


def _require_outputs(said: Conversation) -> None:
    for call_id, where in said.waiting.items():
        raise InvalidRequestError(f"No tool output found for tool call {call_id}.", param=where)


def _author(item: Item) -> str | None:
    if item.body.get("name") is None:
        return None
    name = item.text("name")
    if not 1 <= len(name) <= _MAX_AUTHOR_LENGTH:
        raise InvalidRequestError(f"`name` must have 1 to {_MAX_AUTHOR_LENGTH} characters.", param=f"{item.where}.name")
    return name


def _contents(item: Item, role: str, said: Conversation) -> list[Content]:
    content, where = item.body.get("content"), f"{item.where}.content"
    if isinstance(content, str):
        return [Content.from_text(content)]
    if not isinstance(content, list) or not content:
        raise InvalidRequestError("`content` must be a string or a list of parts.", param=where)
    parts = cast("list[Any]", content)
    return read_parts([_part(part, role, f"{where}[{place}]") for place, part in enumerate(parts)], where, said.urls)


def _part(part: Any, role: str, where: str) -> Any:
    """Convert a content part to the equivalent form of the Responses API."""
    given: dict[str, Any] = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    kind = given.get("type")
    if kind not in _PARTS[role]:
        raise InvalidRequestError(
            f"Content parts of type {kind!r} are not supported for this role.", param=f"{where}.type"
        )
    if kind == "image_url":
        named = given.get("image_url")
        # The reference says an object; many clients send the text.
        image = {"url": named} if isinstance(named, str) else _inner(given, "image_url", where)
        return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail")}
    if kind == "file":
        return {**_inner(given, "file", where), "type": "input_file", "file_url": None}
    return given


def _inner(part: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    inner: Any = part.get(name)
    if not isinstance(inner, dict):
        raise InvalidRequestError(f"`{name}` must be an object.", param=f"{where}.{name}")
    return cast("dict[str, Any]", inner)


def _assistant(item: Item, said: Conversation) -> None:
    body = item.body
    for name in ("function_call", "audio"):
        if body.get(name) is not None:
            raise InvalidRequestError(f"`{name}` is not supported.", param=f"{item.where}.{name}", code="unsupported")
    calls = body.get("tool_calls")
    contents: list[Content] = []
    if body.get("content") is not None or not (calls or body.get("refusal") is not None):
        contents += _contents(item, "assistant", said)
    if body.get("refusal") is not None:
        contents.append(refusal(item.text("refusal")))
    if calls is not None:
        contents += _calls(calls, item, said)
    # An empty text beside calls says nothing.
    kept = [content for content in contents if content.type != "text" or content.text] or contents
    said.messages.append(Message("assistant", kept, author_name=_author(item)))


def _calls(calls: Any, item: Item, said: Conversation) -> list[Content]:
    where = f"{item.where}.tool_calls"
    if not isinstance(calls, list):
        raise InvalidRequestError("`tool_calls` must be a list.", param=where)
    return [
        _call(call, f"{where}[{place}]", item.host_tools, said) for place, call in enumerate(cast("list[Any]", calls))
    ]


def _call(call: Any, where: str, host_tools: Sequence[str], said: Conversation) -> Content:
    if not isinstance(call, dict):
        raise InvalidRequestError("A call must be an object.", param=where)
    given = Item(cast("dict[str, Any]", call), where)
    kind = given.body.get("type", "function")
    if kind not in ("function", "custom"):
        raise InvalidRequestError(f"Unknown tool call type: {kind!r}.", param=f"{where}.type")
    inner = Item(_inner(given.body, kind, where), f"{where}.{kind}")
    name, call_id = inner.text("name"), _call_id(given, "id")
    if not _NAME.fullmatch(name):
        raise InvalidRequestError("Invalid tool name.", param=f"{where}.{kind}.name")
    if is_named(name, host_tools):
        raise InvalidRequestError(f"{name!r} is a reserved tool name of the host.", param=f"{where}.{kind}.name")
    if call_id in said.waiting:
        raise InvalidRequestError(f"Duplicate tool call id: {call_id}.", param=f"{where}.id")
    said.waiting[call_id] = where
    arguments = inner.text("arguments") if kind == "function" else input_arguments(inner.text("input"))
    return Content.from_function_call(call_id, name, arguments=arguments)


def _tool_message(item: Item, said: Conversation) -> None:
    call_id = _call_id(item, "tool_call_id")
    if said.waiting.pop(call_id, None) is None:
        message = f"No tool call of the message before waits for an output with the id {call_id}."
        raise InvalidRequestError(message, param=f"{item.where}.tool_call_id")
    output = "".join(content.text or "" for content in _contents(item, "tool", said))
    said.messages.append(Message("tool", [Content.from_function_result(call_id, result=output)]))


def _call_id(item: Item, name: str) -> str:
    value = item.text(name)
    if not 1 <= len(value) <= _MAX_CALL_ID_LENGTH:
        message = f"The id of a call has 1 to {_MAX_CALL_ID_LENGTH} characters."
        raise InvalidRequestError(message, param=f"{item.where}.{name}")
    return value


_decoder = msgspec.json.Decoder(CompletionBody)
_KNOWN = frozenset(CompletionBody.__struct_fields__)
_OPTIONS = (
    *COMMON_OPTIONS,
    ("seed", "seed"),
    ("logit_bias", "logit_bias"),
    ("verbosity", "verbosity"),
    ("user", "user"),
)
_CAN_BE_IGNORED = COMMON_IGNORED | {"seed", "reasoning_effort", "verbosity"}


def decode(raw: bytes, max_values: int = MAX_VALUES) -> CompletionBody:
    return decode_as(_decoder, raw, max_values)


def unknown_keys(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields beyond the API, for the operator's hook."""
    return {name: value for name, value in payload.items() if name not in _KNOWN}


class Parser:
    def __init__(self, channel: str, config: ChatCompletionsConfig, target: TargetInfo) -> None:
        self._channel = channel
        self._config = config
        self._target = target

    def conversation(self, body: CompletionBody) -> Conversation:
        most = self._config.max_messages
        if len(body.messages) > most:
            raise InvalidRequestError(f"A request can have at most {most} messages.", param="messages")
        said = read_messages(body.messages, self._target.tool_names, self._config.instructions)
        if said.urls and not self._config.fetch_urls and self._target.kind != "agent":
            where = said.urls[0][1]
            raise InvalidRequestError("Image URLs are not accepted. Send the data.", param=where)
        return said

    def request(
        self, body: CompletionBody, said: Conversation, identity: ChannelIdentity | None = None
    ) -> ChannelRequest:
        """Return the request. It has no session and stores nothing."""
        _check_served(body, self._config.forwarded)
        tools = _client_tools(body.tools or ())
        if body.tool_choice is not None:
            self._check_choice(body.tool_choice, [tool.name for tool in tools])
        return ChannelRequest(
            channel=self._channel,
            input=said.messages,
            options=self._options(body),
            session_mode="disabled",
            identity=identity,
            stream=bool(body.stream),
            metadata=body.metadata or {},
            client_tools=tools,
            store=False,
            details=_details(body, tools),
        )

    def _check_choice(self, choice: Any, own: Sequence[str]) -> None:
        """Reject a tool choice that is not in the request, or that names a host tool where callers may not choose
        those."""
        mode, names = parse_tool_choice(_tool_choice(choice))
        forced = self._config.force_host_tools
        hosts = self._target.tool_names if forced else ()
        for name in names:
            if name not in own and name not in hosts:
                raise InvalidRequestError(f"Tool {name!r} is not in `tools`.", param="tool_choice")
        if mode == "required" and not (own or forced):
            raise InvalidRequestError("A required `tool_choice` requires `tools`.", param="tool_choice")

    def _options(self, body: CompletionBody) -> dict[str, Any]:
        wanted = {name: value for name, value in _framework_options(body).items() if name[0] in self._config.forwarded}
        if self._target.options:
            return {name: value for (_, name), value in wanted.items()}
        for name, _ in wanted:
            if name not in _CAN_BE_IGNORED:
                raise InvalidRequestError(f"This agent does not support {name!r}.", param=name)
        return {}


def _details(body: CompletionBody, tools: Sequence[ClientTool]) -> dict[str, Any]:
    """Return the details of the request that rendering needs."""
    details: dict[str, Any] = {}
    if tools:
        details["tools"] = {tool.name: given.get("type") for tool, given in zip(tools, body.tools or (), strict=True)}
    if body.stream_options is not None and body.stream_options.include_usage:
        details["include_usage"] = True
    return details


def _check_served(body: CompletionBody, forward: frozenset[str]) -> None:
    refused = {
        "n": (body.n or 1) > 1,
        "store": body.store,
        "logprobs": body.logprobs,
        "top_logprobs": body.top_logprobs,
        "modalities": body.modalities is not None and body.modalities != ["text"],
        "audio": body.audio is not None,
        "web_search_options": body.web_search_options is not None,
        "functions": body.functions is not None,
        "function_call": body.function_call is not None,
        "logit_bias": body.logit_bias and "logit_bias" not in forward,
    }
    for name, asked in refused.items():
        if asked:
            more = _INSTEAD.get(name, "")
            raise InvalidRequestError(f"`{name}` is not supported{more}.", param=name, code="unsupported")
    if body.stream_options is not None and not body.stream:
        raise InvalidRequestError("`stream_options` requires `stream`.", param="stream_options")


_INSTEAD = {
    "n": ": a request has one choice",
    "store": ": nothing is kept of a completion; the Responses API keeps what it answers",
    "functions": "; use `tools`",
    "function_call": "; use `tool_choice`",
}


def _framework_options(body: CompletionBody) -> dict[tuple[str, str], Any]:
    options = list_given_options(body, _OPTIONS)
    most = body.max_completion_tokens or body.max_tokens
    if most is not None:
        options["max_completion_tokens", "max_tokens"] = most
    if body.stop is not None:
        options["stop", "stop"] = [body.stop] if isinstance(body.stop, str) else body.stop
    if body.reasoning_effort is not None:
        options["reasoning_effort", "reasoning"] = {"effort": body.reasoning_effort}
    if (choice := _tool_choice(body.tool_choice)) is not None:
        options["tool_choice", "tool_choice"] = choice
    if (form := _response_format(body.response_format)) is not None:
        options["response_format", "response_format"] = form
    return options


def _tool_choice(value: Any) -> Any:
    if value is None or value == "auto":
        return None
    if value in ("none", "required"):
        return value
    if isinstance(value, str):
        raise InvalidRequestError(f"Unknown tool choice: {value!r}.", param="tool_choice")
    if value.get("type") == "allowed_tools":
        allowed = convert(value, AllowedChoice, "tool_choice").allowed_tools
        return {"mode": allowed.mode, "allowed_tools": [_name(tool) for tool in allowed.tools]}
    return {"mode": "required", "required_function_name": _name(convert(value, NamedTool, "tool_choice"))}


def _name(tool: NamedTool) -> str:
    named = tool.function if tool.type == "function" else tool.custom
    if named is None:
        raise InvalidRequestError(f"`tool_choice` requires `{tool.type}.name`.", param="tool_choice")
    return named.name


def _response_format(given: ResponseFormat | None) -> Any:
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return {"type": "json_object"}
    asked = given.json_schema
    if asked is None or asked.schema is None:
        message = "A json_schema format needs `json_schema` with a `name` and a `schema`."
        raise InvalidRequestError(message, param="response_format")
    where = "response_format.json_schema.schema"
    return json_schema_format(asked.name, asked.schema, asked.strict, asked.description, where)


def _client_tools(given: Sequence[dict[str, Any]]) -> tuple[ClientTool, ...]:
    if len(given) > MAX_TOOLS:
        raise InvalidRequestError(f"A request can have at most {MAX_TOOLS} tools.", param="tools")
    tools: dict[str, ClientTool] = {}
    for place, body in enumerate(given):
        tool = _tool(body, f"tools[{place}]")
        if tool.name in tools:
            raise InvalidRequestError(f"Duplicate tool name: {tool.name!r}.", param=f"tools[{place}]")
        tools[tool.name] = tool
    return tuple(tools.values())


def _tool(body: dict[str, Any], where: str) -> ClientTool:
    kind = body.get("type")
    if kind == "custom":
        custom = convert(body, CustomTool, where).custom
        return custom_tool(custom.name, custom.description, custom.format, f"{where}.custom")
    if kind != "function":
        raise InvalidRequestError(
            f"Tools of type {kind!r} are not supported.", param=f"{where}.type", code="unsupported"
        )
    function = convert(body, FunctionTool, where).function
    parameters = function.parameters or {}
    require_schema(parameters, f"{where}.function.parameters")
    return ClientTool(
        name=function.name, description=function.description or "", parameters=parameters, strict=function.strict
    )
