"""Forms for a workflow's questions, generated from the JSON schema of the expected answer. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from frontdesk.display.escaping import escape_line, escape_text

FORM = "form"
"""The attribute of a request that answers a question with the values of its form."""
MAX_FIELDS = 30
MAX_CHOICES = 50
MAX_BYTES = 8_000
"""The bytes of a form as JSON; a larger one is asked in words."""
MAX_TEXT_LENGTH = 4_000
"""The number of characters of a text that a field takes, unless its schema says less."""

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices", "group"]
Problem = Literal[
    "required", "text", "number", "integer", "boolean", "choice", "small", "large", "short", "long", "unknown"
]
_SENTENCES: dict[str, str] = {
    "required": "is missing",
    "text": "must be a text",
    "number": "must be a number",
    "integer": "must be a whole number",
    "boolean": "must be yes or no",
    "choice": "must be one of its choices",
    "small": "is too small",
    "large": "is too large",
    "short": "is too short",
    "long": "is too long",
    "unknown": "is no field of the form",
}
_PLAIN = (str, int, float, bool)
_FORMATS = ("date", "email", "time")
_UNREADABLE = ("pattern", "multipleOf")


class FormField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A form field. A group has nested fields."""

    name: str
    kind: FieldKind
    label: str
    help: str = ""
    required: bool = False
    nullable: bool = False
    """Whether an empty answer is given as null, because the schema wants one and takes that."""
    format: str = ""
    choices: tuple[str | int | float | bool, ...] = ()
    labels: tuple[str, ...] = ()
    """The choices as they are displayed; empty if that is as they are."""
    minimum: float | None = None
    maximum: float | None = None
    shortest: int = 0
    longest: int = MAX_TEXT_LENGTH
    default: str | int | float | bool | None = None
    fields: tuple["FormField", ...] = ()


class Found(NamedTuple):
    path: str
    problem: Problem

    @property
    def sentence(self) -> str:
        return f"{self.path} {_SENTENCES[self.problem]}."


def build_form(wanted: Any) -> tuple[FormField, ...]:
    """Return the form fields for an answer type. Empty if the question is asked as text."""
    return build_fields(build_schema(wanted))


def build_schema(wanted: Any) -> dict[str, Any]:
    """Return the JSON schema of a type. Empty for types without one, or whose answers are plain text."""
    if isinstance(wanted, str) or wanted in (Any, *_PLAIN):
        # Of a workflow that is run as an agent, some channels know the name of the type alone.
        return {}
    try:
        return TypeAdapter(wanted).json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, NameError, TypeError):
        return {}


