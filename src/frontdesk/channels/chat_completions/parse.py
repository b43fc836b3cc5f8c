"""From the wire to a `ChannelRequest`. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frontdesk.abc.target import TargetInfo
from frontdesk.channels.chat_completions.config import ChatCompletionsConfig
from frontdesk.channels.chat_completions.messages import Conversation, read_messages
from frontdesk.channels.chat_completions.wire import (
    AllowedChoice,
    CompletionBody,
    CustomTool,
    FunctionTool,
    NamedTool,
    ResponseFormat,
)
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.request import ChannelRequest, ClientTool
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.framework.json_schema import need_schema
from frontdesk.kit.http.bodies import MAX_VALUES, decode_as
from frontdesk.kit.openai.bodies import (
    COMMON_IGNORED,
    COMMON_OPTIONS,
    chosen_tools,
    convert,
    given_options,
    json_schema_format,
)
from frontdesk.kit.openai.custom_tools import custom_tool
from frontdesk.kit.openai.tool_names import MAX_TOOLS

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
    """Return the body, or raise an error that names the parameter which is wrong."""
    return decode_as(_decoder, raw, max_values)


def unknown_keys(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the body says beyond the API, for the operator's hook."""
    return {name: value for name, value in payload.items() if name not in _KNOWN}


class Parser:
    """Reads bodies with one channel's settings and for one target."""

    def __init__(self, channel: str, config: ChatCompletionsConfig, target: TargetInfo) -> None:
        self._channel = channel
        self._config = config
        self._target = target

    def conversation(self, body: CompletionBody) -> Conversation:
        """Return what was said so far."""
        most = self._config.max_messages
        if len(body.messages) > most:
            raise InvalidRequestError(f"A request takes {most} messages at most.", param="messages")
        said = read_messages(body.messages, self._target.tool_names, self._config.instructions)
        if said.urls and not self._config.fetching.urls and self._target.kind != "agent":
            where = said.urls[0][1]
            raise InvalidRequestError("This host takes no pictures by URL: send the data.", param=where)
        return said

    def request(
        self, body: CompletionBody, said: Conversation, identity: ChannelIdentity | None = None
    ) -> ChannelRequest:
        """Return the request; it has no session and stores nothing."""
        _check_served(body, self._config.forward)
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
        """Refuse a choice of a tool that is not the request's, or one of the host's where callers may choose those."""
        mode, names = chosen_tools(_tool_choice(choice))
        forced = self._config.force_host_tools
        hosts = self._target.tool_names if forced else ()
        for name in names:
            if name not in own and name not in hosts:
                raise InvalidRequestError(f"There is no tool {name!r} in `tools`.", param="tool_choice")
        if mode == "required" and not (own or forced):
            raise InvalidRequestError("A `tool_choice` that is required needs `tools`.", param="tool_choice")

    def _options(self, body: CompletionBody) -> dict[str, Any]:
        wanted = {name: value for name, value in _framework_options(body).items() if name[0] in self._config.forward}
        if self._target.options:
            return {name: value for (_, name), value in wanted.items()}
        for name, _ in wanted:
            if name not in _CAN_BE_IGNORED:
                raise InvalidRequestError(f"This agent does not take {name!r}.", param=name)
        return {}


def _details(body: CompletionBody, tools: Sequence[ClientTool]) -> dict[str, Any]:
    """Return what the answer has to be drawn by."""
    details: dict[str, Any] = {}
    if tools:
        details["tools"] = {tool.name: given.get("type") for tool, given in zip(tools, body.tools or (), strict=True)}
    if body.stream_options is not None and body.stream_options.include_usage:
        details["include_usage"] = True
    return details


def _check_served(body: CompletionBody, forward: frozenset[str]) -> None:
    """Refuse by its name what would change the answer, and can't be done here."""
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
            raise InvalidRequestError(f"`{name}` is not served here{more}.", param=name, code="unsupported")
    if body.stream_options is not None and not body.stream:
        raise InvalidRequestError("`stream_options` needs `stream`.", param="stream_options")


_INSTEAD = {
    "n": ": a request has one choice",
    "store": ": nothing is kept of a completion; the Responses API keeps what it answers",
    "functions": "; use `tools`",
    "function_call": "; use `tool_choice`",
}


def _framework_options(body: CompletionBody) -> dict[tuple[str, str], Any]:
    """Return what the body asks of the model, by the API's name and the framework's."""
    options = given_options(body, _OPTIONS)
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
        raise InvalidRequestError(f"The choice needs `{tool.type}.name`.", param="tool_choice")
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
        raise InvalidRequestError(f"A request takes {MAX_TOOLS} tools at most.", param="tools")
    tools: dict[str, ClientTool] = {}
    for place, body in enumerate(given):
        tool = _tool(body, f"tools[{place}]")
        if tool.name in tools:
            raise InvalidRequestError(f"Two tools are called {tool.name!r}.", param=f"tools[{place}]")
        tools[tool.name] = tool
    return tuple(tools.values())


def _tool(body: dict[str, Any], where: str) -> ClientTool:
    kind = body.get("type")
    if kind == "custom":
        custom = convert(body, CustomTool, where).custom
        return custom_tool(custom.name, custom.description, custom.format, f"{where}.custom")
    if kind != "function":
        raise InvalidRequestError(f"Tools of type {kind!r} are not served.", param=f"{where}.type", code="unsupported")
    function = convert(body, FunctionTool, where).function
    parameters = function.parameters or {}
    need_schema(parameters, f"{where}.function.parameters")
    return ClientTool(
        name=function.name, description=function.description or "", parameters=parameters, strict=function.strict
    )
