"""The client with which a channel calls its platform over HTTP.

The servers of a platform are fixed by the channel, and its token is sent to no other. Neither the token nor a URL is in
an error or a log: for some platforms the URL is the secret. Redirects are not followed, responses are bounded, and
every failure says whether the request may have arrived.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from frontdesk.errors import PushError, PushUnknownError
from frontdesk.kit.auth.secrets import Secret, revealed
from frontdesk.kit.outbound.log_filter import quiet
from frontdesk.kit.outbound.network import resolve
from frontdesk.kit.outbound.platform_hosts import Origin, PlatformHosts, Resolve

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

CONNECT_SECONDS = 5.0
_HEADERS = {
    "User-Agent": "frontdesk",
    "Accept": "*/*",
    # A small compressed response can be a very large one, so none is asked for and none is taken.
    "Accept-Encoding": "identity",
}


@dataclass(frozen=True, slots=True)
class PlatformResponse:
    """The response of a platform, whatever its status; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        """Tell whether the platform has accepted the request."""
        return 200 <= self.status <= 299

    def json(self, kind: type[T]) -> T:
        """Decode the body; one that can't be read is a `PushUnknownError`, because the request was accepted."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise PushUnknownError("The platform's response can't be read.", code="unreadable_response") from None


class PlatformHttp:
    """Calls the servers of one platform, over connections that are kept open. One event loop uses it.

    `base_url` and the values of `headers` may be a `Secret`: some platforms want their token in a header, others in the
    path. `servers` are more servers of the platform, see `PlatformHosts`; all of them get the headers. `timeout` is for
    a whole call, and `max_bytes` for a response. A request that was not sent fails with a `PushError`, one that may
    have arrived with a `PushUnknownError`.
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
        base = urlsplit(revealed(base_url))
        own = f"{base.scheme}://{base.netloc}"
        self.hosts = PlatformHosts((own, *servers), allow_private=allow_private, resolve=resolve)
        if self.hosts.has_wildcards:
            raise ValueError("PlatformHttp keeps connections for each server, so that each must be named")
        # The path may be the secret, and is not in any attribute that a traceback would show.
        self._base = Secret(f"{own}{base.path.rstrip('/')}")
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._max_connections = max_connections
        self._ssl = ssl_context
        self._transports: dict[Origin, httpx.AsyncHTTPTransport] = {}

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
        """Send a request to a path below `base_url`, or to a whole URL of one of the servers.

        `seconds` and `max_bytes` take the place of the client's own limits, for a long poll or a file.
        """
        import httpx

        whole = url if "://" in url else f"{self._base.reveal()}/{url.lstrip('/')}"
        origin = self.hosts.origin_of(whole)
        within = self._timeout if seconds is None else seconds
        call = _Call(method, whole, {**self._own_headers(), **(headers or {})}, content, within)
        most = self._max_bytes if max_bytes is None else max_bytes
        try:
            with quiet():
                async with asyncio.timeout(within):
                    return await self._exchange(origin, call, most)
        except (httpx.TransportError, httpx.InvalidURL, TimeoutError, OSError) as error:
            # Without a cause: errors of the client quote what was sent.
            raise call.failure(error) from None

    def _own_headers(self) -> dict[str, str]:
        return {**_HEADERS, **{name: revealed(value) for name, value in self._headers.items()}}

    async def _exchange(self, origin: Origin, call: "_Call", most: int) -> PlatformResponse:
        response = await self._send(origin, call, await self.hosts.addresses(origin))
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            body = await _read(response, most)
        finally:
            await response.aclose()
        if body is None and 200 <= response.status_code <= 299:
            raise PushUnknownError("The platform's response is too large, or compressed.", code="unreadable_response")
        return PlatformResponse(response.status_code, headers, body or b"")

    async def _send(self, origin: Origin, call: "_Call", addresses: Sequence[str]) -> "httpx.Response":
        """Return the response of the first address that takes the connection."""
        import httpx

        transport = self._transport(origin)
        for address in addresses:
            try:
                response = await transport.handle_async_request(call.request(origin, address))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if address == addresses[-1]:
                    self.hosts.forget(origin)
                    raise
            else:
                self.hosts.prefer(origin, address)
                return response
        raise PushError("The platform's host has no address.", code="unreachable")

    def _transport(self, origin: Origin) -> "httpx.AsyncHTTPTransport":
        import httpx

        if self._ssl is None:
            self._ssl = httpx.create_ssl_context(trust_env=False)
        if origin not in self._transports:
            # One for each server: in a shared pool, a connection that was verified for one name would serve another at
            # the same address. Without its client, which would log URLs, follow redirects and keep cookies.
            limits = httpx.Limits(
                max_connections=self._max_connections,
                max_keepalive_connections=self._max_connections,
                keepalive_expiry=30.0,
            )
            self._transports[origin] = httpx.AsyncHTTPTransport(verify=self._ssl, trust_env=False, limits=limits)
        return self._transports[origin]

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        transports, self._transports = self._transports, {}
        for transport in transports.values():
            await transport.aclose()


class _Call:
    """One request, and how far it came."""

    __slots__ = ("_content", "_headers", "_method", "_seconds", "_sent", "_url")

    def __init__(self, method: str, url: str, headers: dict[str, str], content: bytes, seconds: float) -> None:
        self._method, self._url, self._headers = method, url, headers
        self._content, self._seconds = content, seconds
        self._sent = False

    def request(self, origin: Origin, address: str) -> "httpx.Request":
        import httpx

        # Of the URL only the path and the query are used: what was checked says where it goes.
        target = httpx.URL(self._url).raw_path.decode("ascii")
        where = f"[{address}]" if ":" in address else address
        waits = {"connect": min(CONNECT_SECONDS, self._seconds), "pool": self._seconds}
        return httpx.Request(
            self._method,
            f"{'https' if origin.secure else 'http'}://{where}:{origin.port}{target}",
            headers={"Host": origin.netloc, **self._headers},
            content=self._content,
            extensions={"sni_hostname": origin.host, "timeout": waits, "trace": self._trace},
        )

    async def _trace(self, event: str, _: Mapping[str, Any]) -> None:
        # From here on nobody can say what has arrived.
        if event.endswith(".send_request_headers.started"):
            self._sent = True

    def failure(self, error: Exception) -> PushError:
        """Return the error of a call without a response."""
        what = type(error).__name__
        if self._sent:
            return PushUnknownError(f"The platform gave no response: {what}.")
        return PushError(f"The platform can't be reached: {what}.", code="unreachable")


async def _read(response: "httpx.Response", most: int) -> bytes | None:
    """Return the body; `None` if it is too large, or compressed."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
        return None
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)
