"""Decides which servers belong to a platform. The platform's token is sent to no other server."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from frontdesk import loggers
from frontdesk.errors import PushError, PushRefusedError
from frontdesk.outbound.network import is_address, is_public, plain_host, resolve

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

MAX_URL_LENGTH = 8192
_MAX_CACHED_URL_LENGTH = 256
"""The length of a URL whose server is remembered."""
MAX_ADDRESSES = 4
"""The number of addresses of a host that are tried."""
_KNOWN_SECONDS = 60.0
_MAX_KNOWN = 256
_PORTS = {"https": 443, "http": 80, "wss": 443, "ws": 80}
_SECURE = ("https", "wss")


@dataclass(frozen=True, slots=True)
class Origin:
    host: str
    port: int
    secure: bool

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


class PlatformHosts:
    """The servers of one platform.

    Each is a URL without a path: `https://slack.com`, `https://*.discord.gg` for all subdomains,
    `http://127.0.0.1:8081` for a server on this machine. A host with a non-public address, or without TLS, is called
    only with `allow_private`. A host without TLS and with a public address is never called.
    """

    def __init__(self, servers: Collection[str], *, allow_private: bool = False, resolve: Resolve = resolve) -> None:
        if isinstance(servers, str) or not servers:
            raise ValueError("platform servers must be one or more URLs such as https://slack.com")
        self._exact: set[Origin] = set()
        self._below: set[Origin] = set()
        for server in servers:
            self._add(server, allow_private)
        self._allow_private = allow_private
        self._resolve = resolve
        self._known: dict[Origin, tuple[float, Sequence[str]]] = {}

    @property
    def has_wildcards(self) -> bool:
        """Return True if any host is a wildcard, so that its name is not known in advance."""
        return bool(self._below)

    def _add(self, server: str, allow_private: bool) -> None:
        parts = urlsplit(server)
        wildcard = parts.netloc.startswith("*.")
        origin = _origin(urlsplit(server.replace("*.", "", 1)) if wildcard else parts)
        if origin is None or parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError(f"invalid platform server {server!r}: write it as https://slack.com")
        if not origin.secure and not allow_private:
            raise ValueError(f"{server!r} must begin with https or wss, or set allow_private")
        (self._below if wildcard else self._exact).add(origin)

    def get_origin(self, url: str) -> Origin:
        """Return the server of a URL. Reject servers of other platforms."""
        origin = _read_origin(url) if len(url) <= _MAX_CACHED_URL_LENGTH else _read_origin.__wrapped__(url)
        if origin is not None and (origin in self._exact or self._is_below(origin)):
            return origin
        raise PushRefusedError("The URL does not belong to the platform.", code="host_refused")

    def _is_below(self, origin: Origin) -> bool:
        return any(
            origin.host.endswith(f".{parent.host}") and (origin.port, origin.secure) == (parent.port, parent.secure)
            for parent in self._below
        )

    async def addresses(self, origin: Origin) -> Sequence[str]:
        """Return the addresses of a server, best first. All must be public, unless others are allowed."""
        if is_address(origin.host):
            return self._check(origin, [origin.host])
        now = asyncio.get_running_loop().time()
        until, addresses = self._known.get(origin, (0.0, ()))
        if now < until:
            return addresses
        try:
            found = await self._resolve(origin.host, origin.port)
        except OSError as error:
            raise PushError(f"The platform's host is unknown: {type(error).__name__}.", code="unreachable") from None
        addresses = self._check(origin, found)
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[origin] = (now + _KNOWN_SECONDS, addresses)
        return addresses

    def _check(self, origin: Origin, addresses: Sequence[str]) -> Sequence[str]:
        if not addresses:
            raise PushError("The platform's host has no address.", code="unreachable")
        if not self._allow_private and not all(map(is_public, addresses)):
            loggers.http.warning("platform host resolves to a private address, call refused: host=%s", origin.host)
            raise PushError("The platform's host resolves to an address that is not public.", code="address_refused")
        if not origin.secure and any(map(is_public, addresses)):
            # The token would cross the internet in plain text.
            loggers.http.warning("platform URL without TLS, call refused; use https: host=%s", origin.host)
            raise PushError("The platform's host has a public address and no TLS.", code="address_refused")
        return addresses[:MAX_ADDRESSES]

    def prefer(self, origin: Origin, address: str) -> None:
        """Try an address first from now on, because it accepted a connection."""
        until, addresses = self._known.get(origin, (0.0, ()))
        if address in addresses[1:]:
            others = [each for each in addresses if each != address]
            self._known[origin] = (until, [address, *others])

    def forget(self, origin: Origin) -> None:
        """Resolve a server again at the next call, because none of its addresses accepted a connection."""
        self._known.pop(origin, None)


# Nearly all calls of a platform have one of a few URLs.
@lru_cache(maxsize=64)
def _read_origin(url: str) -> Origin | None:
    """Return the server of a URL, or None if it is invalid or parsers disagree about it."""
    # A URL may come from the platform itself; parsers differ about these characters.
    odd = len(url) > MAX_URL_LENGTH or not url.isprintable() or " " in url or "\\" in url
    return None if odd else _origin(urlsplit(url))


def _origin(parts: SplitResult) -> Origin | None:
    try:
        port = parts.port
        host = plain_host(parts.hostname or "")
    except ValueError:
        return None
    if host is None or parts.scheme not in _PORTS or parts.username is not None or parts.password is not None:
        return None
    return Origin(host, port or _PORTS[parts.scheme], parts.scheme in _SECURE)
