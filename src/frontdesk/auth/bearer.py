"""Bearer token authentication, with tokens signed by an OpenID Connect issuer."""

import base64
import binascii
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from frontdesk.asgi.messages import Headers
from frontdesk.auth.oidc import (
    ALGORITHMS,
    CACHE_SECONDS,
    STALE_SECONDS,
    Issuer,
    ProviderHttp,
    SigningKey,
    need,
    provider_url,
)
from frontdesk.clock import Clock, SystemClock
from frontdesk.errors import ForbiddenError, UnauthenticatedError
from frontdesk.interfaces.auth import Principal, ShowsIssuers
from frontdesk.models.identity import ANONYMOUS
from frontdesk.models.settings import check_settings, count_finding, is_finite_number, seconds_finding

if TYPE_CHECKING:
    from joserfc.jws import JWSRegistry


MAX_TOKEN_LENGTH: Final = 16 * 1024
USUAL_ALGORITHMS: Final = ("RS256", "PS256", "ES256")
_ID_TYPES = frozenset({"jwt"})
_ACCESS_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})


def build_refusal(why: str) -> UnauthenticatedError:
    """Return the error for an invalid token. It contains nothing of the token."""
    return UnauthenticatedError(f"The token is not valid: {why}.", code="invalid_token")


class Header(msgspec.Struct, frozen=True):
    """The used fields of a token header. Others, such as key locations, are ignored."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: Any = None


class _Issued(msgspec.Struct, frozen=True):
    iss: str


@dataclass(frozen=True, slots=True)
class Unproved:
    text: str
    header: Header
    issuer: str


def read(token: bytes) -> Unproved:
    if len(token) > MAX_TOKEN_LENGTH:
        raise build_refusal(f"it has more than {MAX_TOKEN_LENGTH} bytes")
    parts = token.split(b".")
    if len(parts) != 3 or not token.isascii():
        raise build_refusal("it is not a signed token")
    try:
        header = msgspec.json.decode(_unpack(parts[0]), type=Header)
        issued = msgspec.json.decode(_unpack(parts[1]), type=_Issued)
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError, RecursionError):
        raise build_refusal("it is not a signed token with an issuer") from None
    return Unproved(text=token.decode("ascii"), header=header, issuer=issued.iss)


def _unpack(part: bytes) -> bytes:
    return base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)


@dataclass(frozen=True, slots=True)
class Rules:
    audience: tuple[str, ...]
    algorithms: tuple[str, ...]
    leeway: int = 60
    types: frozenset[str] = _ACCESS_TYPES

    @classmethod
    def for_access(cls, audience: Sequence[str], algorithms: Sequence[str], leeway: int) -> "Rules":
        return cls(tuple(audience), check_algorithms(algorithms), leeway)

    @classmethod
    def for_identity(cls, client_id: str, algorithms: Sequence[str], leeway: int = 60) -> "Rules":
        return cls((client_id,), check_algorithms(algorithms), leeway, _ID_TYPES)


def check_algorithms(algorithms: Collection[str]) -> tuple[str, ...]:
    """Return the algorithms. Raise unless all of them are asymmetric."""
    if isinstance(algorithms, str) or not algorithms or not all(algorithm in ALGORITHMS for algorithm in algorithms):
        raise ValueError(f"algorithms must be a non-empty list of {', '.join(ALGORITHMS)}")
    return tuple(algorithms)


async def prove(token: Unproved, issuer: Issuer, accepted: Collection[str], rules: Rules, now: float) -> dict[str, Any]:
    """Return the claims of a token if its issuer signed it for us and it is still valid.

    `accepted` are the issuer names that the token may contain.
    """
    header = token.header
    if token.issuer not in accepted:
        raise build_refusal("its issuer is not configured")
    if header.alg not in rules.algorithms:
        raise build_refusal("its signature algorithm is not accepted")
    if header.crit is not None:
        raise build_refusal("its critical header extension is not supported")
    if (header.typ or "jwt").lower() not in rules.types:
        raise build_refusal("its type is not accepted")
    key = await issuer.key(header.kid, header.alg)
    if key is None:
        raise build_refusal("its signing key is unknown")
    claims = _verify_signature(token, key, rules)
    if key.issuer is not None and not _signs_for(key.issuer, claims):
        raise build_refusal("its signing key belongs to another tenant")
    _check(claims, accepted, rules, now)
    return claims


def _signs_for(template: str, claims: Mapping[str, Any]) -> bool:
    return template.replace("{tenantid}", str(claims.get("tid"))) == claims.get("iss")


def _verify_signature(token: Unproved, key: SigningKey, rules: Rules) -> dict[str, Any]:
    from joserfc import jwt
    from joserfc.errors import JoseError

    try:
        return jwt.decode(token.text, key.key, registry=_registry(rules.algorithms)).claims
    except (JoseError, ValueError, TypeError, RecursionError):
        raise build_refusal("its signature is invalid") from None


def _registry(algorithms: Collection[str]) -> "JWSRegistry":
    from joserfc.jws import JWSRegistry

    registry = JWSRegistry(algorithms=list(algorithms), strict_check_header=False)
    # The whole token is bounded already; some providers put their certificate into the header.
    registry.max_header_length = MAX_TOKEN_LENGTH
    return registry


def _check(claims: dict[str, Any], accepted: Collection[str], rules: Rules, now: float) -> None:
    from joserfc.errors import ClaimError, ExpiredTokenError
    from joserfc.jwt import JWTClaimsRegistry

    registry = JWTClaimsRegistry(
        now=int(now),
        leeway=rules.leeway,
        iss={"essential": True, "values": list(accepted)},
        aud={"essential": True, "values": list(rules.audience)},
        exp={"essential": True},
    )
    try:
        registry.validate(claims)
    except ExpiredTokenError:
        raise build_refusal("it has expired") from None
    except ClaimError as error:
        raise build_refusal(f"its claim {error.claim} is wrong or missing") from None


def drop_unverified(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims without an unverified e-mail address, which users can choose freely."""
    verified = claims.get("email_verified") is True or claims.get("xms_edov") in (True, 1, "1", "true")
    return {name: value for name, value in claims.items() if verified or name != "email"}


