"""OpenID Connect issuers: their discovery documents and current signing keys."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlencode, urlsplit

import msgspec

from frontdesk import loggers
from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.errors import UnavailableError
from frontdesk.errors.base import install_hint
from frontdesk.outbound.log_filter import quiet

if TYPE_CHECKING:
    import ssl

    import httpx
    from joserfc.jwk import Key


MAX_ANSWER_BYTES: Final = 512 * 1024
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
    """The response of a provider. Its body often is a secret."""

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
        """Return the JSON object at a URL, for any status code."""
        return await self._call("GET", url, headers or {}, b"")

    async def post(
        self, url: str, form: str | Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> ProviderResponse:
        """Post a form and return the JSON object of the response, for any status code."""
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
                        return ProviderResponse(response.status_code, _decode(await _read(response)))
                    finally:
                        await response.aclose()
        except (httpx.TransportError, TimeoutError, OSError) as error:
            loggers.http.warning("identity provider unreachable: url=%s: %s", host, type(error).__name__)
        except _UnusableError as error:
            loggers.http.warning("invalid response of the identity provider: url=%s: %s", host, error)
        # Without a cause: the errors of others quote what was sent.
        raise unavailable() from None

    def _transport(self) -> "httpx.AsyncHTTPTransport":
        import httpx

        if self._ssl is None:
            self._ssl = httpx.create_ssl_context(trust_env=False)
        # Used without its client, which would log every URL, follow redirects and keep cookies.
        return httpx.AsyncHTTPTransport(verify=self._ssl, trust_env=False, proxy=self._proxy)


class _UnusableError(Exception):
    """An unusable response."""


async def _read(response: "httpx.Response") -> bytes:
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
        raise _UnusableError("it has an unsupported content encoding")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise _UnusableError(f"it has more than {MAX_ANSWER_BYTES} bytes")
    return bytes(body)


def _decode(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _UnusableError("it is not a JSON object") from None


def unavailable(retry_after: float = RETRY_SECONDS) -> UnavailableError:
    """Return the error for callers who cannot be checked at the moment."""
    message = "The identity provider can't be reached at the moment."
    return UnavailableError(message, code="provider_unavailable", retry_after=retry_after)


def provider_url(url: str, what: str) -> str:
    """Return the URL if it is allowed for a provider: https, or plain http to this machine."""
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    odd = parts.username is not None or parts.fragment or not url.isprintable() or any(char in url for char in " |\\")
    if not parts.hostname or odd or not (parts.scheme == "https" or local):
        raise ValueError(f"{what} must be an https URL without user name or fragment")
    return url


CACHE_SECONDS: Final = 3600.0
STALE_SECONDS: Final = 24 * 3600.0
MIN_RSA_BITS: Final = 2048
_OK = 200

# What a signature needs; symmetric ones are not here, so that a public key can't be taken for a shared secret.
ALGORITHMS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    **{f"{kind}{size}": ("RSA", ()) for kind in ("RS", "PS") for size in (256, 384, 512)},
    "ES256": ("EC", ("P-256",)),
    "ES384": ("EC", ("P-384",)),
    "ES512": ("EC", ("P-521",)),
    "EdDSA": ("OKP", ("Ed25519", "Ed448")),
    "Ed25519": ("OKP", ("Ed25519",)),
}


def need(what: str) -> None:
    """Raise an error with install instructions if the token libraries are missing."""
    try:
        import authlib  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs]
        import joserfc  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ImportError(f"{what} needs Authlib and joserfc: {install_hint('oauth')}") from error


def discovery_url(issuer: str) -> str:
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class SigningKey:
    key: "Key" = field(repr=False)
    kid: str | None
    alg: str | None
    kind: tuple[str, str]
    """Its type and, where it has one, its curve."""
    issuer: str | None
    """The issuer for which it signs, where many tenants share a list of keys."""
    endorsements: tuple[str, ...] = ()
    """The channels of Azure Bot Service for which it may sign."""

    def fits(self, alg: str) -> bool:
        kind, curves = ALGORITHMS[alg]
        return self.alg in (None, alg) and self.kind[0] == kind and (not curves or self.kind[1] in curves)


@dataclass(frozen=True, slots=True)
class Known:
    """The discovery document and the keys of an issuer."""

    document: Mapping[str, Any] = field(repr=False)
    keys: Sequence[SigningKey]

    def endpoint(self, name: str) -> str | None:
        """Return the URL of an endpoint, or None if it is missing or not allowed."""
        try:
            return provider_url(str(self.document.get(name, "")), name)
        except ValueError:
            return None

    @property
    def auth_methods(self) -> Collection[str]:
        """Return the supported client authentication methods."""
        try:
            return msgspec.convert(self.document.get("token_endpoint_auth_methods_supported", []), list[str])
        except msgspec.ValidationError:
            return []

    @property
    def names_itself(self) -> bool:
        """Return True if the issuer sends its name in the redirect (RFC 9207)."""
        return self.document.get("authorization_response_iss_parameter_supported") is True

    def key(self, kid: str | None, alg: str) -> SigningKey | None:
        """Return the key of a signature. Without a key id, return the only matching key."""
        fitting = [key for key in self.keys if key.fits(alg) and kid in (None, key.kid)]
        return fitting[0] if len(fitting) == 1 else None


class Issuer:
    """Loads and caches the document and the keys of an issuer on demand.

    Keys are valid for `cache_seconds`. An unknown key id reloads them, at most every `retry_seconds`. While the issuer
    is unreachable the last keys stay in use, up to `stale_seconds` after they were loaded.
    """

    def __init__(
        self,
        issuer: str,
        *,
        http: ProviderHttp,
        clock: Clock,
        url: str | None = None,
        cache_seconds: float = CACHE_SECONDS,
        stale_seconds: float = STALE_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self.issuer = issuer
        self._url = provider_url(url or discovery_url(issuer), "the issuer")
        self._http, self._clock = http, clock
        self._cache_seconds, self._retry_seconds = cache_seconds, retry_seconds
        self._stale_seconds = max(stale_seconds, cache_seconds)
        self._known: Known | None = None
        self._loaded_at = self._asked_at = float("-inf")
        self._failed = False
        self._loading: asyncio.Task[None] | None = None

    @property
    def fresh_until(self) -> float:
        """Return the end of the cache lifetime, by the steady clock."""
        return self._asked_at + self._retry_seconds if self._failed else self._loaded_at + self._cache_seconds

    async def load(self) -> Known:
        """Return the document and the keys. Raise `UnavailableError` if they cannot be loaded."""
        now = self._clock.steady()
        if self._known is not None and now < self.fresh_until:
            return self._known
        if self._failed and now < self._loaded_at + self._stale_seconds:
            # It could not be reached a moment ago: the request does not wait for another attempt.
            self._load(now)
        else:
            await self._renew(now)
        return self._usable()

    async def key(self, kid: str | None, alg: str) -> SigningKey | None:
        """Return the key of a signature. An unknown key id reloads the keys."""
        key = (await self.load()).key(kid, alg)
        if key is None:
            await self._renew(self._clock.steady())
            key = self._usable().key(kid, alg)
        return key

    def _usable(self) -> Known:
        now = self._clock.steady()
        if self._known is None or now >= self._loaded_at + self._stale_seconds:
            raise unavailable(max(1.0, self._asked_at + self._retry_seconds - now))
        return self._known

    async def _renew(self, now: float) -> None:
        loading = self._load(now)
        if loading is not None:
            # A caller who leaves must not take the answer from the others who wait for it.
            await asyncio.shield(loading)

    def _load(self, now: float) -> "asyncio.Task[None] | None":
        if self._loading is not None and not self._loading.done():
            return self._loading
        if now - self._asked_at < self._retry_seconds:
            return None
        self._asked_at = now
        self._loading = spawn_clean(self._ask())
        return self._loading

    async def _ask(self) -> None:
        try:
            document = await self._document()
            keys = await self._keys(document)
        except UnavailableError:
            self._failed = True
            return
        self._known = Known(document, keys)
        self._loaded_at = self._clock.steady()
        self._failed = False

    async def _document(self) -> Mapping[str, Any]:
        answer = await self._http.get(self._url)
        if answer.status != _OK or answer.body.get("issuer") != self.issuer:
            loggers.http.warning(
                "discovery document does not match the issuer: url=%s issuer=%s", self._url, self.issuer
            )
            raise unavailable()
        return answer.body

    async def _keys(self, document: Mapping[str, Any]) -> Sequence[SigningKey]:
        try:
            answer = await self._http.get(provider_url(str(document.get("jwks_uri", "")), "jwks_uri"))
            listed = msgspec.convert(answer.body.get("keys"), list[dict[str, Any]])
        except ValueError:
            loggers.http.warning("issuer has no key set at its jwks_uri: issuer=%s", self.issuer)
            raise unavailable() from None
        return [key for jwk in listed if (key := parse_signing_key(jwk)) is not None]


def parse_signing_key(jwk: dict[str, Any]) -> SigningKey | None:
    """Parse a JWK. Return None unless it is a public signing key."""
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    kinds = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
    kind: str = str(jwk.get("kty"))
    if kind not in kinds or jwk.get("use", "sig") != "sig":
        return None
    try:
        if "verify" not in jwk.get("key_ops", ["verify"]):
            return None
        key = kinds[kind].import_key({name: value for name, value in jwk.items() if name not in ("use", "key_ops")})
        if isinstance(key, RSAKey) and key.public_key.key_size < MIN_RSA_BITS:
            return None
    except (JoseError, ValueError, TypeError, KeyError):
        # Providers list keys of kinds that the library does not know; the others are still good.
        return None
    curve, kid, alg, issuer = (_text(jwk.get(name)) for name in ("crv", "kid", "alg", "issuer"))
    listed: Any = jwk.get("endorsements")
    names = cast("list[Any]", listed) if isinstance(listed, list) else []
    endorsements = tuple(name for name in names if isinstance(name, str))
    return SigningKey(key=key, kid=kid, alg=alg, kind=(kind, curve or ""), issuer=issuer, endorsements=endorsements)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
