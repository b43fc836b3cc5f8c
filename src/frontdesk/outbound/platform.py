"""The HTTP client of channels for calls to their platform.

The channel defines the servers of its platform, and the token is sent to no other server. Errors and logs contain
neither the token nor a URL, because for some platforms the URL is secret. Redirects are not followed, responses are
bounded, and every failure states whether the request may have arrived.
"""

import asyncio
import hashlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from frontdesk.errors import FileTooLargeError, PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.outbound.http_connection import BrokenResponseError, ConnectionPool, HttpConnection
from frontdesk.outbound.network import resolve
from frontdesk.outbound.platform_hosts import Origin, PlatformHosts, Resolve
from frontdesk.secret import Secret, reveal

if TYPE_CHECKING:
    import ssl


T = TypeVar("T")

CONNECT_SECONDS = 5.0
MAX_POOLS = 64
"""The number of servers with open connections. Names below a wildcard are not known in advance."""
UNREADABLE = "unreadable_response"
"""The code of a response that is too large, compressed or malformed."""
_HEADERS = {
    "User-Agent": "frontdesk",
    "Accept": "*/*",
    # A small compressed response can be a very large one, so none is asked for and none is taken.
    "Accept-Encoding": "identity",
}
_METHOD = re.compile(r"[A-Z]{1,20}")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_IN_TARGET = "!#$%&'()*+,/:;=?@[]~-._"


@dataclass(frozen=True, slots=True)
class PlatformResponse:
    """A platform's response with any status. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        return 200 <= self.status <= 299

    def checked(self, errors: Mapping[int, type[PushError]] | None = None) -> Self:
        """Return the response if it is `ok`. Otherwise raise the `PushError` for its status.

        `errors` has the errors of statuses with a meaning of their own on the platform. Others are those of
        `push_error_from`.
        """
        if self.ok:
            return self
        kind = (errors or {}).get(self.status)
        raise push_error_from(self) if kind is None else kind(f"The platform answered {self.status}.")

    def json(self, kind: type[T]) -> T:
        """Decode the body. Raise `PushUnknownError` if it is invalid, because the request was accepted."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise PushUnknownError("The platform sent an invalid response.", code=UNREADABLE) from None


