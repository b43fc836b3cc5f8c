"""Type checks for objects of the agent framework, with open type arguments."""

import hashlib
from collections.abc import AsyncGenerator, Iterable, Iterator
from itertools import groupby
from typing import Any, TypeGuard, cast

import msgspec
from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    Message,
    ResponseStream,
    WorkflowEvent,
    WorkflowRunResult,
)

from frontdesk.errors import InvalidRequestError


def is_response(value: Any) -> TypeGuard[AgentResponse[Any]]:
    return isinstance(value, AgentResponse)


def is_event(value: Any) -> TypeGuard[WorkflowEvent[Any]]:
    return isinstance(value, WorkflowEvent)


def is_response_stream(value: Any) -> TypeGuard[ResponseStream[Any, Any]]:
    """Return True for the framework's own stream."""
    return isinstance(value, ResponseStream)


def is_generator(value: Any) -> TypeGuard[AsyncGenerator[Any, Any]]:
    """Return True for a stream that can be closed."""
    return isinstance(value, AsyncGenerator)


def whole_outputs(result: WorkflowRunResult) -> list[Any]:
    """Return the outputs of a workflow. Streamed updates of an agent are merged into its complete answer."""
    outputs: list[Any] = []
    events = (event for event in result if event.type == "output")
    for (streamed, _), together in groupby(events, _source):
        data: list[Any] = [event.data for event in together]
        outputs += [AgentResponse.from_updates(data)] if streamed else data
    return outputs


def _source(event: WorkflowEvent[Any]) -> tuple[bool, str | None]:
    return isinstance(event.data, AgentResponseUpdate), event.executor_id


def list_updates(result: Any) -> list[Any]:
    """Return the updates of a replayed result: one for each message or event."""
    if isinstance(result, WorkflowRunResult):
        return list(cast("list[Any]", result))
    if not is_response(result):
        return []
    return [
        AgentResponseUpdate(
            contents=message.contents,
            role=message.role,
            author_name=message.author_name,
            # Messages that follow each other without ids of their own would be joined.
            message_id=f"{place}",
        )
        for place, message in enumerate(result.messages)
    ]


def is_messages(value: Any) -> TypeGuard[list[Message]]:
    """Return True for a non-empty list of messages."""
    many = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(many) and all(isinstance(part, Message) for part in many)


_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
_SCHEMA_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_MAX_DEPTH = 50


def require_schema(value: Any, where: str, depth: int = 0) -> None:
    """Reject a value that is not a JSON schema. The error names its location."""
    if isinstance(value, bool):
        return
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        raise InvalidRequestError("Invalid JSON schema.", param=where)
    schema = cast("dict[str, Any]", value)
    if "type" in schema:
        _require_type(schema["type"], where)
    for name in _SCHEMAS_BY_NAME:
        for key, subschema in _require_object(schema.get(name, {}), f"{where}.{name}").items():
            require_schema(subschema, f"{where}.{name}.{key}", depth + 1)
    for name in _SCHEMA_LISTS:
        for place, subschema in enumerate(_list(schema.get(name, []), f"{where}.{name}")):
            require_schema(subschema, f"{where}.{name}[{place}]", depth + 1)
    for name in _SCHEMAS:
        if name in schema and not isinstance(schema[name], list):
            require_schema(schema[name], f"{where}.{name}", depth + 1)
    if not all(isinstance(name, str) for name in _list(schema.get("required", []), f"{where}.required")):
        raise InvalidRequestError("`required` must be a list of names.", param=f"{where}.required")
    _list(schema.get("enum", []), f"{where}.enum")


def _require_type(value: Any, where: str) -> None:
    names: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
        raise InvalidRequestError("Unknown JSON schema type.", param=f"{where}.type")


def _require_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequestError("The value must be an object.", param=where)
    return cast("dict[str, Any]", value)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRequestError("The value must be a list.", param=where)
    return cast("list[Any]", value)


def list_tools(agent: Any) -> Iterator[Any]:
    """Yield the agent's own tools, as far as they are known before it runs."""
    options: Any = getattr(agent, "default_options", None) or {}
    yield from options.get("tools") or ()
    for server in getattr(agent, "mcp_tools", None) or ():
        yield from getattr(server, "functions", ())


def schema_digest(tools: Iterable[Any], name: str) -> str | None:
    """Return a hash of the parameters of the tools with a name, or None if there is none or they are unknown."""
    schemas = [tool.parameters() for tool in tools if getattr(tool, "name", None) == name and _shows(tool)]
    if not schemas:
        return None
    return hashlib.sha256(msgspec.json.encode(schemas, order="sorted", enc_hook=str)).hexdigest()


def _shows(tool: Any) -> bool:
    return callable(getattr(tool, "parameters", None))
