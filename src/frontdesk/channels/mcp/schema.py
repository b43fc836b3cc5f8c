"""The JSON schemas of tools: their arguments and their results. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from agent_framework import AgentResponse, Content, Message
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from frontdesk.errors import InvalidRequestError
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.base import FrozenStruct

ArgumentsKind = Literal["message", "fields", "value", "own"]

SESSION, MESSAGE, VALUE = "session", "message", "input"
_SESSION_SCHEMA = {
    "type": "string",
    "description": "The `session` of an earlier result, to continue that conversation. Omit it to start a new one.",
}
_MESSAGE_SCHEMA = {
    "type": "string",
    "description": "The message. With `session`, an empty message returns the result of a call that was waiting.",
}
_ROOMY = (str, Message, Content, list[Message], list[Content], list[str | Message], Any)
"""The input types of workflows that a text fits."""


class ToolArguments(FrozenStruct, frozen=True, kw_only=True):
    """The arguments of a tool: their JSON schema, and how they become the input of a request."""

    kind: ArgumentsKind
    schema: Mapping[str, Any]
    has_session: bool = True
    """False if the arguments have a field `session` of their own, which is then no session of the host."""

    def session_in(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the key of the session that the arguments name."""
        given = arguments.get(SESSION) if self.has_session else None
        if given is None:
            return None
        if not isinstance(given, str):
            raise InvalidRequestError("`session` must be a string.", param=SESSION)
        return plain_id(given, SESSION) if given else None

    def input_in(self, arguments: Mapping[str, Any]) -> Any:
        """Return the input of a request. None if the arguments have none."""
        if self.kind == "message":
            return _message_in(arguments)
        rest = {name: value for name, value in arguments.items() if not (self.has_session and name == SESSION)}
        if self.kind == "value":
            if VALUE not in rest:
                return None
            return rest[VALUE]
        return rest or None if self.kind == "fields" else rest


def _message_in(arguments: Mapping[str, Any]) -> str | None:
    if unknown := sorted(arguments.keys() - {MESSAGE, SESSION}):
        raise InvalidRequestError(f"Unknown argument {unknown[0]!r}. Use `message` and `session`.", param=unknown[0])
    given = arguments.get(MESSAGE)
    if given is not None and not isinstance(given, str):
        raise InvalidRequestError("`message` must be a string.", param=MESSAGE)
    return given or None


def tool_arguments(target: TargetInfo, given: Mapping[str, Any] | None = None) -> ToolArguments:
    """Return the arguments of a tool: with a schema of its own, of a workflow's input type, or of a conversation."""
    if given is not None:
        return ToolArguments(kind="own", schema=dict(given), has_session=SESSION in (given.get("properties") or {}))
    if target.kind == "workflow" and target.inputs and not any(_takes_text(kind) for kind in target.inputs):
        schema = json_schema(target.inputs[0])
        if schema.get("type") == "object" and schema.get("properties"):
            return _of_fields(schema)
        return _of_value(schema)
    properties = {MESSAGE: _MESSAGE_SCHEMA, SESSION: _SESSION_SCHEMA}
    schema = {"type": "object", "properties": properties, "required": [MESSAGE], "additionalProperties": False}
    return ToolArguments(kind="message", schema=schema)


def _takes_text(kind: Any) -> bool:
    # A workflow of agents takes a request object of the framework, besides the texts.
    return kind in _ROOMY


def _of_fields(schema: dict[str, Any]) -> ToolArguments:
    properties: dict[str, Any] = schema["properties"]
    if SESSION in properties:
        return ToolArguments(kind="fields", schema=schema, has_session=False)
    return ToolArguments(kind="fields", schema={**schema, "properties": {**properties, SESSION: _SESSION_SCHEMA}})


def _of_value(schema: dict[str, Any]) -> ToolArguments:
    definitions = schema.pop("$defs", None)
    whole: dict[str, Any] = {
        "type": "object",
        "properties": {VALUE: schema, SESSION: _SESSION_SCHEMA},
        "required": [VALUE],
        "additionalProperties": False,
    }
    return ToolArguments(kind="value", schema=whole if definitions is None else {**whole, "$defs": definitions})


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type. Empty for types without one."""
    try:
        return TypeAdapter(kind).json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, NameError, TypeError, ValueError):
        return {}


_STATUSES = ["completed", "input_required", "failed", "cancelled", "incomplete"]
_QUESTION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "tool": {"type": "string"},
        "question": {"type": "string"},
        "arguments": {},
        "waits_for": {"type": "array", "items": {"type": "string"}},
        "url": {"type": "string"},
    },
    "required": ["id", "question"],
}


def output_schema(target: TargetInfo) -> dict[str, Any]:
    """Return the JSON schema of the structured result of every tool of a target."""
    properties: dict[str, Any] = {
        "text": {"type": "string", "description": "The answer."},
        "session": {"type": "string", "description": "The session. Pass it to continue the conversation."},
        "run_id": {"type": "string"},
        "status": {"enum": _STATUSES},
        "questions": {"type": "array", "items": _QUESTION, "description": "What the run waits for."},
    }
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": ["status", "text"]}
    if target.kind == "workflow":
        items, definitions = _outputs(target.outputs)
        properties["outputs"] = {"type": "array", "items": items}
        if definitions:
            schema["$defs"] = definitions
    else:
        properties["value"] = {"description": "The structured value of the answer, if it has one."}
    return schema


def _outputs(kinds: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of one output and the definitions that it refers to."""
    schemas: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    for kind in kinds:
        schema = {} if _is_said(kind) else json_schema(kind)
        if not schema:
            return {}, {}
        definitions.update(cast("dict[str, Any]", schema.pop("$defs", {})))
        schemas.append(schema)
    if not schemas:
        return {}, {}
    return (schemas[0] if len(schemas) == 1 else {"anyOf": schemas}), definitions


def _is_said(kind: Any) -> bool:
    """Return True for types whose outputs are rendered in a form of their own."""
    return isinstance(kind, type) and issubclass(kind, (AgentResponse, Message, Content))
