"""Parses requests of both bindings, and their messages into framework messages. Pure."""

import base64
import binascii
import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from agent_framework import Content, Message
from msgspec import UNSET

from frontdesk.asgi.messages import Headers
from frontdesk.channels.a2a.errors import (
    CONTENT_TYPE_NOT_SUPPORTED,
    EXTENSION_SUPPORT_REQUIRED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    VERSION_NOT_SUPPORTED,
    ProtocolError,
    invalid,
)
from frontdesk.channels.a2a.modes import OUTPUT_MODES, is_accepted, is_mode, overlap, plain_mode
from frontdesk.channels.a2a.schema import ROLE_USER, STATES, CallIn, MessageIn, Number, PartIn, SendIn
from frontdesk.http.bodies import MAX_VALUES, decode_as, locate
from frontdesk.identifiers import is_plain_id
from frontdesk.outbound.client import is_media_type

T = TypeVar("T")

VERSION = "1.0"
_VERSIONS = ("1.0",)
MAX_PARTS = 256
MAX_MESSAGE_ID_LENGTH = 512
MAX_URL_LENGTH = 8192
MAX_PAGE_SIZE, DEFAULT_PAGE_SIZE = 100, 50
MAX_EXTENSIONS = 64
_MAX_INT = 2**31 - 1
_UNKNOWN_TYPE = "application/octet-stream"
DATA_PART = "a2a_data_part"
"""The property of a text content that was a data part."""

_calls = msgspec.json.Decoder(CallIn)


def decode_call(raw: bytes, max_values: int = MAX_VALUES) -> CallIn:
    return decode_as(_calls, raw, max_values)


def decode_params(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw) -> T:
    """Decode the parameters of an operation. Errors name the field."""
    given = bytes(raw)
    try:
        return decoder.decode(given if given.strip() not in (b"", b"null") else b"{}")
    except msgspec.ValidationError as error:
        text, where = locate(error)
        raise ProtocolError(INVALID_PARAMS, f"{text}.", param=where or "params") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProtocolError(INVALID_REQUEST, "The parameters are not valid JSON.") from None


def parse_call_id(given: Any) -> bytes:
    """Return the JSON of the id of a call, and `null` for an invalid one."""
    is_valid = given is None or isinstance(given, str) or (isinstance(given, (int, float)) and given is not True)
    return msgspec.json.encode(given) if is_valid and given is not False else b"null"


def check_call(call: CallIn) -> str:
    """Return the method of a JSON-RPC call."""
    if call.jsonrpc != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'jsonrpc must be "2.0".', param="jsonrpc")
    if not isinstance(call.method, str) or not call.method:
        raise ProtocolError(INVALID_REQUEST, "method must be a string.", param="method")
    if call.id is not None and (isinstance(call.id, bool) or not isinstance(call.id, (str, int, float))):
        raise ProtocolError(INVALID_REQUEST, "id must be a string or a number.", param="id")
    return call.method


def parse_query(query: bytes) -> dict[str, str]:
    """Return the parameters of a query string. The last value of a repeated one counts."""
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))


def convert_query(kind: type[T], given: Mapping[str, str]) -> T:
    """Return the parameters of an operation from a query string."""
    values: dict[str, Any] = {name: value for name, value in given.items() if value != ""}
    if "includeArtifacts" in values:
        values["includeArtifacts"] = _bool(values["includeArtifacts"], "includeArtifacts")
    return msgspec.convert(values, kind)


