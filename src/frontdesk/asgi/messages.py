"""Plain ASGI requests and responses: header and body reading, body limits, CORS. Avoids a framework for speed."""

import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from math import inf
from typing import Any, TypeVar, overload
from urllib.parse import parse_qs, quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk.errors import (
    BodyTooLargeError,
    InvalidRequestError,
    MethodNotAllowedError,
    RequestError,
    TargetError,
    TooManyRequestsError,
    UnavailableError,
    UnsupportedMediaError,
)
from frontdesk.errors.sizes import format_size
from frontdesk.json_size import estimate_memory
from frontdesk.loggers import http as log

Who = tuple[str, str]

_RETRY_SECONDS = 1.0
_MAX_FREE_BYTES = 256 * 1024
"""The size up to which the only body of a caller is let in, however much the others have taken."""


MAX_SMALL_BODY_BYTES = 10_000
"""The size below which the bytes of a body do not count."""
MAX_SMALL_JSON_BYTES = 4_000
"""The size up to which the values of a body do not count."""
MAX_SMALL_VALUES_BYTES = 256 * 1024
"""The memory up to which the values of a small body do not count. As many as `max_running` take `max_bytes`."""


def count_charged(raw: bytes) -> int:
    if len(raw) <= MAX_SMALL_JSON_BYTES:
        return 0
    size = estimate_memory(raw)
    return 0 if len(raw) < MAX_SMALL_BODY_BYTES and size <= MAX_SMALL_VALUES_BYTES else size


class BodyBudget:
    """Counts the bytes in flight on one channel."""

    def __init__(self, max_bytes: int | None, max_bytes_per_caller: int | None) -> None:
        self._most = inf if max_bytes is None else max_bytes
        self._most_of_one = inf if max_bytes_per_caller is None else max_bytes_per_caller
        self._held: dict[Who, int] = {}
        self._total = 0

    def take(self, who: Who, size: int, own: int = 0) -> None:
        """Reserve bytes for a caller's body, or raise. `own` of them are already counted.

        A single body is always accepted, because its size is limited separately.
        """
        held = self._held.get(who, 0)
        if held > own and held + size > self._most_of_one:
            raise TooManyRequestsError("Your concurrent requests use too much memory.", retry_after=_RETRY_SECONDS)
        is_first_and_small = held == own and own + size <= _MAX_FREE_BYTES
        if self._total > own and self._total + size > self._most and not is_first_and_small:
            raise UnavailableError("The concurrent requests use too much memory.", retry_after=_RETRY_SECONDS)
        self._held[who] = held + size
        self._total += size

    def give_back(self, who: Who, size: int) -> None:
        self._total -= size
        left = self._held.get(who, 0) - size
        if left > 0:
            self._held[who] = left
        else:
            self._held.pop(who, None)


class BodyHold:
    """The bytes of its caller's budget that one request or connection has reserved."""

    __slots__ = ("_budget", "_size", "_who")

    def __init__(self, budget: BodyBudget, who: Who) -> None:
        self._budget = budget
        self._who = who
        self._size = 0

    def add(self, size: int) -> None:
        """Reserve more bytes, or raise."""
        self._budget.take(self._who, size, self._size)
        self._size += size

    def drop(self, size: int) -> None:
        self._size -= size
        self._budget.give_back(self._who, size)

    def split(self, size: int) -> "BodyHold":
        """Move some of the bytes to a new hold."""
        part = BodyHold(self._budget, self._who)
        part._size, self._size = size, self._size - size
        return part

    def charge(self, size: int) -> Callable[[], None]:
        """Reserve bytes for something that may outlive the request. Return a function that releases them."""
        self.add(size)
        return self.split(size).release

    def release(self) -> None:
        if self._size:
            self.drop(self._size)


T = TypeVar("T")
Headers = Mapping[bytes, bytes]
RawHeaders = Iterable[tuple[bytes, bytes]]

CONNECTION = "frontdesk.connection"
"""The ASGI extension by which a server offers the connection of a request."""
_MAX_NUMBER_LENGTH = 15
_MAX_ENCODING_LENGTH = 32
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


class DirectApp:
    """An ASGI app with a method that our servers call directly, which is cheaper than `__call__`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.answer(scope, receive, send)

    def answer(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Return an awaitable that answers a request, without an intermediate coroutine."""
        raise NotImplementedError


