"""The tokens of the fake: those that Bot Service sends with activities, and those that bots obtain by their secret."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry

from frontdesk.clock import Clock
from frontdesk.ids import new_secret

ENDORSED = "the-endorsed-key"
BARE = "the-key-without-endorsements"
LIFETIME = 3600
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@cache
def make_signing_key(kid: str) -> RSAKey:
    """Return a key of the issuer. It is made once, because that takes a while."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


def public_keys(endorsements: Sequence[str]) -> dict[str, Any]:
    """Return the keys of the issuer as a JWK set."""
    endorsed = {**make_signing_key(ENDORSED).as_dict(private=False), "endorsements": list(endorsements)}
    return {"keys": [endorsed, make_signing_key(BARE).as_dict(private=False)]}


def sign_token(claims: Mapping[str, Any], *, kid: str = ENDORSED, key: RSAKey | None = None, **header: Any) -> str:
    """Return a token with these claims. Another `key` and other fields of the header make a forged one."""
    head = {"alg": "RS256", "typ": "JWT", "kid": kid, **header}
    return jwt.encode(head, dict(claims), key or make_signing_key(kid))


class Login:
    """The login server: a bot gets a token for its secret, or for an assertion that its key has signed."""

    def __init__(self, app_id: str, secret: str, tenant: str, clock: Clock) -> None:
        self.app_id, self.secret, self.tenant = app_id, secret, tenant
        self.certificate_key: RSAKey | None = None
        """The public key of the bot's certificate, if it has one."""
        self.federated: set[str] = set()
        """The assertions that a federated credential accepts."""
        self.requests: list[dict[str, str]] = []
        """The forms of all requests that were granted, without what proved them."""
        self._clock = clock
        self._tokens: dict[str, tuple[float, str]] = {}

    def grant(self, tenant: str, body: bytes, url: str) -> tuple[int, dict[str, Any]]:
        """Answer a request for a token with a status and a body."""
        form = {name: values[-1] for name, values in parse_qs(body.decode("latin-1")).items()}
        if tenant != self.tenant:
            return 400, {"error": "invalid_request", "error_codes": [90002]}
        if form.get("grant_type") != "client_credentials" or not form.get("scope", "").endswith("/.default"):
            return 400, {"error": "unsupported_grant_type", "error_codes": [70003]}
        if form.get("client_id") != self.app_id:
            return 400, {"error": "unauthorized_client", "error_codes": [700016]}
        if not self._is_proved(form, url):
            return 401, {"error": "invalid_client", "error_codes": [7000215], "error_description": str(form)}
        token = f"token-{new_secret()}"
        self._tokens[token] = (self._clock.now() + LIFETIME, form["scope"])
        self.requests.append({name: value for name, value in form.items() if name in ("client_id", "scope")})
        return 200, {"token_type": "Bearer", "expires_in": LIFETIME, "access_token": token}

    def _is_proved(self, form: Mapping[str, str], url: str) -> bool:
        if "client_secret" in form:
            return form["client_secret"] == self.secret
        if form.get("client_assertion_type") != _ASSERTION:
            return False
        given = form.get("client_assertion", "")
        if given in self.federated:
            return True
        return self.certificate_key is not None and self._is_signed(given, self.certificate_key, url)

    def _is_signed(self, assertion: str, key: RSAKey, url: str) -> bool:
        registry = JWSRegistry(algorithms=["PS256", "RS256"], strict_check_header=False)
        registry.max_header_length = 64 * 1024
        try:
            token = jwt.decode(assertion, key, registry=registry)
        except JoseError:
            return False
        now, claims = self._clock.now(), token.claims
        named = claims.get("iss") == claims.get("sub") == self.app_id and claims.get("aud") == url
        return named and claims["nbf"] <= now < claims["exp"] and bool(token.header.get("x5c"))

    def accepts(self, authorization: str, scope: str) -> bool:
        """Return True if a call has a token of this login server that has not ended."""
        known = self._tokens.get(authorization.removeprefix("Bearer "))
        return known is not None and self._clock.now() < known[0] and known[1] == scope

    def revoke(self) -> None:
        """Refuse all tokens that were granted until now."""
        self._tokens.clear()