def _bool(value: str, param: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise invalid(f"{param} must be true or false.", param)
    return value.lower() == "true"


def check_version(headers: Headers, query: bytes) -> None:
    """Reject versions of the protocol that this channel does not support. Without a version it is 0.3."""
    given = headers.get(b"a2a-version", b"").decode("latin-1").strip()
    if given == VERSION:
        return
    if not given and b"2" in query:
        names = {name.lower(): value for name, value in parse_query(query).items()}
        given = names.get("a2a-version", "").strip()
    numbers = given.split(".")
    if ".".join(numbers[:2]) in _VERSIONS and len(numbers) <= 3 and all(map(str.isdecimal, numbers)):
        return
    shown = given[:16] if given.isascii() and given.isprintable() else ""
    raise ProtocolError(
        VERSION_NOT_SUPPORTED,
        f"Version {shown or '0.3'} of the protocol is not supported. Send A2A-Version: {VERSION}.",
        metadata={"supportedVersions": ", ".join(_VERSIONS)},
    )


def parse_extensions(headers: Headers, required: Collection[str]) -> list[str]:
    """Return the extensions that a client has named. All required ones must be among them."""
    given = headers.get(b"a2a-extensions", b"").decode("latin-1")
    named = [uri.strip() for uri in given.split(",", MAX_EXTENSIONS)[:MAX_EXTENSIONS] if uri.strip()] if given else []
    for uri in required:
        if uri not in named:
            raise ProtocolError(
                EXTENSION_SUPPORT_REQUIRED,
                f"This agent requires the extension {uri}. Name it in the header A2A-Extensions.",
                metadata={"extension": uri},
            )
    return named


def parse_number(given: Number, param: str, least: int = 0, most: int = _MAX_INT) -> int | None:
    """Return a whole number, which may also be written as a string."""
    if given is None:
        return None
    number = given
    if isinstance(given, str):
        digits = given.removeprefix("-")
        number = int(given) if digits.isascii() and digits.isdigit() and len(digits) <= 10 else -1
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise invalid(f"{param} must be a whole number from {least} to {most}.", param)
    return number


def parse_state(given: str | int | None) -> str | None:
    """Return a task state, and None for an unspecified one."""
    if given is None or given == "":
        return None
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) <= 2:
        given = int(given)
    state = STATES[given] if isinstance(given, int) and 0 <= given < len(STATES) else given
    if state not in STATES:
        raise invalid(f"status must be one of {', '.join(STATES[1:])}.", "status")
    return None if state == STATES[0] else str(state)


def parse_time(given: str | None, param: str) -> float | None:
    """Return a time of RFC 3339 in seconds."""
    if not given:
        return None
    try:
        time = datetime.fromisoformat(given) if len(given) <= 40 else None
        if time is not None and time.tzinfo is not None:
            return time.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        pass
    raise invalid(f"{param} must be a time such as 2026-10-27T10:00:00Z.", param)


class Sent(NamedTuple):
    """A checked request to send a message."""

    message: MessageIn
    parts: Sequence[PartIn]
    message_id: str
    task_id: str | None
    context_id: str | None
    tenant: str
    modes: tuple[str, ...]
    """The media types that the client accepts. Empty if it accepts all."""
    history_length: int | None
    returns_immediately: bool
    key: str
    """The idempotency key: a digest of the message."""


def parse_sent(params: SendIn, tenant: str, input_modes: Collection[str]) -> Sent:
    """Check a message and its configuration."""
    message, configuration = params.message, params.configuration
    if message is None:
        raise invalid("message is required.", "message")
    message_id, parts = message.message_id or "", message.parts or []
    if not message_id or len(message_id) > MAX_MESSAGE_ID_LENGTH:
        raise invalid(f"messageId must have 1 to {MAX_MESSAGE_ID_LENGTH} characters.", "message.messageId")
    if message.role not in (ROLE_USER, 1):
        raise invalid("role must be ROLE_USER.", "message.role")
    if not parts or len(parts) > MAX_PARTS:
        raise invalid(f"A message must have 1 to {MAX_PARTS} parts.", "message.parts")
    for place, part in enumerate(parts):
        _check_part(part, f"message.parts[{place}]", input_modes)
    modes, length, immediately = (), None, False
    if configuration is not None:
        modes = _parse_accepted(configuration.accepted_output_modes or ())
        length = parse_number(configuration.history_length, "configuration.historyLength")
        immediately = bool(configuration.return_immediately)
    task_id = message.task_id or None
    context_id = message.context_id or None
    if context_id is not None and not is_plain_id(context_id):
        raise invalid("contextId must be 1 to 256 letters, digits or any of . _ : -", "message.contextId")
    key = _build_key(message_id, tenant, task_id, context_id, parts)
    return Sent(message, parts, message_id, task_id, context_id, tenant, modes, length, immediately, key)


