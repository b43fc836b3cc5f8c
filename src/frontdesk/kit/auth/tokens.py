"""Verifies signed tokens."""

import base64
import binascii
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from frontdesk.errors import UnauthenticatedError
from frontdesk.kit.auth.oidc import ALGORITHMS, Issuer, SigningKey

if TYPE_CHECKING:
    from joserfc.jws import JWSRegistry

LONGEST_TOKEN: Final = 16 * 1024
USUAL_ALGORITHMS: Final = ("RS256", "PS256", "ES256")
_ID_TYPES = frozenset({"jwt"})
_ACCESS_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})


def refused(why: str) -> UnauthenticatedError:
    """Make the error for a token that is not good; nothing of the token is in it."""
    return UnauthenticatedError(f"The token is not valid: {why}.", code="invalid_token")


class Header(msgspec.Struct, frozen=True):
    """The fields of a token's header that are used; others, such as where to find a key, are ignored."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: Any = None


class _Issued(msgspec.Struct, frozen=True):
    iss: str


@dataclass(frozen=True, slots=True)
class Unproved:
    """A token that was not verified yet."""

    text: str
    header: Header
    issuer: str


def read(token: bytes) -> Unproved:
    """Read the parts that say which key to use; they are not verified yet."""
    if len(token) > LONGEST_TOKEN:
        raise refused(f"it has more than {LONGEST_TOKEN} bytes")
    parts = token.split(b".")
    if len(parts) != 3 or not token.isascii():
        raise refused("it is not a signed token")
    try:
        header = msgspec.json.decode(_unpacked(parts[0]), type=Header)
        issued = msgspec.json.decode(_unpacked(parts[1]), type=_Issued)
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError, RecursionError):
        raise refused("it is not a signed token, or names no issuer") from None
    return Unproved(text=token.decode("ascii"), header=header, issuer=issued.iss)


def _unpacked(part: bytes) -> bytes:
    return base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that a token must meet."""

    audience: tuple[str, ...]
    algorithms: tuple[str, ...]
    leeway: int = 60
    types: frozenset[str] = _ACCESS_TYPES

    @classmethod
    def for_access(cls, audience: Sequence[str], algorithms: Sequence[str], leeway: int) -> "Rules":
        """Make the rules for the access token of a client."""
        return cls(tuple(audience), checked_algorithms(algorithms), leeway)

    @classmethod
    def for_identity(cls, client_id: str, algorithms: Sequence[str], leeway: int = 60) -> "Rules":
        """Make the rules for the ID token of a provider."""
        return cls((client_id,), checked_algorithms(algorithms), leeway, _ID_TYPES)


def checked_algorithms(algorithms: Collection[str]) -> tuple[str, ...]:
    """Return the algorithms, if every one of them is asymmetric."""
    if isinstance(algorithms, str) or not algorithms or not all(algorithm in ALGORITHMS for algorithm in algorithms):
        raise ValueError(f"algorithms must be some of {', '.join(ALGORITHMS)}")
    return tuple(algorithms)


async def prove(token: Unproved, issuer: Issuer, accepted: Collection[str], rules: Rules, now: float) -> dict[str, Any]:
    """Return the claims of a token, if its issuer signed it for us and it is still valid.

    `accepted` are the names under which the issuer may have signed it.
    """
    header = token.header
    if token.issuer not in accepted:
        raise refused("its issuer is not known here")
    if header.alg not in rules.algorithms:
        raise refused("it is signed in a way that is not accepted")
    if header.crit is not None:
        raise refused("it demands an extension that is not known here")
    if (header.typ or "jwt").lower() not in rules.types:
        raise refused("it is a token for something else")
    key = await issuer.key(header.kid, header.alg)
    if key is None:
        raise refused("its key is not known")
    claims = _signed(token, key, rules)
    if key.issuer is not None and not _signs_for(key.issuer, claims):
        raise refused("its key is another tenant's")
    _check(claims, accepted, rules, now)
    return claims


def _signs_for(template: str, claims: Mapping[str, Any]) -> bool:
    return template.replace("{tenantid}", str(claims.get("tid"))) == claims.get("iss")


def _signed(token: Unproved, key: SigningKey, rules: Rules) -> dict[str, Any]:
    from joserfc import jwt
    from joserfc.errors import JoseError

    try:
        return jwt.decode(token.text, key.key, registry=_registry(rules.algorithms)).claims
    except (JoseError, ValueError, TypeError, RecursionError):
        raise refused("its signature is wrong") from None


def _registry(algorithms: Collection[str]) -> "JWSRegistry":
    from joserfc.jws import JWSRegistry

    registry = JWSRegistry(algorithms=list(algorithms), strict_check_header=False)
    # The whole token is bounded already; some providers put their certificate into the header.
    registry.max_header_length = LONGEST_TOKEN
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
        raise refused("it has expired") from None
    except ClaimError as error:
        raise refused(f"its claim {error.claim} is wrong or missing") from None


def believed(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims without an e-mail address that the issuer has not verified: anyone could have chosen it."""
    verified = claims.get("email_verified") is True or claims.get("xms_edov") in (True, 1, "1", "true")
    return {name: value for name, value in claims.items() if verified or name != "email"}
