"""Bearer tokens that an OpenID Connect issuer has signed."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

from frontdesk.abc.auth import Principal
from frontdesk.clock import Clock, SystemClock
from frontdesk.data.identity import ANONYMOUS
from frontdesk.errors import ForbiddenError
from frontdesk.kit.auth.oidc import CACHE_SECONDS, STALE_SECONDS, Issuer, need
from frontdesk.kit.auth.provider import ProviderHttp, provider_url
from frontdesk.kit.auth.tokens import USUAL_ALGORITHMS, Rules, Unproved, believed, prove, read, refused
from frontdesk.kit.http.asgi import Headers

USUAL_CLAIMS: Final = (
    *("tid", "oid", "azp", "appid", "client_id", "scope", "scp", "roles", "groups"),
    *("email", "email_verified", "name", "preferred_username"),
)
LONGEST_SUBJECT: Final = 512
_IN_WORDS = ("scope", "scp")


class BearerAuth:
    """`Authorization: Bearer` with a token that an issuer has signed for this host.

    `BearerAuth(issuer="https://login.example.com", audience="api://concierge")`: the issuer itself says where its keys
    are, when the first token comes. With several issuers the id of a principal has its issuer before it.
    `required_claims` names claims, each with the value that it must have, or with several one of which will do.
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
            raise refused("its issuer is not known here")
        claims = await prove(token, issuer, (issuer.issuer,), self._rules, self._clock.now())
        principal = self._principal(believed(claims))
        # Once the keys have to be looked at again, so has everything that they signed.
        self._remember(digest, (claims["exp"] + self._rules.leeway, issuer.fresh_until, principal))
        return principal

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        subject = claims.get(self._subject_claim)
        if not isinstance(subject, str) or not subject.strip() or not subject.isprintable():
            raise refused(f"it has no {self._subject_claim}")
        if subject == ANONYMOUS or len(subject) > LONGEST_SUBJECT:
            raise refused(f"its {self._subject_claim} is not one that a principal can have")
        for claim, wanted in self._required.items():
            if not _has(claims.get(claim), wanted, in_words=claim in _IN_WORDS):
                raise ForbiddenError(f"The token lacks a value of the claim {claim}.", code="insufficient_scope")
        values = {name: claims[name] for name in self._claims if name in claims}
        # No issuer has a bar in its name, so that no two principals can come to have one id.
        return Principal(id=subject if len(self._issuers) == 1 else f"{claims['iss']}|{subject}", claims=values)

    def _remember(self, digest: bytes, proved: tuple[float, float, Principal]) -> None:
        """Keep what was proved: until a time of day, and until a reading of the steady clock."""
        self._proved[digest] = proved
        if len(self._proved) > self._most:
            del self._proved[next(iter(self._proved))]

    def __repr__(self) -> str:
        return f"BearerAuth(issuer={list(self._issuers)!r}, audience={list(self._rules.audience)!r})"


def _several(what: str, given: str | Sequence[str]) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given)
    if not texts or not all(texts) or len(set(texts)) != len(texts):
        raise ValueError(f"BearerAuth: {what} must be a text, or several that differ, and none of them empty")
    return texts


def _has(claim: Any, wanted: Any, *, in_words: bool) -> bool:
    """Tell whether a claim, of one value or of many, has the wanted value, or one of several wanted ones."""
    values = claim.split() if in_words and isinstance(claim, str) else _list(claim)
    # By type too: to Python 1 and true are equal.
    return any(type(value) is type(choice) and value == choice for value in values for choice in _list(wanted))


def _list(given: Any) -> list[Any]:
    if isinstance(given, (list, tuple, set, frozenset)):
        return list(cast("Collection[Any]", given))
    return [] if given is None else [given]