def collect_headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by lower-case name. The last one of a repeated header is used."""
    return dict(scope["headers"])


def require_single(scope: Scope) -> None:
    """Reject a request that repeats one of these headers. A proxy may have read the other value."""
    for name in _SINGLE:
        if sum(given == name for given, _ in scope["headers"]) > 1:
            raise _build_repeated_error(name)


class SingleHeaders(dict[bytes, bytes]):
    """Headers for credential checks. Reading a repeated header is an error.

    Only the code that reads a credential knows the name of its header, so repetition is checked on read.
    """

    def __init__(self, headers: Headers, sent: RawHeaders) -> None:
        super().__init__(headers)
        counts = Counter(name for name, _ in sent)
        self._repeated = frozenset(name for name, count in counts.items() if count > 1)

    def __getitem__(self, name: bytes) -> bytes:
        if name in self._repeated:
            raise _build_repeated_error(name)
        return super().__getitem__(name)

    @overload
    def get(self, name: bytes, default: None = None, /) -> bytes | None: ...

    @overload
    def get(self, name: bytes, default: bytes, /) -> bytes: ...

    @overload
    def get(self, name: bytes, default: T, /) -> bytes | T: ...

    def get(self, name: bytes, default: Any = None, /) -> Any:
        if name not in self:
            return default
        return self[name]


def _build_repeated_error(name: bytes) -> InvalidRequestError:
    return InvalidRequestError(f"The header {name.decode('latin-1')} must be sent only once.", code="repeated_header")


def require_identity(headers: Headers) -> None:
    """Reject a compressed body. Nothing here decompresses, so the body size equals the bytes sent."""
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding not in (b"identity", b""):
        name = encoding[:_MAX_ENCODING_LENGTH].decode("latin-1")
        message = f"Content-Encoding is {name!r}, and the body must not be compressed: send it as it is."
        raise UnsupportedMediaError(message, code="unsupported_encoding")


def check_length(headers: Headers, limit: int, held: BodyHold | None = None) -> BodyHold | None:
    """Reject a too large `Content-Length` and reserve its bytes. Return the hold for a body without one."""
    length = headers.get(b"content-length")
    if length is None:
        return held
    if not length.isdigit() or len(length) > 18 or int(length) > limit:
        raise _too_large(limit)
    if held is not None:
        held.add(int(length))
    return None


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"The body must not be larger than {format_size(limit)}.")


def whole_in(message: Any, limit: int) -> bytes | None:
    """Return the body if the first message is complete, as for most requests. Otherwise return None."""
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    body = message.get("body", b"")
    if len(body) > limit:
        raise _too_large(limit)
    return body


async def read_rest(receive: Receive, message: Any, limit: int, held: BodyHold | None = None) -> bytes:
    """Read the rest of a body that starts with a message, up to `limit`. Bytes are reserved in `held` as they
    arrive."""
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if held is not None:
            held.add(len(part))
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()


def parse_resume_position(query: bytes) -> int | None:
    """Return the number of the reader's last event, -1 without one, or None if no stream is requested."""
    asked = {name: values[-1] for name, values in parse_qs(query.decode("latin-1"), keep_blank_values=True).items()}
    after, stream = asked.get("starting_after"), asked.get("stream", "false").lower()
    if stream not in ("true", "false"):
        raise InvalidRequestError("`stream` must be true or false.", param="stream")
    if after is not None and not (after.isascii() and after.isdigit() and len(after) <= _MAX_NUMBER_LENGTH):
        raise InvalidRequestError("`starting_after` must be the number of an event.", param="starting_after")
    if stream == "false":
        return None
    return -1 if after is None else int(after)


class ClientGoneError(InvalidRequestError):
    """The client disconnected before its request was complete."""


async def send_text(send: Send, status: int, body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [PLAIN, length]})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, body: bytes, headers: RawHeaders = ()) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


def below(scope: Scope, path: str) -> bytes:
    """Return a path of this host as seen by clients, including the mount path."""
    return quote(f"{scope.get('root_path', '')}{path}").encode("ascii")


def whole_seconds(wait: float) -> str:
    """Return a wait time as a `Retry-After` value."""
    return str(max(1, math.ceil(wait)))


def rate_headers(limit: int, wait: float) -> list[tuple[bytes, bytes]]:
    """Return the rate limit headers that clients of the OpenAI APIs read."""
    return [
        (b"x-ratelimit-limit-requests", b"%d" % limit),
        (b"x-ratelimit-remaining-requests", b"0"),
        (b"x-ratelimit-reset-requests", b"%dms" % math.ceil(wait * 1000)),
    ]


def error_headers(error: RequestError) -> list[tuple[bytes, bytes]]:
    """Return the standard HTTP headers of an error."""
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


