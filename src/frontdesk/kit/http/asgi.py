"""Reads requests and writes responses straight on ASGI, because every layer costs."""

import math
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs, quote

from starlette.types import Receive, Scope, Send

from frontdesk.errors import (
    BodyTooLargeError,
    InvalidRequestError,
    MethodNotAllowedError,
    RequestError,
    TargetError,
    TooManyRequestsError,
)
from frontdesk.kit.http.body_budget import BodyHold

Headers = Mapping[bytes, bytes]
RawHeaders = Iterable[tuple[bytes, bytes]]

CONNECTION = "frontdesk.connection"
"""The ASGI extension by which a server offers the connection of a request."""
_LONGEST_NUMBER = 15
_SINGLE = (b"host", b"authorization", b"origin", b"content-length", b"content-type")
JSON = (b"content-type", b"application/json")
PLAIN = (b"content-type", b"text/plain; charset=utf-8")
NO_RETRY = (b"x-should-retry", b"false")
"""Tells clients that read it, such as OpenAI's, not to send the request again."""
# What RFC 6750 calls them; a client that reads this knows whether another token would help.
_TOKEN_ERRORS = {
    "invalid_token": b'Bearer error="invalid_token"',
    "insufficient_scope": b'Bearer error="insufficient_scope"',
}


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by their lower-case names; of a repeated one the last."""
    return dict(scope["headers"])


def need_single(scope: Scope) -> None:
    """Refuse a request that repeats one of these headers: a proxy before this host may have read the other value."""
    for name in _SINGLE:
        if sum(given == name for given, _ in scope["headers"]) > 1:
            raise InvalidRequestError(f"The header {name.decode()} comes twice.", code="repeated_header")


def check_length(headers: Headers, limit: int, held: BodyHold | None = None) -> BodyHold | None:
    """Refuse a body that says that it is too large, and count it; return what has to count one that says nothing."""
    length = headers.get(b"content-length")
    if length is None:
        return held
    if not length.isdigit() or len(length) > 18 or int(length) > limit:
        raise BodyTooLargeError(f"The body must not be larger than {limit} bytes.")
    if held is not None:
        held.add(int(length))
    return None


def whole_in(message: Any, limit: int) -> bytes | None:
    """Return the body of a request whose first message has all of it, as most have; `None` for others."""
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    body = message.get("body", b"")
    if len(body) > limit:
        raise BodyTooLargeError
    return body


async def read_rest(receive: Receive, message: Any, limit: int, held: BodyHold | None = None) -> bytes:
    """Return a body that begins with a message, if it is small enough; it counts in `held` as it comes."""
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise BodyTooLargeError
        parts.append(part)
        if held is not None:
            held.add(len(part))
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()


def resumed_after(query: bytes) -> int | None:
    """Return the number of the last event that a reader has, -1 if it has none; `None` if it wants no stream."""
    asked = {name: values[-1] for name, values in parse_qs(query.decode("latin-1"), keep_blank_values=True).items()}
    after, stream = asked.get("starting_after"), asked.get("stream", "false").lower()
    if stream not in ("true", "false"):
        raise InvalidRequestError("`stream` must be true or false.", param="stream")
    if after is not None and not (after.isascii() and after.isdigit() and len(after) <= _LONGEST_NUMBER):
        raise InvalidRequestError("`starting_after` must be the number of an event.", param="starting_after")
    if stream == "false":
        return None
    return -1 if after is None else int(after)


class ClientGoneError(InvalidRequestError):
    """The client left before its request was complete."""


async def send_text(send: Send, status: int, body: bytes) -> None:
    """Send a whole response that is plain text."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [PLAIN, length]})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, body: bytes, headers: RawHeaders = ()) -> None:
    """Send a whole response."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


def below(scope: Scope, path: str) -> bytes:
    """Return a path of this host as a client has to ask for it, wherever the host is mounted."""
    return quote(f"{scope.get('root_path', '')}{path}").encode("ascii")


def whole_seconds(wait: float) -> str:
    """Return how long to wait, as `Retry-After` takes it."""
    return str(max(1, math.ceil(wait)))


def rate_headers(limit: int, wait: float) -> list[tuple[bytes, bytes]]:
    """Return what clients of the OpenAI APIs read about a rate that was passed."""
    return [
        (b"x-ratelimit-limit-requests", b"%d" % limit),
        (b"x-ratelimit-remaining-requests", b"0"),
        (b"x-ratelimit-reset-requests", b"%dms" % math.ceil(wait * 1000)),
    ]


def error_headers(error: RequestError) -> list[tuple[bytes, bytes]]:
    """Return what HTTP itself says about an error."""
    headers: list[tuple[bytes, bytes]] = []
    if error.retry_after is not None:
        headers.append((b"retry-after", whole_seconds(error.retry_after).encode()))
    if isinstance(error, TooManyRequestsError) and error.limit is not None:
        headers += rate_headers(error.limit, error.retry_after or 0.0)
    if isinstance(error, MethodNotAllowedError):
        headers.append((b"allow", ", ".join(error.allow).encode()))
    if error.status == 401 or error.code in _TOKEN_ERRORS:
        headers.append((b"www-authenticate", _TOKEN_ERRORS.get(error.code, b"Bearer")))
    if isinstance(error, TargetError):
        headers.append(NO_RETRY)
    if error.status in (408, 413):
        # The rest of the body is still on its way, and is not read.
        headers.append((b"connection", b"close"))
    return headers