class PlatformHttp:
    """HTTP client for the servers of one platform, with persistent connections. Bound to one event loop.

    `base_url` and the values of `headers` may be a `Secret`: some platforms expect their token in a header, others in
    the path. `servers` are additional servers of the platform, see `PlatformHosts`: all of them receive the headers.
    Connections are open to at most `MAX_POOLS` servers at a time.
    `timeout` applies to a whole call, and `max_bytes` to a response.

    A request that was not sent raises `PushError`. One that may have arrived raises `PushUnknownError`.
    """

    def __init__(
        self,
        base_url: str | Secret,
        *,
        headers: Mapping[str, str | Secret] | None = None,
        servers: Collection[str] = (),
        timeout: float = 10.0,
        max_bytes: int = 4 * 1024 * 1024,
        max_connections: int = 32,
        allow_private: bool = False,
        ssl_context: "ssl.SSLContext | None" = None,
        resolve: Resolve = resolve,
    ) -> None:
        base = urlsplit(reveal(base_url))
        own = f"{base.scheme}://{base.netloc}"
        self.hosts = PlatformHosts((own, *servers), allow_private=allow_private, resolve=resolve)
        # The path may be the secret, and is not in any attribute that a traceback would show.
        self._base = Secret(f"{own}{base.path.rstrip('/')}")
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._max_connections = max_connections
        self._ssl = ssl_context
        self._pools: dict[Origin, ConnectionPool] = {}

    async def request(
        self,
        method: str,
        url: str,
        *,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
        max_bytes: int | None = None,
    ) -> PlatformResponse:
        """Send a request to a path below `base_url`, or to a full URL of one of the servers.

        `seconds` and `max_bytes` override the client's own limits, for a long poll or a file.
        """
        whole = url if "://" in url else f"{self._base.reveal()}/{url.lstrip('/')}"
        origin = self.hosts.get_origin(whole)
        head = _encode_head(method, whole, origin, {**self._own_headers(), **(headers or {})}, content)
        call = _Call(head, content, self._max_bytes if max_bytes is None else max_bytes, method == "HEAD")
        within = self._timeout if seconds is None else seconds
        try:
            async with asyncio.timeout(within):
                return await self._exchange(origin, call, min(CONNECT_SECONDS, within))
        except BrokenResponseError as error:
            what = str(error)
        except (TimeoutError, OSError) as error:
            what = type(error).__name__
        # Without a cause: errors of the connection may quote what was sent.
        if call.sent:
            raise PushUnknownError(f"No response from the platform: {what}.")
        raise PushError(f"The platform can't be reached: {what}.", code="unreachable")

    async def download(self, url: str, *, max_bytes: int) -> bytes:
        """Return the bytes of a file. Raise `FileTooLargeError` if there are more than `max_bytes`."""
        try:
            return (await self.request("GET", url, max_bytes=max_bytes)).checked().body
        except PushUnknownError as error:
            if error.code == UNREADABLE:
                raise FileTooLargeError(max_bytes) from None
            raise

    def _own_headers(self) -> dict[str, str]:
        return {**_HEADERS, **{name: reveal(value) for name, value in self._headers.items()}}

    async def _exchange(self, origin: Origin, call: "_Call", connect_seconds: float) -> PlatformResponse:
        addresses = await self.hosts.addresses(origin)
        pool = self._pools.get(origin) or self._add_pool(origin)
        pool.users += 1
        try:
            async with pool.slots:
                connection = pool.take(addresses) or await self._connect(pool, origin, connect_seconds)
                call.sent = True
                response = await connection.exchange(
                    call.head, call.content, call.max_bytes, without_body=call.is_without_body
                )
                pool.put(connection)
        finally:
            pool.users -= 1
        if response.body is None and 200 <= response.status <= 299:
            raise PushUnknownError(
                "The platform's response is too large or has an unsupported content encoding.", code=UNREADABLE
            )
        return PlatformResponse(response.status, response.headers, response.body or b"")

    def _add_pool(self, origin: Origin) -> ConnectionPool:
        """Return a new pool for a server, instead of the oldest unused one if there are too many.

        In a shared pool, a connection that was verified for one name would serve another at the same address.
        """
        if len(self._pools) >= MAX_POOLS:
            unused = next((known for known, pool in self._pools.items() if not pool.users), None)
            if unused is None:
                raise PushLimitedError("Too many servers are in use at once.", code="too_many_servers", retry_after=1.0)
            self._pools.pop(unused).close()
        pool = self._pools[origin] = ConnectionPool(self._max_connections)
        return pool

    async def _connect(self, pool: ConnectionPool, origin: Origin, seconds: float) -> HttpConnection:
        """Return a connection to the first address that accepts one."""
        addresses = await self.hosts.addresses(origin)
        tls = self._tls() if origin.secure else None
        for address in addresses:
            try:
                async with asyncio.timeout(seconds):
                    connection = await pool.connect(address, origin.port, tls, origin.host if origin.secure else None)
            except OSError:
                if address == addresses[-1]:
                    self.hosts.forget(origin)
                    raise
            else:
                self.hosts.prefer(origin, address)
                return connection
        raise PushError("The platform's host has no address.", code="unreachable")

    def _tls(self) -> "ssl.SSLContext":
        if self._ssl is None:
            import httpx

            self._ssl = httpx.create_ssl_context(trust_env=False)
            self._ssl.set_alpn_protocols(["http/1.1"])
        return self._ssl

    async def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.close()


class _Call:
    __slots__ = ("content", "head", "is_without_body", "max_bytes", "sent")

    def __init__(self, head: bytes, content: bytes, max_bytes: int, is_without_body: bool) -> None:
        self.head, self.content, self.max_bytes, self.is_without_body = head, content, max_bytes, is_without_body
        self.sent = False


def _encode_head(method: str, url: str, origin: Origin, headers: Mapping[str, str], content: bytes) -> bytes:
    """Encode the head of a request. Only the path and the query of the URL are used: `origin` was validated."""
    target = url.split("://", 1)[1].partition("#")[0]
    start = min((target.find(mark) for mark in "/?" if mark in target), default=len(target))
    path = quote(target[start:], safe=_IN_TARGET)
    lines = [f"{method} {path if path.startswith('/') else '/' + path} HTTP/1.1", f"Host: {origin.netloc}"]
    for name, value in headers.items():
        if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise PushRefusedError("A header has invalid characters.", code="invalid_header")
        lines.append(f"{name}: {value}")
    if _METHOD.fullmatch(method) is None:
        raise PushRefusedError("The HTTP method is invalid.", code="invalid_method")
    if content or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join((*lines, "\r\n")).encode("latin-1")


