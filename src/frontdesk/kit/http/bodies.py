"""Reads JSON bodies; errors name the field.

A body is measured before it is decoded: how many values it has, and how deep they lie. Whatever passes can be decoded
in a moment, and can be stored, since the codec takes deeper values than these (`data.json_tree.MAX_DEPTH`).
"""

from typing import Any, NoReturn, TypeVar

import msgspec

from frontdesk.errors import InvalidRequestError

T = TypeVar("T")

MAX_DEPTH = 64
"""The deepest nesting of the values of a body; a record adds a few levels around them."""
MAX_VALUES = 100_000
"""The largest number of values of a body if the operator sets no other."""

_CHUNK = 64 * 1024
_LONGEST_NAME = 64
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))


def decode_as(decoder: msgspec.json.Decoder[T], raw: bytes, max_values: int = MAX_VALUES) -> T:
    """Decode a body that is neither too wide nor too deep, or raise an error that a client can act on."""
    check_shape(raw, max_values)
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        text, where = place_of(error)
        raise InvalidRequestError(f"{text}.", param=_named(decoder, raw, where) or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The body is not valid JSON: {error}.", code="invalid_json") from None


def _named(decoder: msgspec.json.Decoder[Any], raw: bytes, where: str) -> str:
    """Return the path of a field; where it is about any entry of an object, with the name of the entry."""
    name = where.removesuffix("[...]")
    if name == where:
        return where
    for key, value in _parts(bytes(_parts(raw, _fields).get(name, b"{}")), _fields).items():
        try:
            decoder.decode(msgspec.json.encode({name: {key: value}}))
        except msgspec.ValidationError as error:
            if place_of(error)[1] == where:
                return f"{name}.{key[:_LONGEST_NAME]}"
    return name


def refuse_body(error: msgspec.ValidationError, prefix: str = "") -> NoReturn:
    """Raise the error that says what is wrong, and where; `prefix` is where the part lies that was read."""
    text, where = place_of(error)
    param = f"{prefix}.{where}" if prefix and where else prefix or where
    raise InvalidRequestError(f"{text}.", param=param or None) from None


def place_of(error: msgspec.ValidationError) -> tuple[str, str]:
    """Split what is wrong from the path of the field; the path is empty for the whole body."""
    # Only the last one is msgspec's own: before it stands what the client has sent.
    text, separator, path = str(error).rpartition(" - at `")
    path = path.removeprefix("key` in `")
    if not separator or not path.startswith("$") or not path.endswith("`"):
        return str(error), ""
    return text, path[1:-1].removeprefix(".")


def check_shape(raw: bytes, max_values: int = MAX_VALUES) -> None:
    """Refuse a body with too many values, or with values that lie too deep."""
    opened = raw.count(b"[") + raw.count(b"{")
    # Each value takes a byte at least, and follows a bracket or a comma.
    wide = len(raw) > max_values and opened + raw.count(b",") >= max_values
    if opened <= MAX_DEPTH and not wide:
        return
    shape = _Shape(raw, max_values)
    if shape.values > max_values:
        raise InvalidRequestError(
            f"A body has {max_values} values at most.", param=_widest(raw, max_values), code="too_many_values"
        )
    if shape.is_deeper(MAX_DEPTH):
        raise InvalidRequestError(
            f"Values may be nested {MAX_DEPTH} levels deep at most.",
            param=_deepest(raw, max_values),
            code="nested_too_deep",
        )


def count_values(raw: bytes) -> int:
    """Count the values of a JSON text, or a few more."""
    return _Shape(raw, len(raw)).values


class _Shape:
    """The brackets and commas of a body that are no part of a text; counted until there are too many."""

    def __init__(self, raw: bytes, most: int) -> None:
        self.values = 1
        self._brackets: list[bytes] = []
        start, inside = 0, 0
        while start < len(raw) and self.values <= most:
            end = start + _CHUNK
            chunk = raw[start:end]
            # A backslash stays with the character that it escapes.
            if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:
                end += 1
                chunk = raw[start:end]
            parts = chunk.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
            self._add(b"".join(parts[inside::2]))
            inside ^= (len(parts) - 1) % 2
            start = end

    def _add(self, outside: bytes) -> None:
        brackets = outside.translate(_BRACKETS, _NOT_BRACKETS)
        self._brackets.append(brackets)
        self.values += outside.count(b",") + brackets.count(b"[")

    def is_deeper(self, levels: int) -> bool:
        left = b"".join(self._brackets)
        if left.count(b"]") != left.count(b"["):
            # It is no JSON, and the decoder says so.
            return False
        for _ in range(levels):
            if not left:
                return False
            # Each time the innermost pairs go, and with them one level.
            left = left.replace(b"[]", b"")
        return bool(left)


def _deepest(raw: bytes, most: int) -> str | None:
    """Name the field in which values lie too deep, with the place in it if it is a list."""
    for name, field in _parts(raw, _fields).items():
        if _Shape(bytes(field), most).is_deeper(MAX_DEPTH - 1):
            for place, item in enumerate(_parts(bytes(field), _items)):
                if _Shape(bytes(item), most).is_deeper(MAX_DEPTH - 2):
                    return f"{name[:_LONGEST_NAME]}[{place}]"
            return name[:_LONGEST_NAME]
    return None


def _widest(raw: bytes, most: int) -> str | None:
    """Name the field with the most values."""
    fields = _parts(raw, _fields)
    widest = max(fields, key=lambda name: _Shape(bytes(fields[name]), most).values, default=None)
    return None if widest is None else widest[:_LONGEST_NAME]


def _parts(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decoder.type()
