"""Reads JSON bodies of the OpenAI APIs; what is wrong with one names the field."""

import re
from typing import NoReturn, TypeVar

import msgspec

from frontdesk.errors import InvalidRequestError

T = TypeVar("T")

_WHERE = re.compile(r" - at `(?:key` in `)?\$\.?(.*)`$")


def decode_as(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    """The body, or an error that a client can act on."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        refuse_body(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The body is not valid JSON: {error}.", code="invalid_json") from None


def refuse_body(error: msgspec.ValidationError, prefix: str = "") -> NoReturn:
    """The error that says what is wrong, and where; `prefix` is where the part lies that was read."""
    where = _WHERE.search(str(error))
    param = prefix + (f".{where.group(1)}" if prefix and where and where.group(1) else where.group(1) if where else "")
    raise InvalidRequestError(f"{_WHERE.sub('', str(error))}.", param=param or None) from None