USUAL_CLAIMS: Final = (
    *("tid", "oid", "azp", "appid", "client_id", "scope", "scp", "roles", "groups"),
    *("email", "email_verified", "name", "preferred_username"),
)
MAX_SUBJECT_LENGTH: Final = 512
_IN_WORDS = ("scope", "scp")


class BearerAuth(ShowsIssuers):
    """`Authorization: Bearer` with a token that an issuer has signed for this host.

    `BearerAuth(issuer="https://login.example.com", audience="api://concierge")`: the keys are discovered from the
    issuer when the first token arrives. With several issuers the principal id is prefixed by its issuer.
    `required_claims` maps claims to the required value, or to several of which one must match.
    """

    name = "bearer"
    gives_claims = True

    def __init__(
        self,
        *,
        issuer: str | Sequence[str],
        audience: str | Sequence[str],
        algorithms: Sequence[str] = USUAL_ALGORITHMS,
        subject_claim: str = "sub",
        required_claims: Mapping[str, Any] | None = None,
        claims: Sequence[str] = USUAL_CLAIMS,
        leeway: int = 60,
        cache_seconds: float = CACHE_SECONDS,
        stale_seconds: float = STALE_SECONDS,
        remembered_tokens: int = 1024,
        http: ProviderHttp | None = None,
        clock: Clock | None = None,
    ) -> None:
        need("BearerAuth")
        issuers = [provider_url(url, "BearerAuth: issuer") for url in _several("issuer", issuer)]
        check_settings(
            "BearerAuth",
            None if is_finite_number(leeway) and leeway >= 0 else "leeway must be a finite number that is not negative",
            seconds_finding("cache_seconds", cache_seconds),
            seconds_finding("stale_seconds", stale_seconds),
            count_finding("remembered_tokens", remembered_tokens),
        )
        self._rules = Rules.for_access(_several("audience", audience), algorithms, leeway)
        self._subject_claim = subject_claim
        self._required = dict(required_claims or {})
        # Each claim goes with its issuer: without it, those of two issuers would look alike.
        self._claims = ("iss", "sub", *((claims,) if isinstance(claims, str) else claims))
        self._clock = clock or SystemClock()
        http = http or ProviderHttp()
        self._issuers = {
            url: Issuer(url, http=http, clock=self._clock, cache_seconds=cache_seconds, stale_seconds=stale_seconds)
            for url in issuers
        }
        self.authorization_servers, self.audiences = tuple(issuers), _several("audience", audience)
        wanted = [value for name in _IN_WORDS for value in _list(self._required.get(name))]
        self.scopes = tuple(scope for value in wanted for scope in str(value).split())
        self._proved: dict[bytes, tuple[float, float, Principal]] = {}
        self._most = remembered_tokens

    async def authenticate(self, headers: Headers) -> Principal | None:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token:
            return None
        digest = hashlib.sha256(token).digest()
        proved = self._proved.pop(digest, None)
        if proved is not None and self._clock.now() < proved[0] and self._clock.steady() < proved[1]:
            # To the end of the order: the token that was not used for the longest time makes room first.
            self._proved[digest] = proved
            return proved[2]
        # An API key may come in the same header, and another `auth` checks it.
        if token.count(b".") != 2:
            return None
        return await self._prove(digest, read(token))

    async def _prove(self, digest: bytes, token: Unproved) -> Principal:
        issuer = self._issuers.get(token.issuer)
        if issuer is None:
            raise build_refusal("its issuer is not configured")
        claims = await prove(token, issuer, (issuer.issuer,), self._rules, self._clock.now())
        principal = self._principal(drop_unverified(claims))
        # Once the keys have to be looked at again, so has everything that they signed.
        self._remember(digest, (claims["exp"] + self._rules.leeway, issuer.fresh_until, principal))
        return principal

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        subject = claims.get(self._subject_claim)
        if not isinstance(subject, str) or not subject.strip() or not subject.isprintable():
            raise build_refusal(f"it has no {self._subject_claim}")
        if subject == ANONYMOUS or len(subject) > MAX_SUBJECT_LENGTH:
            raise build_refusal(f"its {self._subject_claim} is not a valid principal id")
        for claim, wanted in self._required.items():
            if not _has(claims.get(claim), wanted, in_words=claim in _IN_WORDS):
                raise ForbiddenError(
                    f"The token lacks a required value of the claim {claim}.", code="insufficient_scope"
                )
        values = {name: claims[name] for name in self._claims if name in claims}
        # No issuer has a bar in its name, so that no two principals can come to have one id.
        return Principal(id=subject if len(self._issuers) == 1 else f"{claims['iss']}|{subject}", claims=values)

    def _remember(self, digest: bytes, proved: tuple[float, float, Principal]) -> None:
        """Cache a verified token, until a wall clock time and a steady clock reading."""
        self._proved[digest] = proved
        if len(self._proved) > self._most:
            del self._proved[next(iter(self._proved))]

    def __repr__(self) -> str:
        return f"BearerAuth(issuer={list(self._issuers)!r}, audience={list(self._rules.audience)!r})"


def _several(what: str, given: str | Sequence[str]) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given)
    if not texts or not all(texts) or len(set(texts)) != len(texts):
        raise ValueError(f"BearerAuth: {what} must be a non-empty string or a list of different non-empty strings")
    return texts


def _has(claim: Any, wanted: Any, *, in_words: bool) -> bool:
    """Return True if a claim has, or contains, one of the wanted values."""
    values = claim.split() if in_words and isinstance(claim, str) else _list(claim)
    # By type too: to Python 1 and true are equal.
    return any(type(value) is type(choice) and value == choice for value in values for choice in _list(wanted))


def _list(given: Any) -> list[Any]:
    if isinstance(given, (list, tuple, set, frozenset)):
        return list(cast("Collection[Any]", given))
    return [] if given is None else [given]
