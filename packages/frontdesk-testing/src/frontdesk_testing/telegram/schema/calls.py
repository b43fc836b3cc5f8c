"""Checks the parameters of a call against the schema, as they come in a form, a query or a JSON body."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from frontdesk_testing.telegram.errors import ApiError, bad_request
from frontdesk_testing.telegram.schema.load import Field, Schema, bot_api
from frontdesk_testing.telegram.schema.values import MismatchError, check_limits, check_value

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_FLOAT = re.compile(r"-?[0-9]{1,19}(\.[0-9]{0,19})?")
_PLAIN = ("Integer", "Float", "Boolean", "True", "String", "InputFile", "InputFile or String", "Integer or String")
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MISSING = {
    "chat_id": "chat_id is empty",
    "text": "message text is empty",
    "message_id": "message identifier is not specified",
    "user_id": "invalid user_id specified",
    "file_id": "file_id not specified",
    "photo": "there is no photo in the request",
    "audio": "there is no audio in the request",
    "document": "there is no document in the request",
    "video": "there is no video in the request",
    "voice": "there is no voice in the request",
    "sticker": "there is no sticker in the request",
    "animation": "there is no animation in the request",
    "video_note": "there is no video note in the request",
}
"""The server's words for a parameter that is missing, where it has its own."""
_SPOKEN = {"reply_markup": "reply keyboard markup JSON object"}
_CLAMPED = {("getUpdates", "limit"), ("setWebhook", "max_connections")}
"""Numbers that the server moves into their range."""


def check_call(
    method: str, given: Mapping[str, Any], uploads: Collection[str] = (), schema: Schema | None = None
) -> dict[str, Any]:
    """Return the parameters of a call, decoded. `uploads` are the names of the files that came with it."""
    schema = schema or bot_api()
    fields = schema.methods.get(method)
    if fields is None:
        raise ApiError(404, "Not Found: method not found")
    for name in given:
        if name not in fields:
            raise bad_request(f'unknown parameter "{name}" of {method}')
    checked: dict[str, Any] = {}
    for name, field in fields.items():
        if name in given:
            checked[name] = _check(method, name, field, given[name], schema)
        elif name in uploads and "InputFile" in field.kind:
            checked[name] = f"attach://{name}"
        elif field.required:
            raise bad_request(_MISSING.get(name, f'parameter "{name}" is required'))
    return checked


def _check(method: str, name: str, field: Field, value: Any, schema: Schema) -> Any:
    decoded = _decode(name, field.kind, value)
    try:
        check_value(field.kind, decoded, schema)
        if (method, name) not in _CLAMPED:
            check_limits(method, name, field, decoded)
    except MismatchError as mismatch:
        if mismatch.final:
            raise bad_request(str(mismatch)) from None
        if field.kind in _PLAIN:
            raise bad_request(f'parameter "{name}" must be of type {field.kind}') from None
        raise bad_request(f"can't parse {_SPOKEN.get(name, name)}: {mismatch}") from None
    return decoded


def _decode(name: str, kind: str, value: Any) -> Any:
    """Return a value as its type has it, if it came as a text."""
    if not isinstance(value, str) or kind == "String" or "InputFile" in kind:
        return value
    if kind in ("Integer", "Integer or String"):
        return int(value) if _INTEGER.fullmatch(value) else value
    if kind == "Float":
        return float(value) if _FLOAT.fullmatch(value) else value
    if kind in ("Boolean", "True"):
        return _BOOLEANS.get(value.lower(), value)
    try:
        return msgspec.json.decode(value.encode("utf-8", "surrogatepass"))
    except msgspec.DecodeError:
        raise bad_request(f"can't parse {_SPOKEN.get(name, name + ' JSON object')}") from None
