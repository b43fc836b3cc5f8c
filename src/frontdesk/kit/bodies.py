"""Reads JSON bodies of the OpenAI APIs; what is wrong with one names the field."""

from typing import NoReturn, TypeVar

import msgspec

from frontdesk.errors import InvalidRequestError

T = TypeVar("T")


def decode_as(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    """The body, or an error that a client can act on."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        refuse_body(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The body is not valid JSON: {error}.", code="invalid_json") from None


def refuse_body(error: msgspec.ValidationError, prefix: str = "") -> NoReturn:
    """Raise the error that says what is wrong, and where; `prefix` is where the part lies that was read."""
    text, where = place_of(error)
    param = f"{prefix}.{where}" if prefix and where else prefix or where
    raise InvalidRequestError(f"{text}.", param=param or None) from None


def place_of(error: msgspec.ValidationError) -> tuple[str, str]:
    """Split what is wrong from the path of the field; the path is empty for the whole body."""
    # Only the last one is msgspec's own: before it stands what the client has sent.
    text, found, path = str(error).rpartition(" - at `")
    path = path.removeprefix("key` in `")
    if not found or not path.startswith("$") or not path.endswith("`"):
        return str(error), ""
    return text, path[1:-1].removeprefix(".")
