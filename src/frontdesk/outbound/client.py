"""`GuardedClient`: the only HTTP client for URLs from users or messages.

A name is resolved once, every resolved address is checked, and the client connects to a checked address. TLS and the
`Host` header keep the name. Each redirect is a new URL and gets the same checks. Proxies are not used, because a proxy
would resolve the name again and bypass the checks.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from frontdesk import loggers
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.errors import InvalidRequestError, TooManyRequestsError
from frontdesk.errors.sizes import format_size
from frontdesk.outbound.log_filter import quiet
from frontdesk.outbound.network import AllowedHosts, is_address, is_public, is_web_port, plain_host, resolve

if TYPE_CHECKING:
    import ssl

    import httpx


MAX_WAITING = 32
"""The number of pieces of work of one caller that may wait for a slot."""


class _Share:
    """The slots of one caller, and the number of work items that use or await them."""

    __slots__ = ("slots", "users", "waiting")

    def __init__(self, most: int) -> None:
        self.slots = asyncio.Semaphore(most)
        self.users = 0
        self.waiting = 0


class Slot:
    __slots__ = ("_lasting",)

    def __init__(self) -> None:
        self._lasting: set[asyncio.Task[Any]] = set()

    def lasts(self, task: "asyncio.Task[Any]") -> None:
        """Hold the caller's share until a task has ended too, even if the work is cancelled earlier."""
        self._lasting.add(task)

    def list_unfinished(self) -> "list[asyncio.Task[Any]]":
        return [task for task in self._lasting if not task.done()]


