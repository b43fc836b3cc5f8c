"""Calls to an identity provider.

Every host that is called here was named by the operator: the provider itself, or what the provider's own document
names. No user and no message has a say in it, so that the guarded client is not needed, and a provider inside a
company's network can be reached. What comes back is limited all the same, and nothing is followed.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from frontdesk import loggers
from frontdesk.errors import UnavailableError
from frontdesk.kit.outbound.log_filter import quiet

if TYPE_CHECKING:
    import ssl

    import httpx

LARGEST_ANSWER: Final = 512 * 1024
RETRY_SECONDS: Final = 30.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HEADERS = {
    "User-Agent": "frontdesk",
    "Accept": "application/json",
    # A small compressed answer can be a very large one, so none is asked for and none is taken.
    "Accept-Encoding": "identity",
    "Connection": "close",
}


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    """The response of a provider; its body often is a secret."""

    status: int
    body: Mapping[str, Any] = field(repr=False)


class ProviderHttp:
    """Calls identity providers, with the operator's proxy, certificates and timeout."""

    def __init__(
        self,
        *,
        timeout: float = 10.0,
        proxy: str | None = None,
        ssl_context: "ssl.SSLContext | None" = None,
        max_connections: int = 16,
    ) -> None:
        self._timeout = timeout
        self._proxy = proxy
        self._ssl = ssl_context
        self._slots = asyncio.Semaphore(max_connections)

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> ProviderResponse:
        """Return the JSON object at a URL, whatever the status."""
        return await self._call("GET", url, headers or {}, b"")

    async def post(
        self, url: str, form: str | Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> ProviderResponse:
        """Post a form and return the JSON object of the response, whatever the status."""
        body = form if isinstance(form, str) else urlencode(form)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._call("POST", url, {**kind, **(headers or {})}, body.encode())

    async def _call(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> ProviderResponse:
        import httpx

        host = urlsplit(url).hostname
        try:
            with quiet():
                async with asyncio.timeout(self._timeout), self._slots, self._transport() as transport:
                    request = httpx.Request(method, url, headers={**_HEADERS, **headers}, content=body)
                    response = await transport.handle_async_request(request)
                    try:
                        return ProviderResponse(response.status_code, _decoded(await _read(response)))
                    finally:
                        await response.aclose()
        except (httpx.TransportError, TimeoutError, OSError) as error:
            loggers.http.warning("could not reach the identity provider at %s: %s", host, type(error).__name__)
        except _UnusableError as error:
            loggers.http.warning("an answer of the identity provider at %s can't be used: %s", host, error)
        # Without a cause: the errors of others quote what was sent.
        raise unavailable() from None

    def _transport(self) -> "httpx.AsyncHTTPTransport":
        import httpx

        if self._ssl is None:
            self._ssl = httpx.create_ssl_context(trust_env=False)
        # Used without its client, which would log every URL, follow redirects and keep cookies.
        return httpx.AsyncHTTPTransport(verify=self._ssl, trust_env=False, proxy=self._proxy)


class _UnusableError(Exception):
    """A response that can't be used."""


async def _read(response: "httpx.Response") -> bytes:
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
        raise _UnusableError("it is compressed, though that was not asked for")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise _UnusableError(f"it has more than {LARGEST_ANSWER} bytes")
    return bytes(body)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _UnusableError("it is no JSON object") from None


def unavailable(retry_after: float = RETRY_SECONDS) -> UnavailableError:
    """Make the error for callers who can't be checked at the moment."""
    message = "The identity provider can't be reached at the moment."
    return UnavailableError(message, code="provider_unavailable", retry_after=retry_after)


def provider_url(url: str, what: str) -> str:
    """Return the URL, if a provider can be called there: https, or plain http on this very machine."""
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    odd = parts.username is not None or parts.fragment or not url.isprintable() or any(char in url for char in " |\\")
    if not parts.hostname or odd or not (parts.scheme == "https" or local):
        raise ValueError(f"{what} must be an https URL without user name and fragment")
    return url