def build_fields(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """Return the form fields for a JSON schema. Empty if a form can't represent all of it."""
    definitions = cast("Mapping[str, Any]", schema.get("$defs") or {})
    fields = _object(_resolve(schema, definitions), definitions, nested=False)
    if not fields or _count(fields) > MAX_FIELDS or len(msgspec.json.encode(fields)) > MAX_BYTES:
        return ()
    return fields


def _count(fields: Sequence[FormField]) -> int:
    return sum(1 + _count(field.fields) for field in fields)


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve the references of a schema. Its own keys take precedence."""
    reference = str(schema.get("$ref", ""))
    target = definitions.get(reference.removeprefix("#/$defs/")) if reference else None
    return {**(target or {}), **schema}


def _object(schema: Mapping[str, Any], definitions: Mapping[str, Any], *, nested: bool) -> tuple[FormField, ...] | None:
    """Return the fields of an object, or None if a form can't represent one of them."""
    properties: dict[str, Any] = schema.get("properties") or {}
    if schema.get("type") != "object" or not properties or len(properties) > MAX_FIELDS:
        return None
    required: list[str] = schema.get("required") or []
    fields: list[FormField] = []
    for name, given in properties.items():
        field = _field(name, given, definitions, required=name in required, nested=nested)
        if field is None:
            return None
        fields.append(field)
    return tuple(fields)


def _field(
    name: str, given: Mapping[str, Any], definitions: Mapping[str, Any], *, required: bool, nested: bool
) -> FormField | None:
    schema, nullable = _without_null(_resolve(given, definitions), definitions)
    if schema is None:
        return None
    default = given.get("default")
    field = FormField(
        name=name,
        kind="text",
        label=escape_line(str(given.get("title") or name.replace("_", " ").capitalize())),
        # Not that of the type: it is written for who reads its code.
        help=escape_text(str(given.get("description") or "")),
        required=required and not nullable,
        nullable=required and nullable,
        default=default if isinstance(default, _PLAIN) and escape_line(str(default)) == str(default) else None,
    )
    if schema.get("type") == "object":
        fields = None if nested or nullable else _object(schema, definitions, nested=True)
        return None if fields is None else msgspec.structs.replace(field, kind="group", fields=fields)
    if schema.get("type") == "array":
        choices = _choices(_resolve(schema.get("items") or {}, definitions))
        few = {"shortest": schema.get("minItems", 0), "longest": schema.get("maxItems", MAX_CHOICES)}
        return _with_choices(field, "choices", choices, **few)
    return _plain(field, schema)


def _without_null(schema: dict[str, Any], definitions: Mapping[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """Return the only non-null schema (None if there are several), and True if the value may be null."""
    several: list[Any] | None = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if several is None:
        return schema, False
    others = [_resolve(one, definitions) for one in several]
    real = [one for one in others if one.get("type") != "null"]
    if len(real) != 1:
        return None, False
    words = {name: value for name, value in schema.items() if name in ("title", "description")}
    return {**real[0], **words}, len(real) < len(others)


def _choices(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    plain = 0 < len(values) <= MAX_CHOICES and all(isinstance(value, _PLAIN) for value in values)
    return tuple(values) if plain else ()


def _with_choices(field: FormField, kind: FieldKind, choices: tuple[Any, ...], **few: int) -> FormField | None:
    labels = tuple(escape_line(str(choice)) for choice in choices)
    if labels == tuple(map(str, choices)):
        labels = ()
    return msgspec.structs.replace(field, kind=kind, choices=choices, labels=labels, **few) if choices else None


def _plain(field: FormField, schema: Mapping[str, Any]) -> FormField | None:
    """Return a field for a scalar value, or None if a form can't represent the schema."""
    replace = msgspec.structs.replace
    if "enum" in schema or "const" in schema:
        choices = _choices(schema)
        return _with_choices(field, "choice", choices)
    kind = schema.get("type")
    if kind == "boolean":
        return replace(field, kind="boolean")
    if any(name in schema for name in _UNREADABLE):
        return None
    if kind in ("number", "integer"):
        low, high = schema.get("minimum"), schema.get("maximum")
        if "exclusiveMinimum" in schema or "exclusiveMaximum" in schema:
            if kind == "number":
                return None
            low = schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else low
            high = schema["exclusiveMaximum"] - 1 if "exclusiveMaximum" in schema else high
        return replace(field, kind=kind, minimum=low, maximum=high)
    if kind != "string":
        return None
    form = schema.get("format", "")
    return replace(
        field,
        format=form if form in _FORMATS else "",
        shortest=schema.get("minLength", 0),
        longest=min(schema.get("maxLength", MAX_TEXT_LENGTH), MAX_TEXT_LENGTH),
    )


def check(fields: Sequence[FormField], values: Mapping[str, Any], path: str = "") -> list[Found]:
    known = {field.name: field for field in fields}
    found = [Found(f"{path}{escape_line(name[:100])}", "unknown") for name in values if name not in known]
    for name, field in known.items():
        value = values.get(name)
        where = f"{path}{field.label}"
        if value is None:
            missing = name not in values and field.nullable
            if field.required or missing or (name in values and not field.nullable):
                found.append(Found(where, "required"))
        elif field.kind == "group":
            parts = cast("dict[str, Any]", value)
            found += check(field.fields, parts, f"{where}: ") if isinstance(value, dict) else [Found(where, "unknown")]
        elif (problem := _problem(field, value)) is not None:
            found.append(Found(where, problem))
    return found


def _problem(field: FormField, value: Any) -> Problem | None:
    if field.kind == "boolean":
        return None if isinstance(value, bool) else "boolean"
    if field.kind == "choice":
        return None if _is_choice(field, value) else "choice"
    if field.kind == "choices":
        return _problem_of_list(field, value)
    if field.kind == "text":
        return _problem_of_text(field, value)
    return _problem_of_number(field, value)


def _problem_of_list(field: FormField, value: Any) -> Problem | None:
    many = cast("list[Any]", value)
    if not isinstance(value, list) or len(many) > MAX_CHOICES or not all(_is_choice(field, one) for one in many):
        return "choice"
    if field.required and not many and field.shortest:
        return "required"
    return "short" if len(many) < field.shortest else "long" if len(many) > field.longest else None


def _problem_of_text(field: FormField, value: Any) -> Problem | None:
    if not isinstance(value, str):
        return "text"
    if field.required and not value.strip():
        return "required"
    return "short" if len(value) < field.shortest else "long" if len(value) > field.longest else None


def _problem_of_number(field: FormField, value: Any) -> Problem | None:
    if isinstance(value, bool) or not isinstance(value, int if field.kind == "integer" else (int, float)):
        return "integer" if field.kind == "integer" else "number"
    if field.minimum is not None and value < field.minimum:
        return "small"
    return "large" if field.maximum is not None and value > field.maximum else None


def _is_choice(field: FormField, value: Any) -> bool:
    # `True == 1`, but they are two values of JSON.
    return any(type(choice) is type(value) and choice == value for choice in field.choices)


def in_words(fields: Sequence[FormField], values: Mapping[str, Any]) -> str:
    lines: list[str] = []
    for field in fields:
        value = values.get(field.name)
        if value is None:
            continue
        if field.kind == "group":
            lines.append(in_words(field.fields, cast("dict[str, Any]", value)))
        elif field.kind == "boolean":
            lines.append(f"{field.label}: {'✓' if value else '✗'}")
        else:
            many = cast("list[Any]", value) if isinstance(value, list) else [value]
            lines.append(f"{field.label}: {', '.join(str(one) for one in many)}")
    return "\n".join(filter(None, lines))
