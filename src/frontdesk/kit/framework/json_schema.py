"""Tells a JSON schema from something else, without validating anything against it. Pure."""

from typing import Any, cast

from frontdesk.errors import InvalidRequestError

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
_SCHEMA_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_DEEPEST = 50


def need_schema(value: Any, where: str, depth: int = 0) -> None:
    """Refuse a value that is not a JSON schema, naming its place."""
    if isinstance(value, bool):
        return
    if not isinstance(value, dict) or depth > _DEEPEST:
        raise InvalidRequestError("This is not a JSON schema.", param=where)
    schema = cast("dict[str, Any]", value)
    if "type" in schema:
        _need_type(schema["type"], where)
    for name in _SCHEMAS_BY_NAME:
        for key, subschema in _mapping(schema.get(name, {}), f"{where}.{name}").items():
            need_schema(subschema, f"{where}.{name}.{key}", depth + 1)
    for name in _SCHEMA_LISTS:
        for place, subschema in enumerate(_list(schema.get(name, []), f"{where}.{name}")):
            need_schema(subschema, f"{where}.{name}[{place}]", depth + 1)
    for name in _SCHEMAS:
        if name in schema and not isinstance(schema[name], list):
            need_schema(schema[name], f"{where}.{name}", depth + 1)
    if not all(isinstance(name, str) for name in _list(schema.get("required", []), f"{where}.required")):
        raise InvalidRequestError("`required` must be a list of names.", param=f"{where}.required")
    _list(schema.get("enum", []), f"{where}.enum")


def _need_type(value: Any, where: str) -> None:
    names: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
        raise InvalidRequestError("This is not a type of JSON schema.", param=f"{where}.type")


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequestError("This must be an object.", param=where)
    return cast("dict[str, Any]", value)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRequestError("This must be a list.", param=where)
    return cast("list[Any]", value)
