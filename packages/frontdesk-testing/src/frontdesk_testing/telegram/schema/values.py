"""Checks a JSON value against a type of the Bot API."""

import re
from collections.abc import Mapping
from typing import Any, cast

from frontdesk_testing.telegram.schema.load import Field, Schema, bot_api

_MAX_DEPTH = 32
_WORD = re.compile(r"[A-Z][a-z0-9]*")
KNOWN_LIMITS = {
    ("InlineKeyboardButton", "callback_data"): "BUTTON_DATA_INVALID",
    ("BotCommand", "command"): "BOT_COMMAND_INVALID",
    ("BotCommand", "description"): "BOT_COMMAND_DESCRIPTION_INVALID",
    ("answerCallbackQuery", "text"): "MESSAGE_TOO_LONG",
    ("setWebhook", "secret_token"): "secret token is too long",
    ("sendMediaGroup", "media"): "wrong number of items to send as an album; it must have 2-10 of them",
}
"""The server's words for a limit, where it has its own."""


class MismatchError(ValueError):
    """A value of a wrong type. `final` is set if the server returns only the reason."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


def check_value(kind: str, value: Any, schema: Schema | None = None, depth: int = 0) -> None:
    """Check that a value is of a type, with every field within it."""
    schema = schema or bot_api()
    if depth > _MAX_DEPTH:
        raise MismatchError("Object is nested too deeply")
    if kind.startswith("Array of "):
        if not isinstance(value, list):
            raise MismatchError("Array expected")
        for item in cast(list[Any], value):
            check_value(kind.removeprefix("Array of "), item, schema, depth + 1)
    elif " or " in kind:
        _check_union(tuple(kind.split(" or ")), value, schema, depth)
    elif kind in schema.unions:
        _check_union(schema.unions[kind], value, schema, depth)
    elif kind in schema.types:
        _check_object(kind, value, schema, depth)
    elif not _is_plain(kind, value):
        raise MismatchError(f"{kind} expected")


def _is_plain(kind: str, value: Any) -> bool:
    if kind == "Integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "Float":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "Boolean":
        return isinstance(value, bool)
    if kind == "True":
        return value is True
    # An `InputFile` within an object is the name of a part of the form.
    return isinstance(value, str)


def _check_union(kinds: tuple[str, ...], value: Any, schema: Schema, depth: int) -> None:
    """Check a value against several types: the one whose constant it has, or else the first that fits."""
    if isinstance(value, dict):
        given = cast(dict[str, Any], value)
        chosen = [kind for kind in kinds if _has_constant(schema.types.get(kind, {}), given)]
        # Types with the same constant follow each other, as those of inline results do.
        kinds = tuple(chosen) or kinds
    reasons: list[MismatchError] = []
    for kind in kinds:
        try:
            check_value(kind, value, schema, depth + 1)
        except MismatchError as mismatch:
            reasons.append(mismatch)
        else:
            return
    # The shared fields of objects without a constant say best which one was meant.
    raise max(reasons, key=lambda reason: "Unknown field" not in str(reason))


def _has_constant(fields: Mapping[str, Field], value: Mapping[str, Any]) -> bool:
    constants = {name: field.limits["is"] for name, field in fields.items() if "is" in field.limits}
    return bool(constants) and all(value.get(name) == constant for name, constant in constants.items())


def _check_object(kind: str, value: Any, schema: Schema, depth: int) -> None:
    if not isinstance(value, dict):
        raise MismatchError(f"{_spell_out(kind)} must be an Object")
    given, fields = cast(dict[str, Any], value), schema.types[kind]
    for name in given:
        if name not in fields:
            raise MismatchError(f'Unknown field "{name}" of {kind}')
    for name, field in fields.items():
        if name in given:
            _check_field(kind, name, field, given[name], schema, depth)
        elif field.required:
            raise MismatchError(f"can't parse {_spell_out(kind)}: Can't find field \"{name}\"", final=True)


def _check_field(kind: str, name: str, field: Field, value: Any, schema: Schema, depth: int) -> None:
    try:
        check_value(field.kind, value, schema, depth + 1)
    except MismatchError as mismatch:
        if field.kind in schema.types or field.kind in schema.unions or " " in field.kind:
            raise
        reason = f'can\'t parse {_spell_out(kind)}: Field "{name}" must be of type {field.kind}'
        raise MismatchError(reason, final=True) from mismatch
    check_limits(kind, name, field, value)


def check_limits(owner: str, name: str, field: Field, value: Any) -> None:
    """Check the length or the range of a value whose type is right."""
    for unit, limit in field.limits.items():
        if unit == "is":
            if value != limit:
                raise MismatchError(f'Field "{name}" of {owner} must be "{limit}"')
            continue
        size = value if unit == "range" else len(value.encode()) if unit == "bytes" else len(value)
        if not limit[0] <= size <= limit[1]:
            known = KNOWN_LIMITS.get((owner, name))
            what = unit if unit != "range" else "as its range"
            raise MismatchError(known or f'"{name}" of {owner} must have {limit[0]}-{limit[1]} {what}', final=True)


def _spell_out(kind: str) -> str:
    return " ".join(_WORD.findall(kind)).lower()