_NAMES = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z, ]{1,4096}")
"""Header names, as a preflight lists them."""
_LOCAL = re.compile(rb"http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
_MAX_AGE = b"600"
"""The seconds for which a browser may remember a preflight."""
# What a page may read of any answer: the Fetch standard has the list.
_ALWAYS_READABLE = frozenset(
    {b"cache-control", b"content-language", b"content-length", b"content-type", b"expires", b"last-modified", b"pragma"}
)
_VARY = (b"vary", b"Origin")
_MAX_DISPLAYED_LENGTH = 200
_MAX_DISPLAYED = 5
"""The number of accepted origins in a log line."""
RawHeader = tuple[bytes, bytes]


class Cors:
    """CORS for the origins of one channel."""

    def __init__(self, origins: Collection[str], *, credentials: bool) -> None:
        """Allow `origins`. `credentials` lets browser credentials, such as cookies, identify the caller.

        They are only allowed for origins that cannot be forged on the network.
        """
        self._origins = frozenset(origin.encode() for origin in origins)
        self._trusted = frozenset(filter(is_secure, self._origins)) if credentials else frozenset[bytes]()

    async def serve(self, app: ASGIApp, methods: Iterable[str], scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight of a listed origin. All other requests go to `app`, which supports `methods`."""
        headers = collect_headers(scope)
        origin = headers.get(b"origin")
        if origin is None or origin not in self._origins:
            return await app(scope, receive, _add_headers(send, ()))
        shared = self._build_headers(origin)
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            head = [*shared, *_terms(headers, methods), _VARY, (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 204, "headers": head})
            return await send({"type": "http.response.body", "body": b""})
        await app(scope, receive, _add_headers(send, shared))

    def _build_headers(self, origin: bytes) -> tuple[RawHeader, ...]:
        shared = (b"access-control-allow-origin", origin)
        return (shared, (b"access-control-allow-credentials", b"true")) if origin in self._trusted else (shared,)


class RefusedPreflights:
    """Logs refused preflights once for each origin, up to a limit, because origins can be forged."""

    def __init__(self, max_origins: int = 32) -> None:
        self._max_origins = max_origins
        self._origins: set[bytes] = set()

    def warn(self, origin: bytes, path: str) -> None:
        """Log a refused preflight unless its origin is already logged."""
        origin = origin[:_MAX_DISPLAYED_LENGTH]
        if origin in self._origins or len(self._origins) >= self._max_origins:
            return
        self._origins.add(origin)
        log.warning(
            "preflight refused: origin=%r path=%r; pages of this origin may call the channel once its allowed_origins "
            "lists the origin",
            origin.decode("latin-1"),
            path[:_MAX_DISPLAYED_LENGTH],
        )


class RefusedOrigins:
    """Logs requests of refused origins once for each origin, up to a limit, because origins can be forged."""

    def __init__(self, max_origins: int = 32) -> None:
        self._max_origins = max_origins
        self._origins: set[bytes] = set()

    def warn(self, origin: bytes, accepted: Collection[bytes]) -> None:
        """Log a refused origin with the accepted ones, unless it is already logged."""
        origin = origin[:_MAX_DISPLAYED_LENGTH]
        if origin in self._origins or len(self._origins) >= self._max_origins:
            return
        self._origins.add(origin)
        listed = sorted(accepted)
        shown = ", ".join(repr(one[:_MAX_DISPLAYED_LENGTH].decode("latin-1")) for one in listed[:_MAX_DISPLAYED])
        log.warning(
            "origin refused: origin=%r accepted=[%s]%s; if the page is this host's own, the proxy in front has to pass "
            "on the Host header with its port, and to connect with TLS outside",
            origin.decode("latin-1"),
            shown,
            f" and {len(listed) - _MAX_DISPLAYED} more" if len(listed) > _MAX_DISPLAYED else "",
        )


refused_preflights = RefusedPreflights()


def _add_headers(send: Send, shared: tuple[RawHeader, ...]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            head = [*message.get("headers", ()), *shared, _VARY]
            if shared and (readable := _readable(head)):
                head.append((b"access-control-expose-headers", readable))
            message = {**message, "headers": head}
        await send(message)

    return send_with_headers


def _readable(head: Iterable[RawHeader]) -> bytes:
    names = dict.fromkeys(name for name, _ in head if not name.startswith(b"access-control-"))
    return b", ".join(name for name in names if name not in _ALWAYS_READABLE and name not in (b"vary", b"set-cookie"))


def _terms(headers: Headers, methods: Iterable[str]) -> list[RawHeader]:
    """Return the allowed methods of the path, and all headers that the page requests."""
    terms = [
        (b"access-control-allow-methods", ", ".join(methods).encode()),
        (b"access-control-max-age", _MAX_AGE),
    ]
    asked = headers.get(b"access-control-request-headers", b"")
    if _NAMES.fullmatch(asked):
        terms.append((b"access-control-allow-headers", asked))
    return terms


def is_secure(origin: bytes) -> bool:
    """Return True if an origin cannot be forged on the network."""
    return origin.startswith(b"https://") or _LOCAL.fullmatch(origin) is not None
