"""An OpenID Connect issuer: where it answers, and the keys that it signs with at present."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from frontdesk import loggers
from frontdesk.clock import Clock
from frontdesk.errors import UnavailableError
from frontdesk.errors.extras import install_hint
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.auth.provider import RETRY_SECONDS, ProviderHttp, provider_url, unavailable

if TYPE_CHECKING:
    from joserfc.jwk import Key

CACHE_SECONDS: Final = 3600.0
STALE_SECONDS: Final = 24 * 3600.0
SHORTEST_RSA: Final = 2048
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
    """Raise an error that says what to install, if the libraries for tokens are missing."""
    try:
        import authlib  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs]
        import joserfc  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ImportError(f"{what} needs Authlib and joserfc: {install_hint('oauth')}") from error


def discovery_url(issuer: str) -> str:
    """Return the URL of an issuer's discovery document."""
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of an issuer."""

    key: "Key" = field(repr=False)
    kid: str | None
    alg: str | None
    kind: tuple[str, str]
    """Its type and, where it has one, its curve."""
    issuer: str | None
    """The issuer for which it signs, where many tenants share a list of keys."""

    def fits(self, alg: str) -> bool:
        """Tell whether this key can have made a signature of this algorithm."""
        kind, curves = ALGORITHMS[alg]
        return self.alg in (None, alg) and self.kind[0] == kind and (not curves or self.kind[1] in curves)


@dataclass(frozen=True, slots=True)
class Known:
    """The discovery document and the keys of an issuer."""

    document: Mapping[str, Any] = field(repr=False)
    keys: Sequence[SigningKey]

    def endpoint(self, name: str) -> str | None:
        """Return the address of an endpoint, if there is one that may be called."""
        try:
            return provider_url(str(self.document.get(name, "")), name)
        except ValueError:
            return None

    @property
    def auth_methods(self) -> Collection[str]:
        """Return the ways in which a client may present its secret."""
        try:
            return msgspec.convert(self.document.get("token_endpoint_auth_methods_supported", []), list[str])
        except msgspec.ValidationError:
            return []

    @property
    def names_itself(self) -> bool:
        """Tell whether the issuer names itself when it sends a browser back (RFC 9207)."""
        return self.document.get("authorization_response_iss_parameter_supported") is True

    def key(self, kid: str | None, alg: str) -> SigningKey | None:
        """Return the key of a signature; without a key id, the only one that fits."""
        fitting = [key for key in self.keys if key.fits(alg) and kid in (None, key.kid)]
        return fitting[0] if len(fitting) == 1 else None


class Issuer:
    """Loads the document and the keys of an issuer when they are needed, and caches them.

    Keys are good for `cache_seconds`; an unknown key id loads them again, at most every `retry_seconds`.
    While the issuer can't be reached the last keys stay in use, for `stale_seconds` since they were loaded.
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
        """Return until when the cached keys need not be loaded again, by the steady clock."""
        return self._asked_at + self._retry_seconds if self._failed else self._loaded_at + self._cache_seconds

    async def known(self) -> Known:
        """Return the document and the keys; raise `UnavailableError` if they can't be loaded."""
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
        """Return the key of a signature; load the keys again if it is not among them."""
        key = (await self.known()).key(kid, alg)
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
        """Start loading, unless that was done a moment ago."""
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
            loggers.http.warning("what is at %s is not the document of the issuer %s", self._url, self.issuer)
            raise unavailable()
        return answer.body

    async def _keys(self, document: Mapping[str, Any]) -> Sequence[SigningKey]:
        try:
            answer = await self._http.get(provider_url(str(document.get("jwks_uri", "")), "jwks_uri"))
            listed = msgspec.convert(answer.body.get("keys"), list[dict[str, Any]])
        except ValueError:
            loggers.http.warning("the issuer %s has no list of keys where it says", self.issuer)
            raise unavailable() from None
        return [key for jwk in listed if (key := signing_key(jwk)) is not None]


def signing_key(jwk: dict[str, Any]) -> SigningKey | None:
    """Read a key of a list; `None` unless it is a public one that tokens can be signed with."""
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
        if isinstance(key, RSAKey) and key.public_key.key_size < SHORTEST_RSA:
            return None
    except (JoseError, ValueError, TypeError, KeyError):
        # Providers list keys of kinds that the library does not know; the others are still good.
        return None
    curve, kid, alg, issuer = (_text(jwk.get(name)) for name in ("crv", "kid", "alg", "issuer"))
    return SigningKey(key=key, kid=kid, alg=alg, kind=(kind, curve or ""), issuer=issuer)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
