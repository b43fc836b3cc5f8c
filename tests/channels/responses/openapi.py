"""An OpenAPI document of the routes, for the fuzzer: the channel's own types, and what they leave to the code."""

from typing import Any

import msgspec

from frontdesk.channels.responses import schema

_REF = "#/components/schemas/{name}"
_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TRUE: dict[str, Any] = {"enum": [True, None]}
_MAYBE_FALSE: dict[str, Any] = {"enum": [False, None]}
_NAME: dict[str, Any] = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
_CALL_ID: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 64}
_ID: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"type": {"enum": ["string", "number", "integer", "boolean", "object", "array", "null"]}},
}
_PIXEL = "data:image/png;base64,iVBORw0KGgo="
_ERRORS = {
    "400": "The request is invalid.",
    "401": "Credentials are needed.",
    "403": "Refused.",
    "404": "No such thing.",
    "405": "No such method.",
    "409": "It does not fit the present state.",
}
_ERRORS_OF_A_BODY = {
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "415": "The body must be JSON.",
    "422": "A hook refused the request.",
    "429": "Too many at once.",
}


class Envelope(msgspec.Struct):
    """Every error."""

    error: schema.ErrorOut


class InputPage(msgspec.Struct):
    """A page of input items."""

    object: str
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Deleted(msgspec.Struct):
    """What is left of a response."""

    id: str
    object: str
    deleted: bool


class Model(msgspec.Struct):
    """The target."""

    id: str
    object: str
    created: int
    owned_by: str


class ModelPage(msgspec.Struct):
    """All there is."""

    object: str
    data: list[Model]


_OUTPUT = (
    schema.MessageItem,
    schema.ReasoningItem,
    schema.FunctionCallItem,
    schema.CustomCallItem,
    schema.ApprovalItem,
    schema.HostCallItem,
    schema.ImageItem,
)
_TYPES = (
    schema.CreateBody,
    schema.CompactBody,
    schema.ResponseOut,
    schema.CompactionOut,
    schema.CompactionItem,
    Envelope,
    InputPage,
    Deleted,
    ModelPage,
    *_OUTPUT,
)


def document() -> dict[str, Any]:
    """The document, without the prefix that the routes have too."""
    _, parts = msgspec.json.schema_components(_TYPES, ref_template=_REF)
    _refine_input(parts)
    _refine_output(parts)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Responses", "version": "1.0.0"},
        "paths": {
            "/responses": {"post": _create()},
            "/responses/compact": {"post": _compact()},
            "/responses/input_tokens": {"post": _count()},
            "/responses/{response_id}": {
                "get": _about("get", "Shown"),
                "delete": _about("delete", "Deleted"),
            },
            "/responses/{response_id}/cancel": {"post": _about("cancel", "Shown")},
            "/responses/{response_id}/input_items": {"get": _about("list_input", "InputPage", _list_paging())},
            "/models": {"get": {"operationId": "models", "responses": _answers("ModelPage")}},
            "/models/{model}": {
                "get": {"operationId": "model", "parameters": [_path("model")], "responses": _answers("Model")}
            },
        },
        "components": {"schemas": parts},
    }


def _object(*optional: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": [name for name in fields if name not in optional], "properties": fields}


def _kind(kind: str, /, *optional: str, **fields: Any) -> dict[str, Any]:
    return _object(*optional, type={"const": kind}, **fields)


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, schema]}


def _input_items() -> list[dict[str, Any]]:
    part = {
        "anyOf": [
            _kind("input_text", text=_TEXT),
            _kind("refusal", refusal=_TEXT),
            _kind("input_image", image_url={"const": _PIXEL}),
            _kind("input_file", "filename", file_data={"const": "aGVsbG8="}, filename=_or_null(_TEXT)),
        ]
    }
    content = {"anyOf": [_TEXT, {"type": "array", "items": part}]}
    summary = {"type": "array", "items": _kind("summary_text", text=_TEXT)}
    role = {"enum": ["user", "assistant", "system", "developer"]}
    answer: dict[str, Any] = {"approval_request_id": _ID, "approve": {"type": "boolean"}, "reason": _or_null(_TEXT)}
    return [
        _object("type", type={"enum": ["message", None]}, role=role, content=content),
        _kind("function_call", call_id=_CALL_ID, name=_NAME, arguments=_TEXT),
        _kind("function_call_output", call_id=_CALL_ID, output=content),
        _kind("custom_tool_call", call_id=_CALL_ID, name=_NAME, input=_TEXT),
        _kind("custom_tool_call_output", call_id=_CALL_ID, output=content),
        _kind("reasoning", "encrypted_content", summary=summary, encrypted_content=_or_null(_TEXT)),
        _kind("item_reference", id=_ID),
        _kind("mcp_approval_response", "reason", **answer),
    ]


