"""Parses Responses bodies into a `ChannelRequest`. Pure."""

from collections.abc import Mapping, Sequence, Sized
from typing import Any

import msgspec

from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.schema import (
    AllowedTools,
    CreateBody,
    CustomToolIn,
    FunctionToolIn,
    ModerationIn,
    NamedTool,
    TextFormat,
)
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.types import require_schema
from frontdesk.http.bodies import MAX_VALUES, decode_as
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest, ChannelSession, ClientTool, SessionMode
from frontdesk.openai.bodies import (
    COMMON_IGNORED,
    COMMON_OPTIONS,
    convert,
    json_schema_format,
    list_given_options,
    parse_tool_choice,
)
from frontdesk.openai.forms import INCLUDES, trim
from frontdesk.openai.items import Items, read_items
from frontdesk.openai.tools import MAX_TOOLS, GivenTool, custom_tool, flat, function_name, list_served, merge

_decoder = msgspec.json.Decoder(CreateBody)
_KNOWN = frozenset(CreateBody.__struct_fields__)
_OPTIONS = (
    *COMMON_OPTIONS,
    ("max_output_tokens", "max_tokens"),
    ("store", "store"),
    ("truncation", "truncation"),
    ("top_logprobs", "top_logprobs"),
)
_UPSTREAM = frozenset({"model", "store", "metadata"})
"""Fields that name things of the model's service, and are in nearly every body without asking for anything."""
_FIRST_ASKED = CreateBody.__struct_fields__.index("background")
_NOTHING_ASKED = (None,) * (len(CreateBody.__struct_fields__) - _FIRST_ASKED)
_CAN_BE_IGNORED = COMMON_IGNORED | {"reasoning"}


def decode(raw: bytes, max_values: int = MAX_VALUES) -> CreateBody:
    return decode_as(_decoder, raw, max_values)


def unknown_keys(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in _KNOWN}