class Slots:
    """Grants slots. A caller who has used up their share waits for it and delays no other caller."""

    def __init__(self, most: int, *, most_each: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._most_each = most_each
        self._shares: dict[Hashable, _Share] = {}

    @asynccontextmanager
    async def hold(self, caller: Hashable) -> AsyncGenerator[Slot]:
        """Wait for a slot and hold it. Reject immediately if too much of the caller's work waits already."""
        share = self._shares.get(caller)
        if share is None:
            share = self._shares[caller] = _Share(self._most_each)
        if share.waiting >= MAX_WAITING:
            raise TooManyRequestsError("Too many of your URLs are waiting to be fetched.", retry_after=1.0)
        share.users += 1
        slot = Slot()
        try:
            await self._take(share)
        except BaseException:
            self._leave(caller, share)
            raise
        try:
            yield slot
        finally:
            self._all.release()
            self._end(caller, share, slot)

    async def _take(self, share: _Share) -> None:
        share.waiting += 1
        try:
            # The caller's own first: so one caller never has more than their share waiting ahead of the others.
            await share.slots.acquire()
            try:
                await self._all.acquire()
            except BaseException:
                share.slots.release()
                raise
        finally:
            share.waiting -= 1

    def _end(self, caller: Hashable, share: _Share, slot: Slot) -> None:
        left = slot.list_unfinished()
        if left:
            left[0].add_done_callback(lambda _: self._end(caller, share, slot))
            return
        share.slots.release()
        self._leave(caller, share)

    def _leave(self, caller: Hashable, share: _Share) -> None:
        share.users -= 1
        if not share.users:
            del self._shares[caller]


ANY_TYPE = "application/octet-stream"
"""The media type of a file of which nothing is known."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
_MEDIA_TYPE = re.compile(f"{_NAME}/{_NAME}")
_SECONDS = re.compile(r"[0-9]{1,9}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE = re.compile(r"[ -~]+")


def is_media_type(text: str) -> bool:
    return _MEDIA_TYPE.fullmatch(text) is not None


def bare_media_type(given: str) -> str:
    """Return a header's media type in lower case without parameters, or `ANY_TYPE` if it is invalid."""
    kind = given.partition(";")[0].strip().lower()
    return kind if is_media_type(kind) else ANY_TYPE


T = TypeVar("T")
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

MAX_URL_LENGTH: Final = 8192
CONNECT_SECONDS: Final = 5.0
# The name server of a stranger can return thousands; all are checked, and this many are tried.
MAX_ADDRESSES: Final = 4

_USUAL_PORTS = {"https": 443, "http": 80}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": "frontdesk",
    "Accept": "*/*",
    # A small compressed answer can be a very large one, so none is asked for and none is taken.
    "Accept-Encoding": "identity",
    "Connection": "close",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """The content of a URL. `url` is the final URL after all redirects."""

    body: bytes = field(repr=False)
    media_type: str
    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Place:
    """A URL that may be fetched if its addresses are also allowed."""

    url: "httpx.URL"
    host: str
    port: int
    trusted: bool


@dataclass(frozen=True, slots=True)
class _Sent:
    """The method, the further headers and the body of a request."""

    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: bytes = field(default=b"", repr=False)


_GET = _Sent()


@dataclass(frozen=True, slots=True)
class Posted:
    """The response to a POST. Its body is not read."""

    status: int
    retry_after: float | None
    """The seconds of the `Retry-After` header, if it has a number of them."""


class GuardedClient:
    """Requests untrusted URLs, and refuses those that only the host can reach. Bound to one event loop.

    `allowed_hosts` are internal hosts that may be fetched anyway, see `AllowedHosts`. `timeout` and `max_bytes` apply
    to a whole fetch, including redirects and the wait for a connection. One caller uses at most
    `max_connections_per_caller` of the connections, so that slow URLs delay only the caller who names them.

    Every failure is a displayable `InvalidRequestError` (`url_refused`, `url_unreachable` or `url_too_large`), or a
    `TooManyRequestsError` if no connection became free in time.
    """

    def __init__(
        self,
        *,
        allowed_hosts: Collection[str] = (),
        allow_http: bool = False,
        max_bytes: int = 20 * 1024 * 1024,
        timeout: float = 20.0,
        max_redirects: int = 3,
        max_connections: int = 16,
        max_connections_per_caller: int = 4,
        ssl_context: "ssl.SSLContext | None" = None,
        resolve: Resolve = resolve,
    ) -> None:
        self._allowed = AllowedHosts(allowed_hosts)
        self._schemes = ("https", "http") if allow_http else ("https",)
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._max_redirects = max_redirects
        self._slots = Slots(max_connections, most_each=max_connections_per_caller)
        self._ssl = ssl_context
        self._resolve = resolve

    async def fetch(self, url: str, *, caller: Hashable) -> Fetched:
        """Fetch the body of a URL, using the connection share of `caller`."""
        place = self._check(url)
        return await self._within_limits(caller, lambda slot: self._follow(place, slot))

    async def post(self, url: str, body: bytes, *, headers: Mapping[str, str], caller: Hashable) -> Posted:
        """Send a body to a URL, using the connection share of `caller`. Redirects are returned and not followed.

        The body of the response is not read. The headers must be valid, see `check_headers`.
        """
        place, sent = self._check(url), _Sent("POST", headers, body)
        return await self._within_limits(caller, lambda slot: self._post(place, sent, slot))

    def check(self, url: str) -> None:
        """Raise an `InvalidRequestError` for a URL that is refused regardless of the addresses of its host's name."""
        place = self._check(url)
        if not place.trusted and is_address(place.host) and not is_public(place.host):
            raise _build_refusal("The URL's host is not a public address.")

    async def _within_limits(self, caller: Hashable, work: Callable[[Slot], Awaitable[T]]) -> T:
        slot: Slot | None = None
        try:
            # The query of a redirect is often a key.
            with quiet():
                async with asyncio.timeout(self._timeout), self._slots.hold(caller) as slot:
                    return await work(slot)
        except TimeoutError:
            if slot is None:
                raise TooManyRequestsError("Too many URLs are being fetched.", retry_after=1.0) from None
            raise _unreachable(f"The URL took longer than {self._timeout:g} seconds.") from None

    async def _follow(self, place: _Place, slot: Slot) -> Fetched:
        import httpx

        try:
            for _ in range(self._max_redirects + 1):
                async with self._open(place, slot) as response:
                    if response.status_code not in _REDIRECTS:
                        return await self._read(place, response)
                    place = self._redirect(place, response.headers.get("location", ""))
        except httpx.TransportError as error:
            loggers.http.info("fetch failed: url=%s: %s", place.host, type(error).__name__)
            # Other errors quote what the server sent.
            cause = error if isinstance(error, httpx.ConnectError) else None
            raise _unreachable("The URL's server can't be reached, or closed the connection early.") from cause
        raise _build_refusal("The URL has too many redirects.")

    async def _post(self, place: _Place, sent: _Sent, slot: Slot) -> Posted:
        import httpx

        try:
            async with self._open(place, slot, sent) as response:
                after = response.headers.get("retry-after", "")
                seconds = float(after) if _SECONDS.fullmatch(after) else None
                return Posted(response.status_code, seconds)
        except httpx.TransportError as error:
            loggers.http.info("post failed: url=%s: %s", place.host, type(error).__name__)
            raise _unreachable("The URL's server can't be reached, or broke off its answer.") from None

    def _check(self, url: str, base: "httpx.URL | None" = None) -> _Place:
        parsed, host = _parse(url, base)
        if parsed.scheme not in self._schemes:
            raise _build_refusal(f"Only {' and '.join(self._schemes)} URLs are supported.")
        if parsed.userinfo:
            raise _build_refusal("The URL must not contain a user name or password.")
        if host is None:
            raise _build_refusal("The URL's host is missing or invalid.")
        usual = _USUAL_PORTS[parsed.scheme]
        port = usual if parsed.port is None else parsed.port
        trusted = self._allowed.has(host, port, usual=port == usual)
        if not trusted and not is_web_port(port):
            raise _build_refusal("The URL's port is not allowed.")
        return _Place(url=parsed, host=host, port=port, trusted=trusted)

    def _redirect(self, place: _Place, location: str) -> _Place:
        if not location:
            raise _unreachable("The URL's redirect has no valid location.")
        target = self._check(location, base=place.url)
        if place.url.scheme == "https" and target.url.scheme != "https":
            raise _build_refusal("The URL redirects from https to http.")
        return target

    @asynccontextmanager
    async def _open(self, place: _Place, slot: Slot, sent: _Sent = _GET) -> "AsyncGenerator[httpx.Response]":
        import httpx

        if self._ssl is None:
            self._ssl = httpx.create_ssl_context(trust_env=False)
        addresses = await self._addresses(place, slot)
        # A transport of its own for each request: in a shared pool, a connection that was verified for one name would
        # serve another at the same address. It sends no cookies and no credentials, follows nothing, decodes nothing.
        async with httpx.AsyncHTTPTransport(verify=self._ssl, trust_env=False) as transport:
            response = await _send(transport, place, addresses[:MAX_ADDRESSES], sent)
            try:
                yield response
            finally:
                await response.aclose()

    async def _addresses(self, place: _Place, slot: Slot) -> Sequence[str]:
        """Return the addresses of a host if all are public. A mix of public and private ones is an attack."""
        try:
            addresses = [place.host] if is_address(place.host) else await self._look_up(place, slot)
            bad = "" if place.trusted else next((address for address in addresses if not is_public(address)), "")
        except OSError as error:
            addresses, bad = [], str(error)
        if addresses and not bad:
            return addresses
        loggers.http.info("fetch refused: url=%s: %s", place.host, bad or "it has no address")
        # The same message for both, so that it does not reveal which internal names exist.
        raise _build_refusal("The URL's host is unknown or not public.")

    async def _look_up(self, place: _Place, slot: Slot) -> Sequence[str]:
        # A task of its own: a look-up can't be cancelled once a thread runs it, and counts until that has ended.
        lookup = spawn_clean(_resolve(self._resolve, place))
        slot.lasts(lookup)
        try:
            return await asyncio.shield(lookup)
        except asyncio.CancelledError:
            lookup.cancel()
            raise

    async def _read(self, place: _Place, response: "httpx.Response") -> Fetched:
        if not 200 <= response.status_code <= 299:
            raise _unreachable(f"The URL's server answered with status {response.status_code}.")
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise _unreachable("The URL's server sent an unsupported content encoding.")
        if int(response.headers.get("content-length", 0)) > self._max_bytes:
            raise self._too_large()
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._max_bytes:
                raise self._too_large()
        return Fetched(bytes(body), bare_media_type(response.headers.get("content-type", "")), str(place.url))

    def _too_large(self) -> InvalidRequestError:
        return InvalidRequestError(f"The URL holds more than {format_size(self._max_bytes)}.", code="url_too_large")


async def _resolve(resolve: Resolve, place: _Place) -> Sequence[str]:
    return await resolve(place.host, place.port)


def _parse(url: str, base: "httpx.URL | None") -> "tuple[httpx.URL, str | None]":
    """Return the URL and its plain host, parsed with the parser that also writes the request."""
    import httpx

    # Some parsers drop these and others don't: two of them would read such a URL differently.
    if len(url) > MAX_URL_LENGTH or not url.isprintable() or " " in url or "\\" in url:
        raise _build_refusal(f"The URL has invalid characters or more than {MAX_URL_LENGTH} characters.")
    try:
        parsed = httpx.URL(url) if base is None else base.join(url)
        host = plain_host(parsed.raw_host.decode("ascii"))
        return (parsed if host is None else parsed.copy_with(host=host, fragment=None)), host
    except (httpx.InvalidURL, ValueError):
        raise _build_refusal("The URL is invalid.") from None


async def _send(
    transport: "httpx.AsyncHTTPTransport", place: _Place, addresses: Sequence[str], sent: _Sent
) -> "httpx.Response":
    """Return the response of the first address that accepts the connection."""
    import httpx

    for address in addresses[:-1]:
        with suppress(httpx.ConnectError, httpx.ConnectTimeout):
            return await transport.handle_async_request(_request(place, address, sent))
    return await transport.handle_async_request(_request(place, addresses[-1], sent))


def _request(place: _Place, address: str, sent: _Sent) -> "httpx.Request":
    import httpx

    return httpx.Request(
        sent.method,
        place.url.copy_with(host=address),
        headers={"Host": place.url.netloc.decode("ascii"), **_HEADERS, **sent.headers},
        content=sent.body if sent.method == "POST" else None,
        extensions={"sni_hostname": place.host, "timeout": {"connect": CONNECT_SECONDS}},
    )


MAX_HEADERS: Final = 16
MAX_HEADER_LENGTH: Final = 4096
_OWN_HEADERS = {name.lower() for name in _HEADERS} | {
    *("host", "content-length", "content-type", "transfer-encoding", "te", "trailer", "upgrade", "expect"),
    *("idempotency-key", "keep-alive", "proxy-connection", "proxy-authorization"),
}


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise an `InvalidRequestError` for headers that a POST can't have. The error quotes no values."""
    if len(headers) > MAX_HEADERS:
        raise _build_refusal(f"A URL takes {MAX_HEADERS} headers at most, got {len(headers)}.")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _OWN_HEADERS:
            raise _build_refusal("A header name is invalid, or names a header that the host sets itself.")
        if len(value) > MAX_HEADER_LENGTH or not _HEADER_VALUE.fullmatch(value) or value != value.strip(" "):
            raise _build_refusal(
                f"The value of the header {name} must be printable ASCII, at most {MAX_HEADER_LENGTH}."
            )


def _build_refusal(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, code="url_refused")


def _unreachable(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, code="url_unreachable")