def _parse_accepted(given: Sequence[str]) -> tuple[str, ...]:
    for mode in given:
        if not is_mode(mode.partition(";")[0].strip()):
            raise invalid("acceptedOutputModes must be media types.", "configuration.acceptedOutputModes")
    modes = tuple(dict.fromkeys(map(plain_mode, given)))
    if not overlap(modes, OUTPUT_MODES):
        raise ProtocolError(
            CONTENT_TYPE_NOT_SUPPORTED,
            f"None of acceptedOutputModes is supported. Supported: {', '.join(OUTPUT_MODES)}.",
            param="configuration.acceptedOutputModes",
        )
    return modes


def _build_key(
    message_id: str, tenant: str, task_id: str | None, context_id: str | None, parts: Sequence[PartIn]
) -> str:
    # The content is part of the key: another message under a used id is another message, and runs.
    named = [message_id, tenant, task_id, context_id, parts]
    return hashlib.sha256(msgspec.json.encode(named, order="sorted")).hexdigest()


def _check_part(part: PartIn, where: str, input_modes: Collection[str]) -> None:
    contents = (part.text is not None) + (part.raw is not None) + (part.url is not None) + (part.data is not UNSET)
    if contents != 1:
        raise invalid("A part must have exactly one of text, raw, url and data.", where)
    media_type = part.media_type
    if not media_type:
        return
    bare = plain_mode(media_type)
    if not is_media_type(bare):
        raise invalid("Invalid media type.", f"{where}.mediaType")
    if not is_accepted(bare, input_modes):
        raise ProtocolError(
            CONTENT_TYPE_NOT_SUPPORTED,
            f"Parts of type {bare} are not supported. Supported: {', '.join(sorted(input_modes))}.",
            param=f"{where}.mediaType",
            metadata={"mediaType": bare},
        )


def build_input(sent: Sent, *, takes_data: bool) -> Any:
    """Return the input of a run. A message of one data part is its value for a target that `takes_data`."""
    if takes_data and len(sent.parts) == 1 and sent.parts[0].data is not UNSET:
        return sent.parts[0].data
    contents = [_content(part, f"message.parts[{place}]") for place, part in enumerate(sent.parts)]
    return Message("user", contents, message_id=sent.message_id)


def _content(part: PartIn, where: str) -> Content:
    if part.text is not None:
        return Content.from_text(part.text)
    properties = {"filename": part.filename} if part.filename else None
    media_type = plain_mode(part.media_type) if part.media_type else _UNKNOWN_TYPE
    if part.raw is not None:
        uri = f"data:{media_type};base64,{_standard_base64(part.raw, where)}"
        return Content.from_uri(uri, media_type=media_type, additional_properties=properties)
    if part.url is not None:
        if not part.url.startswith(("https://", "http://")) or len(part.url) > MAX_URL_LENGTH:
            raise invalid("url must begin with https:// or http://.", f"{where}.url")
        return Content.from_uri(part.url, media_type=media_type, additional_properties=properties)
    return Content.from_text(msgspec.json.encode(part.data).decode(), additional_properties={DATA_PART: True})


def _standard_base64(given: str, where: str) -> str:
    """Return base64 in the standard alphabet with padding. ProtoJSON accepts both alphabets, and no padding."""
    plain = given.rstrip("=").replace("-", "+").replace("_", "/")
    padded = plain + "=" * (-len(plain) % 4)
    try:
        base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Invalid base64.", f"{where}.raw") from None
    return padded