class Parser:
    def __init__(self, channel: str, config: ResponsesConfig, target: TargetInfo, session_mode: SessionMode) -> None:
        self._channel = channel
        self._config = config
        self._target = target
        self._session_mode: SessionMode = session_mode
        self._stores_always = config.store_policy == "always"
        self._forwards_more = not config.forwarded.isdisjoint(_UPSTREAM)

    def items(self, body: CreateBody) -> Items | None:
        """Return the input items, or None if the input is a single text."""
        given = body.input
        if isinstance(given, str):
            return None
        if given is None:
            return Items()
        self.check_length(given)
        items = read_items(given, host_tools=self._target.tool_names, replayed=_brings_its_own(body))
        if items.urls and not self._config.fetch_urls and self._target.kind != "agent":
            where = items.urls[0][1]
            raise InvalidRequestError("Image and file URLs are not accepted. Send the data.", param=where)
        return items

    def check_length(self, items: Sized) -> None:
        if len(items) > self._config.max_items:
            raise InvalidRequestError(f"A request can have at most {self._config.max_items} items.", param="input")

    def request(self, body: CreateBody, items: Items | None, identity: ChannelIdentity | None = None) -> ChannelRequest:
        """Return the request, with questions still unresolved. Without items, its input is a single text."""
        asks = msgspec.structs.astuple(body)[_FIRST_ASKED:] != _NOTHING_ASKED
        given = list_served(body.tools) if body.tools else []
        added = merge(list_served(items.tools)) if items is not None and items.tools else []
        if asks:
            self._check(body, [*given, *added])
        if items is not None and not (items.messages or items.outputs or items.approvals):
            raise InvalidRequestError("The request requires `input`.", param="input")
        tools = client_tools(given, added) if given or added else ()
        options = self._options(body) if asks or self._forwards_more else {}
        store = body.store is not False or self._stores_always
        previous = body.previous_response_id
        return ChannelRequest(
            channel=self._channel,
            input=body.input if items is None else items.messages,
            options=options,
            session_mode=self._session_mode,
            identity=identity,
            stream=bool(body.stream),
            background=bool(body.background),
            metadata=body.metadata or {},
            client_tools=tools,
            client_outputs=() if items is None else tuple(items.outputs),
            approvals=() if items is None else tuple(items.approvals),
            store=store,
            details=self._details(body, options, given, added),
            previous_run_id=None if previous is None else plain_id(previous, "previous_response_id"),
            session=None if body.conversation is None else ChannelSession(conversation_id=parse_conversation(body)),
        )

    def _check(self, body: CreateBody, tools: Sequence[dict[str, Any]]) -> None:
        if body.conversation is not None:
            self._check_conversation(body)
        if body.background and body.store is False:
            raise InvalidRequestError("A background run must be stored.", param="store")
        if body.instructions is not None and self._config.instructions == "refuse":
            raise InvalidRequestError("Instructions are not accepted: this host sets them.", param="instructions")
        check_included(body.include or ())
        _check_served(body)
        if body.tool_choice is not None:
            self._check_choice(body, tools)

    def _check_choice(self, body: CreateBody, tools: Sequence[dict[str, Any]]) -> None:
        """Reject a tool choice that is not in the request, or that names a host tool where callers may not choose
        those."""
        mode, names = parse_tool_choice(_tool_choice(body.tool_choice))
        # A choice has no word for a namespace.
        own = {tool.get("name") for tool in tools if tool.get("type") != "namespace"}
        hosts = self._target.tool_names if self._config.force_host_tools else ()
        for name in names:
            if name not in own and name not in hosts:
                raise InvalidRequestError(f"Tool {name!r} is not in `tools`.", param="tool_choice")
        if mode == "required" and not (tools or self._config.force_host_tools):
            raise InvalidRequestError("A required `tool_choice` requires `tools`.", param="tool_choice")

    def _check_conversation(self, body: CreateBody) -> None:
        if body.previous_response_id is not None:
            raise InvalidRequestError(
                "`previous_response_id` and `conversation` can't be combined.",
                param="conversation",
                code="mutually_exclusive_parameters",
            )
        if self._session_mode == "disabled":
            raise InvalidRequestError(
                "This host does not store conversations.", param="conversation", code="unsupported"
            )

    def _options(self, body: CreateBody) -> dict[str, Any]:
        wanted = {name: value for name, value in _framework_options(body).items() if name[0] in self._config.forwarded}
        if not self._target.options:
            for name, _ in wanted:
                if name not in _CAN_BE_IGNORED:
                    raise InvalidRequestError(f"This agent does not support {name!r}.", param=name)
            return {}
        options = {name: value for (_, name), value in wanted.items()}
        if body.instructions is not None and self._config.instructions == "append":
            options["instructions"] = body.instructions
        return options

    def _details(
        self,
        body: CreateBody,
        options: Mapping[str, Any],
        tools: Sequence[dict[str, Any]],
        added: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the effective settings and the full API input, for later reads of the response."""
        given = body.input
        details: dict[str, Any] = {"input": given if isinstance(given, str) else trim_input(body)}
        for name in self._config.forwarded if options else ():
            value = getattr(body, name, None)
            if value is not None:
                details[name] = msgspec.to_builtins(value)
        if "instructions" in options:
            details["instructions"] = body.instructions
        if body.conversation is not None:
            details["conversation"] = parse_conversation(body)
        if tools:
            details["tools"] = tools
        if added:
            details["additional_tools"] = added
        if body.include:
            details["include"] = body.include
        return details


def trim_input(body: CreateBody) -> str | list[dict[str, Any]] | None:
    given = body.input
    return list(map(trim, given)) if isinstance(given, list) else given


def parse_conversation(body: CreateBody) -> str | None:
    given = body.conversation
    if given is None:
        return None
    return plain_id(given if isinstance(given, str) else given.id, "conversation")


def _brings_its_own(body: CreateBody) -> bool:
    """Return True if a request contains its own history instead of a continuation id."""
    return body.previous_response_id is None and body.conversation is None


def _framework_options(body: CreateBody) -> dict[tuple[str, str], Any]:
    options = list_given_options(body, _OPTIONS)
    choice = _tool_choice(body.tool_choice)
    if choice is not None:
        options["tool_choice", "tool_choice"] = choice
    if body.reasoning is not None:
        asked = msgspec.structs.replace(body.reasoning, mode=None, context=None)
        if thinking := _without_none(asked):
            options["reasoning", "reasoning"] = thinking
    if body.text is not None:
        form = _response_format(body.text.format)
        if form is not None:
            options["text", "response_format"] = form
        if body.text.verbosity is not None:
            options["text", "verbosity"] = body.text.verbosity
    return options


def check_included(names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name not in INCLUDES:
            raise InvalidRequestError(f"Unknown `include` value: {name!r}.", param=f"include[{place}]")


def _check_served(body: CreateBody) -> None:
    refused: str | None = None
    if body.prompt is not None:
        refused = "prompt"
    elif body.context_management:
        refused = "context_management"
    elif body.moderation is not None and _blocks(body.moderation):
        refused = "moderation"
    elif body.prompt_cache_options is not None and body.prompt_cache_options.prewarm:
        refused = "prompt_cache_options.prewarm"
    elif body.generate is False:
        refused = "generate"
    elif body.reasoning is not None and body.reasoning.mode not in (None, "standard"):
        refused = "reasoning.mode"
    elif body.reasoning is not None and body.reasoning.context not in (None, "auto", "all_turns"):
        refused = "reasoning.context"
    if refused is not None:
        raise InvalidRequestError(f"`{refused}` is not supported.", param=refused, code="unsupported")


def _blocks(moderation: ModerationIn) -> bool:
    policy = moderation.policy
    steps = () if policy is None else (policy.input, policy.output)
    return any(step is not None and step.mode == "block" for step in steps)


def _without_none(value: msgspec.Struct) -> dict[str, Any]:
    return {name: field for name, field in msgspec.structs.asdict(value).items() if field is not None}


def _tool_choice(value: Any) -> Any:
    if value is None or value == "auto":
        return None
    if value in ("none", "required"):
        return value
    if isinstance(value, str):
        raise InvalidRequestError(f"Unknown tool choice: {value!r}.", param="tool_choice")
    if value.get("type") == "allowed_tools":
        chosen = convert(value, AllowedTools, "tool_choice")
        return {"mode": chosen.mode, "allowed_tools": [tool.name for tool in chosen.tools]}
    return {"mode": "required", "required_function_name": convert(value, NamedTool, "tool_choice").name}


def _response_format(given: TextFormat | None) -> Any:
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return {"type": "json_object"}
    if given.schema is None or not given.name:
        raise InvalidRequestError("A json_schema format requires `name` and `schema`.", param="text.format")
    return json_schema_format(given.name, given.schema, given.strict, given.description, "text.format.schema")


def client_tools(given: Sequence[dict[str, Any]], added: Sequence[dict[str, Any]]) -> tuple[ClientTool, ...]:
    """Return the client tools. Of tools with the same name that came as items, the last one is used."""
    tools: dict[str, ClientTool] = {}
    for tool in flat(given, "tools"):
        made = _client_tool(tool)
        if made.name in tools:
            raise InvalidRequestError(f"Duplicate tool name: {made.name!r}.", param=f"{tool.where}.name")
        tools[made.name] = made
        _require_few(tools)
    for tool in flat(added, "input.tools"):
        made = _client_tool(tool)
        tools[made.name] = made
        _require_few(tools)
    return tuple(tools.values())


def _require_few(tools: Sized) -> None:
    if len(tools) > MAX_TOOLS:
        raise InvalidRequestError(f"A request can have at most {MAX_TOOLS} tools.", param="tools")


def _client_tool(given: GivenTool) -> ClientTool:
    kind = given.body.get("type")
    if kind == "custom":
        custom = convert(given.body, CustomToolIn, given.where)
        name = function_name(custom.name, given.namespace)
        return custom_tool(name, _about(given, custom.description), custom.format, given.where)
    if kind != "function":
        message = f"Tools of type {kind!r} are not supported."
        raise InvalidRequestError(message, param=f"{given.where}.type")
    function = convert(given.body, FunctionToolIn, given.where)
    require_schema(function.parameters or {}, f"{given.where}.parameters")
    return ClientTool(
        name=function_name(function.name, given.namespace),
        description=_about(given, function.description),
        parameters=function.parameters or {},
        strict=function.strict,
    )


def _about(given: GivenTool, description: str | None) -> str:
    return "\n\n".join(filter(None, (given.about, description)))
