"""Reads JSON bodies. Errors name the field.

The number of values of a body and their depth are checked before decoding. An accepted body decodes fast, and can be
stored, because the codec accepts deeper values (`serialization.json_tree.MAX_DEPTH`).
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NoReturn, TypeVar

import msgspec
from starlette.datastructures import URL, Headers, QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.types import Scope

from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import InvalidRequestError
from frontdesk.json_size import JsonShape

T = TypeVar("T")

MAX_DEPTH = 64
"""The deepest nesting of the values of a body; a record adds a few levels around them."""
MAX_VALUES = 100_000
"""The largest number of values of a body if the operator sets no other."""

NAME = r"^[a-zA-Z0-9_-]+$(?!\n)"
"""The pattern of the names of tools: letters, digits, _ and -.

In Python `$` matches before a newline at the end too, and `\\Z` is no part of JSON Schema's dialect.
"""

_MATCHING = "Expected `str` matching regex "
_MAX_NAME_LENGTH = 64
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


def decode_as(decoder: msgspec.json.Decoder[T], raw: bytes, max_values: int = MAX_VALUES) -> T:
    """Decode a body within the size and depth limits, or raise an error that a client can act on."""
    check_shape(raw, max_values)
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        text, where = locate(error)
        raise InvalidRequestError(f"{text}.", param=_name_field(decoder, raw, where) or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The body is not valid JSON: {error}.", code="invalid_json") from None


def _name_field(decoder: msgspec.json.Decoder[Any], raw: bytes, where: str) -> str:
    """Return the path of a field. For an error about any entry of an object, include the name of the entry."""
    name = where.removesuffix("[...]")
    if name == where:
        return where
    for key, value in _parts(bytes(_parts(raw, _fields).get(name, b"{}")), _fields).items():
        try:
            decoder.decode(msgspec.json.encode({name: {key: value}}))
        except msgspec.ValidationError as error:
            if locate(error)[1] == where:
                return f"{name}.{key[:_MAX_NAME_LENGTH]}"
    return name


def refuse_body(error: msgspec.ValidationError, prefix: str = "") -> NoReturn:
    """Raise the error for an invalid body, with its location. `prefix` is the path of the decoded part."""
    text, where = locate(error)
    param = f"{prefix}.{where}" if prefix and where else prefix or where
    raise InvalidRequestError(f"{text}.", param=param or None) from None


def locate(error: msgspec.ValidationError) -> tuple[str, str]:
    """Split a message into the problem and the path of the field. The path is empty for the whole body."""
    # Only the last one is msgspec's own: before it stands what the client has sent.
    text, separator, path = str(error).rpartition(" - at `")
    path = path.removeprefix("key` in `")
    if not separator or not path.startswith("$") or not path.endswith("`"):
        return _in_words(str(error)), ""
    return _in_words(text), path[1:-1].removeprefix(".")


def _in_words(text: str) -> str:
    if not text.startswith(_MATCHING):
        return text
    return "Expected letters, digits, _ and - only" if text == _MATCHING + repr(NAME) else "Expected another form"


def check_shape(raw: bytes, max_values: int = MAX_VALUES) -> None:
    """Reject a body with too many or too deeply nested values."""
    opened = raw.count(b"[") + raw.count(b"{")
    # Each value takes a byte at least, and follows a bracket or a comma.
    wide = len(raw) > max_values and opened + raw.count(b",") >= max_values
    if opened <= MAX_DEPTH and not wide:
        return
    shape = JsonShape(raw, max_values)
    if shape.values > max_values:
        raise InvalidRequestError(
            f"A body can have at most {max_values} values.", param=_widest(raw, max_values), code="too_many_values"
        )
    if shape.is_deeper(MAX_DEPTH):
        raise InvalidRequestError(
            f"A body can be nested at most {MAX_DEPTH} levels deep.",
            param=_deepest(raw, max_values),
            code="nested_too_deep",
        )


def _deepest(raw: bytes, most: int) -> str | None:
    """Return the field with too deeply nested values, with its index in a list."""
    for name, field in _parts(raw, _fields).items():
        if JsonShape(bytes(field), most).is_deeper(MAX_DEPTH - 1):
            for place, item in enumerate(_parts(bytes(field), _items)):
                if JsonShape(bytes(item), most).is_deeper(MAX_DEPTH - 2):
                    return f"{name[:_MAX_NAME_LENGTH]}[{place}]"
            return name[:_MAX_NAME_LENGTH]
    return None


def _widest(raw: bytes, most: int) -> str | None:
    fields = _parts(raw, _fields)
    widest = max(fields, key=lambda name: JsonShape(bytes(fields[name]), most).values, default=None)
    return None if widest is None else widest[:_MAX_NAME_LENGTH]


def _parts(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decoder.type()


_object = msgspec.json.Decoder(dict[str, Any])


class HttpPayload(dict[str, Any]):
    """The JSON body of a request or WebSocket message. `request` has the other parts of the HTTP request."""

    def __init__(self, body: Mapping[str, Any], scope: Scope) -> None:
        super().__init__(body)
        self._scope = scope

    @cached_property
    def request(self) -> HTTPConnection:
        """Return the Starlette request. Its body has been read."""
        return Request(self._scope) if self._scope["type"] == "http" else HTTPConnection(self._scope)

    @property
    def headers(self) -> Headers:
        return self.request.headers

    @property
    def url(self) -> URL:
        return self.request.url

    @property
    def query_params(self) -> QueryParams:
        return self.request.query_params


async def read_payload(raw: bytes, scope: Scope) -> HttpPayload:
    """Parse a body that is known to be a JSON object."""
    return HttpPayload(await run_sized(len(raw), _decode, raw), scope)


def _decode(raw: bytes) -> dict[str, Any]:
    try:
        return _object.decode(raw)
    except (msgspec.MsgspecError, ValueError) as error:
        # In a field that the channel ignores: it was not decoded before.
        raise InvalidRequestError(f"The body has an invalid value: {error}.", code="invalid_json") from None