MAX_WAIT_SECONDS = 86_400.0


def push_error_from(
    response: PlatformResponse, *, code: str | None = None, everywhere: bool | None = None
) -> PushError:
    """Create the error for a response.

    `code` is the platform's error code. `everywhere` is True if a wait applies to the whole bot. 429 requires a wait.
    408 and 504 leave unknown whether the request arrived. Other 4xx and redirects are permanent. Other 5xx may be
    retried. The message has no part of the body.
    """
    status = response.status
    named = code or f"status_{status}"
    text = f"The platform answered {status}, {named}."
    if status == 429:
        whole = _is_global(response) if everywhere is None else everywhere
        return PushLimitedError(text, code=named, retry_after=parse_retry_after(response), everywhere=whole)
    if status in (408, 504):
        return PushUnknownError(text, code=named)
    if status < 500:
        return PushRefusedError(text, code=named)
    return PushError(text, code=named, retry_after=parse_retry_after(response), everywhere=bool(everywhere))


def parse_retry_after(response: PlatformResponse) -> float | None:
    """Return the wait in seconds that a response requests, or `None` if it has none.

    The header has seconds or a date. In JSON the field is `retry_after`, at the top level, under `parameters` or under
    `error`.
    """
    named = _seconds(response.headers.get("retry-after"), response.headers.get("date"))
    if named is not None:
        return named
    body = _object(response.body)
    for place in (body, body.get("parameters"), body.get("error")):
        if isinstance(place, dict) and (wait := _limit_wait(place.get("retry_after"))) is not None:  # pyright: ignore[reportUnknownMemberType]
            return wait
    return None


def _seconds(given: str | None, date: str | None) -> float | None:
    if given is None:
        return None
    try:
        return _limit_wait(float(given))
    except ValueError:
        pass
    try:
        # By the platform's own clock, which ours need not agree with.
        until, now = parsedate_to_datetime(given), parsedate_to_datetime(date or "")
        return _limit_wait(max((until - now).total_seconds(), 0.0))
    except (ValueError, TypeError):
        return None


def _limit_wait(wait: Any) -> float | None:
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not math.isfinite(wait) or wait < 0:
        return None
    return min(float(wait), MAX_WAIT_SECONDS)


def _is_global(response: PlatformResponse) -> bool:
    header = response.headers.get("x-ratelimit-global", "").lower() == "true"
    return header or _object(response.body).get("global") is True


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


class FormFile(NamedTuple):
    field: str
    name: str
    media_type: str
    data: bytes


def encode_form(fields: Mapping[str, str], files: Sequence[FormFile]) -> tuple[str, bytes]:
    """Return the content type and the body of a form.

    The boundary is a digest of the form's content, so that no part can contain it.
    """
    parts = [(_head(f'name="{_quote(name)}"'), value.encode("utf-8", "replace")) for name, value in fields.items()]
    for file in files:
        about = f'name="{_quote(file.field)}"; filename="{_quote(file.name)}"'
        parts.append((_head(about, file.media_type), file.data))
    whole = hashlib.sha256()
    for head, data in parts:
        whole.update(head)
        whole.update(data)
    boundary = f"frontdesk-{whole.hexdigest()}"
    mark = f"--{boundary}".encode()
    body = b"".join(mark + b"\r\n" + head + data + b"\r\n" for head, data in parts)
    return f"multipart/form-data; boundary={boundary}", body + mark + b"--\r\n"


def _head(about: str, media_type: str = "") -> bytes:
    lines = [f"Content-Disposition: form-data; {about}"]
    if media_type:
        lines.append(f"Content-Type: {_token(media_type)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def _quote(text: str) -> str:
    """Escape a header parameter as browsers do. It cannot contain a line break."""
    plain = "".join(character if character.isprintable() else "_" for character in text)
    return plain.replace('"', "%22")


def _token(text: str) -> str:
    return "".join(character for character in text if character.isascii() and character.isprintable())
