"""Lets the pages of listed origins call a channel: answers their preflights, and marks every answer for them."""

import re
from collections.abc import Collection, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk.kit.http.asgi import Headers, headers_of

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
RawHeader = tuple[bytes, bytes]


class Cors:
    """Cross-origin sharing for the origins of one channel."""

    def __init__(self, origins: Collection[str], *, credentials: bool) -> None:
        """Share with `origins`; `credentials` if a browser's own, such as cookies, may say who calls.

        They may only for origins that nobody on the network between can speak for.
        """
        self._origins = frozenset(origin.encode() for origin in origins)
        self._trusted = frozenset(filter(is_secure, self._origins)) if credentials else frozenset[bytes]()

    async def serve(self, app: ASGIApp, methods: Iterable[str], scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight of a listed origin; have `app`, which takes `methods`, answer anything else."""
        headers = headers_of(scope)
        origin = headers.get(b"origin")
        if origin is None or origin not in self._origins:
            return await app(scope, receive, _marked(send, ()))
        shared = self._shared(origin)
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            head = [*shared, *_terms(headers, methods), _VARY, (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 204, "headers": head})
            return await send({"type": "http.response.body", "body": b""})
        await app(scope, receive, _marked(send, shared))

    def _shared(self, origin: bytes) -> tuple[RawHeader, ...]:
        shared = (b"access-control-allow-origin", origin)
        return (shared, (b"access-control-allow-credentials", b"true")) if origin in self._trusted else (shared,)


def _marked(send: Send, shared: tuple[RawHeader, ...]) -> Send:
    """Return a `send` that adds the headers of sharing to the head of the answer."""

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            head = [*message.get("headers", ()), *shared, _VARY]
            if shared and (readable := _readable(head)):
                head.append((b"access-control-expose-headers", readable))
            message = {**message, "headers": head}
        await send(message)

    return marked


def _readable(head: Iterable[RawHeader]) -> bytes:
    """Return the names of the headers that a page could not read otherwise."""
    names = dict.fromkeys(name for name, _ in head if not name.startswith(b"access-control-"))
    return b", ".join(name for name in names if name not in _ALWAYS_READABLE and name not in (b"vary", b"set-cookie"))


def _terms(headers: Headers, methods: Iterable[str]) -> list[RawHeader]:
    """Return what a page may send: the methods of the path, and whatever headers it asks for."""
    terms = [
        (b"access-control-allow-methods", ", ".join(methods).encode()),
        (b"access-control-max-age", _MAX_AGE),
    ]
    asked = headers.get(b"access-control-request-headers", b"")
    if _NAMES.fullmatch(asked):
        terms.append((b"access-control-allow-headers", asked))
    return terms


def is_secure(origin: bytes) -> bool:
    """Tell whether nobody on the network between can speak for an origin."""
    return origin.startswith(b"https://") or _LOCAL.fullmatch(origin) is not None
