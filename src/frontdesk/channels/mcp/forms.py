"""Forms of elicitation: flat JSON schemas of simple values, made from the type of a question. Pure."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from frontdesk.errors import InvalidRequestError

ANSWER = "answer"
"""The only field of a form that asks for a single value."""
APPROVED, REASON = "approved", "reason"
MAX_FIELDS = 30
MAX_REASON_LENGTH = 1_000
_NUMBERS = ("minimum", "maximum")
_KEPT: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "format", "enum", "enumNames", "oneOf", "default"),
    "number": (*_NUMBERS, "default"),
    "integer": (*_NUMBERS, "default"),
    "boolean": ("default",),
    "array": ("minItems", "maxItems", "items", "default"),
}
_FORMATS = ("email", "uri", "date", "date-time")
APPROVAL_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        APPROVED: {"type": "boolean", "title": "Approve", "description": "Whether the call may run."},
        REASON: {"type": "string", "title": "Reason", "maxLength": MAX_REASON_LENGTH},
    },
    "required": [APPROVED],
}


class Form(msgspec.Struct, frozen=True):
    """A form, and how its values become an answer."""

    schema: dict[str, Any]
    is_single: bool = False
    """Whether the answer is the value of the only field, and not the object of all fields."""
    is_json: bool = False
    """Whether that value is JSON in a string, because a form can't represent the type."""

    def answer_in(self, content: Mapping[str, Any]) -> Any:
        """Return the answer in the submitted values."""
        if not self.is_single:
            return dict(content)
        if ANSWER not in content:
            raise InvalidRequestError(f"The answer must have the field {ANSWER}.", param=ANSWER)
        value = content[ANSWER]
        if not self.is_json or not isinstance(value, str):
            return value
        try:
            return msgspec.json.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return value


def question_form(schema: Mapping[str, Any]) -> Form:
    """Return the form for the JSON schema of an answer. An empty schema stands for any text."""
    definitions = cast("Mapping[str, Any]", schema.get("$defs") or {})
    whole = _resolved(schema, definitions)
    if whole.get("type") == "object":
        fields = _object(whole, definitions)
        return Form(fields) if fields is not None else _single({"type": "string", "title": "JSON"}, is_json=True)
    if not whole:
        return _single({"type": "string"})
    field = _field(whole, definitions)
    return _single({"type": "string", "title": "JSON"}, is_json=True) if field is None else _single(field)


def _single(field: dict[str, Any], *, is_json: bool = False) -> Form:
    schema = {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}
    return Form(schema, is_single=True, is_json=is_json)


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    reference = str(schema.get("$ref", ""))
    target = definitions.get(reference.removeprefix("#/$defs/")) if reference else None
    return {**(target or {}), **{name: value for name, value in schema.items() if name not in ("$ref", "$defs")}}


def _object(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any] | None:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if not properties or len(properties) > MAX_FIELDS:
        return None
    fields: dict[str, Any] = {}
    optional: set[str] = set()
    for name, given in properties.items():
        plain, is_nullable = _without_null(_resolved(given, definitions), definitions)
        field = None if plain is None else _field(plain, definitions)
        if field is None:
            return None
        fields[name] = field
        if is_nullable:
            optional.add(name)
    required = [name for name in schema.get("required") or () if name not in optional]
    return {"type": "object", "properties": fields, **({"required": required} if required else {})}


def _without_null(schema: dict[str, Any], definitions: Mapping[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """Return the only schema besides null, None if there are several, and True if the value may be null."""
    several: list[Any] | None = schema.get("anyOf")
    if several is None:
        return schema, False
    real = [one for one in (_resolved(one, definitions) for one in several) if one.get("type") != "null"]
    if len(real) != 1:
        return None, False
    words = {name: value for name, value in schema.items() if name in ("title", "description", "default")}
    if words.get("default", 0) is None:
        del words["default"]
    return {**real[0], **words}, len(real) < len(several)


def _field(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of one field, or None if a form can't represent it."""
    kind = str(schema.get("type") or ("string" if "oneOf" in schema else ""))
    if kind not in _KEPT or "pattern" in schema:
        return None
    kept = {name: schema[name] for name in ("title", "description", *_KEPT[kind]) if name in schema}
    if kind == "string" and kept.get("format", _FORMATS[0]) not in _FORMATS:
        del kept["format"]
    if kind == "array":
        items = _resolved(cast("Mapping[str, Any]", schema.get("items") or {}), definitions)
        if not _is_choice(items):
            return None
        kept["items"] = {name: value for name, value in items.items() if name in ("type", "enum", "anyOf")}
    enum: Any = kept.get("enum")
    if enum is not None and not all(isinstance(value, str) for value in enum):
        return None
    return {"type": kind, **kept}


def _is_choice(items: Mapping[str, Any]) -> bool:
    """Return True for the schema of the choices of a list: names, or names with titles."""
    values: Any = items.get("enum")
    if isinstance(values, list):
        return all(isinstance(value, str) for value in cast("list[Any]", values))
    titled: Any = items.get("anyOf")
    return isinstance(titled, list) and all("const" in one for one in cast("list[Any]", titled))