def _refine_input(parts: dict[str, Any]) -> None:
    """What `parse` and `items` ask beyond the types."""
    body = parts["CreateBody"]
    body["required"] = ["input"]
    body["properties"] |= {
        "input": {"anyOf": [_TEXT, {"type": "array", "items": {"anyOf": _input_items()}, "minItems": 1}]},
        "conversation": {"type": "null"},
        "previous_response_id": _or_null(_ID),
        "include": _or_null({"type": "array", "items": {"enum": ["reasoning.encrypted_content"]}}),
        "tools": _or_null({"type": "array", "items": {"anyOf": [_function(), _kind("custom", name=_NAME)]}}),
        # What is required needs tools.
        "tool_choice": {"enum": [None, "auto", "none"]},
        "prompt": {"type": "null"},
        "context_management": _or_null({"type": "array", "maxItems": 0}),
        "generate": _MAYBE_TRUE,
    }
    parts["ModerationStep"]["properties"] |= {"mode": {"const": "score"}}
    parts["CacheOptions"]["properties"] |= {"prewarm": _MAYBE_FALSE}
    parts["ReasoningIn"]["properties"] |= {
        "mode": {"enum": [None, "standard"]},
        "context": {"enum": [None, "auto", "all_turns"]},
    }
    compact = parts["CompactBody"]
    compact["required"] = ["input", "model"]
    # The last kind is an answer, and what is only told has no answers in it.
    told = {"type": "array", "items": {"anyOf": _input_items()[:-1]}, "minItems": 1}
    compact["properties"] |= {"input": {"anyOf": [_TEXT, told]}, "previous_response_id": _or_null(_ID)}
    # A background run is stored.
    body["anyOf"] = [
        {"properties": {"background": _MAYBE_FALSE}},
        {"properties": {"background": {"const": True}, "store": _MAYBE_TRUE}},
    ]
    parts["TextFormat"] = {
        "anyOf": [
            _kind("text"),
            _kind("json_object"),
            _kind("json_schema", name={**_TEXT, "minLength": 1}, schema=_SCHEMA),
        ]
    }


def _function() -> dict[str, Any]:
    more = {"description": _or_null(_TEXT), "parameters": _or_null(_SCHEMA)}
    return _kind("function", *more, name=_NAME, **more)


def _refine_output(parts: dict[str, Any]) -> None:
    """Everything that goes out is complete, and has nothing more."""
    for kind in (
        schema.ResponseOut,
        schema.CompactionOut,
        schema.CompactionItem,
        schema.Usage,
        schema.ErrorOut,
        *_OUTPUT,
    ):
        part = parts[kind.__name__]
        optional = {field.encode_name for field in msgspec.structs.fields(kind) if field.default is msgspec.UNSET}
        part["required"] = sorted(set(part["properties"]) - optional)
        part["additionalProperties"] = False
    items = {"anyOf": [{"$ref": _REF.format(name=kind.__name__)} for kind in _OUTPUT]}
    parts["ResponseOut"]["properties"]["output"] = {"type": "array", "items": items}
    compaction = {"$ref": _REF.format(name="CompactionItem")}
    user = _kind("message", id=_TEXT, status=_TEXT, role={"const": "user"}, content={"type": "array"})
    parts["CompactionOut"]["properties"]["output"] = {"type": "array", "items": {"anyOf": [compaction, user]}}
    parts["Shown"] = {"anyOf": [{"$ref": _REF.format(name=name)} for name in ("ResponseOut", "CompactionOut")]}


def _answers(name: str, errors: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    good = {"application/json": {"schema": {"$ref": _REF.format(name=name)}}, **more}
    bad = {"application/json": {"schema": {"$ref": _REF.format(name="Envelope")}}}
    return {
        "200": {"description": "Here it is.", "content": good},
        **{status: {"description": text, "content": bad} for status, text in (_ERRORS | (errors or {})).items()},
    }


def _compact() -> dict[str, Any]:
    schema = {"$ref": _REF.format(name="CompactBody")}
    return {
        "operationId": "compact",
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": _answers("CompactionOut", _ERRORS_OF_A_BODY),
    }


def _count() -> dict[str, Any]:
    counted = {"object": {"const": "response.input_tokens"}, "input_tokens": {"type": "integer", "minimum": 1}}
    fields = {**counted, "estimated": {"const": True}}
    schema = {"type": "object", "required": list(fields), "properties": fields, "additionalProperties": False}
    answers = _answers("Model", _ERRORS_OF_A_BODY)
    answers["200"]["content"] = {"application/json": {"schema": schema}}
    body = {"application/json": {"schema": {"$ref": _REF.format(name="CreateBody")}}}
    return {"operationId": "count", "requestBody": {"required": True, "content": body}, "responses": answers}


def _create() -> dict[str, Any]:
    stream = {"text/event-stream": {"schema": {"type": "object"}}}
    answers = _answers("ResponseOut", _ERRORS_OF_A_BODY, **stream)
    answers["200"]["links"] = {
        operation: {"operationId": operation, "parameters": {"response_id": "$response.body#/id"}}
        for operation in ("get", "delete", "cancel", "list_input")
    }
    body = {"application/json": {"schema": {"$ref": _REF.format(name="CreateBody")}}}
    return {"operationId": "create", "requestBody": {"required": True, "content": body}, "responses": answers}


def _about(operation: str, name: str, parameters: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "operationId": operation,
        "parameters": [_path("response_id"), *(parameters or ())],
        "responses": _answers(name),
    }


def _path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _ID}


def _list_paging() -> list[dict[str, Any]]:
    fields: dict[str, Any] = {
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "order": {"enum": ["asc", "desc"]},
        "after": _ID,
    }
    return [{"name": name, "in": "query", "schema": schema} for name, schema in fields.items()]
