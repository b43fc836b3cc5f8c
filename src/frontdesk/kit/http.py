"""HTTP without ceremony: requests read and responses written straight on ASGI, because every layer costs."""

import asyncio
import math
import types
from collections.abc import Generator, Iterable, Mapping
from typing import Any, cast
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from frontdesk.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    InvalidRequestError,
    MethodNotAllowedError,
    RequestError,
    TooManyRequestsError,
)
from frontdesk.kit.reminders import Reminders

Headers = Mapping[bytes, bytes]
RawHeaders = Iterable[tuple[bytes, bytes]]

_LONGEST_NUMBER = 15
JSON = (b"content-type", b"application/json")
# What RFC 6750 calls them; a client that reads this knows whether another token would help.
_TOKEN_ERRORS = {
    "invalid_token": b'Bearer error="invalid_token"',
    "insufficient_scope": b'Bearer error="insufficient_scope"',
}


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The headers by their lower-case names; of a repeated one the last."""
    return dict(scope["headers"])


async def read_body(
    receive: Receive, headers: Headers, task: "asyncio.Task[Any]", *, limit: int, deadline: Reminders
) -> bytes:
    """The whole body, if it is small enough and arrives in time."""
    length = headers.get(b"content-length")
    if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > limit):
        raise BodyTooLargeError(f"The body must not be larger than {limit} bytes.")
    # A small body is there already, nearly always, and then there is nothing to wait for and no need of a deadline.
    coming: Any = receive()
    try:
        waiting = _begin(coming)
    except StopIteration as arrived:
        message: Any = arrived.value
        if message["type"] == "http.request" and not message.get("more_body", False):
            return _within(message.get("body", b""), limit)
        coming = _given(message)
    else:
        coming = coming if waiting is _NOT_BEGUN else _go_on(coming, waiting)
    late = _Late(task)
    reminder = deadline.set(late.cancel)
    try:
        return await _read_rest(receive, await coming, limit)
    except asyncio.CancelledError:
        if not late.happened:
            raise
        late.task.uncancel()
        raise BodyTimeoutError from None
    finally:
        reminder.cancel()


_NOT_BEGUN = object()


def _begin(coming: Any) -> Any:
    """What a coroutine waits for after its first step; anything else that can be awaited is left as it is."""
    return cast(Any, coming).send(None) if isinstance(coming, types.CoroutineType) else _NOT_BEGUN


async def _given(message: Any) -> Any:
    return message


@types.coroutine
def _go_on(begun: Any, waiting: Any) -> Generator[Any, Any, Any]:
    """Awaits the rest of a coroutine that was begun by hand, handing on what it waits for and what comes of that."""
    try:
        while True:
            try:
                sent = yield waiting
            except BaseException as error:
                waiting = begun.throw(error)
            else:
                waiting = begun.send(sent)
    except StopIteration as done:
        return done.value


class _Late:
    """Ends the wait of the present task."""

    __slots__ = ("happened", "task")

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self.task = task
        self.happened = False

    def cancel(self) -> None:
        self.happened = True
        self.task.cancel()


async def _read_rest(receive: Receive, message: Any, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        parts.append(_within(part, limit - size + len(part)))
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()


def _within(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise BodyTooLargeError
    return body


def resumed_after(query: bytes) -> int | None:
    """The number of the last event that a reader has, -1 if it has none; nothing if it does not want a stream."""
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


async def send_json(send: Send, status: int, body: bytes, headers: RawHeaders = ()) -> None:
    """A whole response."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


def whole_seconds(wait: float) -> str:
    """How long to wait, as `Retry-After` takes it."""
    return str(max(1, math.ceil(wait)))


def rate_headers(limit: int, wait: float) -> list[tuple[bytes, bytes]]:
    """What clients of the OpenAI APIs read about a rate that was passed."""
    return [
        (b"x-ratelimit-limit-requests", b"%d" % limit),
        (b"x-ratelimit-remaining-requests", b"0"),
        (b"x-ratelimit-reset-requests", b"%dms" % math.ceil(wait * 1000)),
    ]


def error_headers(error: RequestError) -> list[tuple[bytes, bytes]]:
    """What HTTP itself says about an error."""
    headers: list[tuple[bytes, bytes]] = []
    if error.retry_after is not None:
        headers.append((b"retry-after", whole_seconds(error.retry_after).encode()))
    if isinstance(error, TooManyRequestsError) and error.limit is not None:
        headers += rate_headers(error.limit, error.retry_after or 0.0)
    if isinstance(error, MethodNotAllowedError):
        headers.append((b"allow", ", ".join(error.allow).encode()))
    if error.status == 401 or error.code in _TOKEN_ERRORS:
        headers.append((b"www-authenticate", _TOKEN_ERRORS.get(error.code, b"Bearer")))
    if error.status in (408, 413):
        # The rest of the body is still on its way, and nobody will read it.
        headers.append((b"connection", b"close"))
    return headers
