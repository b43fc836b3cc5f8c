"""The OAuth providers: Microsoft Entra, Google, GitHub, and any OpenID Connect issuer."""

import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from frontdesk.auth.bearer import USUAL_ALGORITHMS, Rules, build_refusal, check_algorithms, prove, read
from frontdesk.auth.oidc import Issuer, ProviderHttp, provider_url, unavailable
from frontdesk.clock import Clock
from frontdesk.linkers.oauth.provider import Account, Endpoints, foreign, label, select_claims

_TENANT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PERSONAL: Final = "9188040d-6c67-4c5b-b112-36a304b66dad"
"""The tenant of personal Microsoft accounts."""
_CHOOSE: Final = {"prompt": "select_account"}
"""Makes the person choose the account, even if only one is signed in."""
_MAX_SUBJECT_LENGTH: Final = 255
_SCOPES: Final = ("openid", "profile", "email")
_OK = 200


class Oidc:
    """Any OpenID Connect issuer, such as `Oidc("https://login.example.com")`.

    `claims` lists the claims that a link stores. With `userinfo=True` they are also read from the userinfo endpoint,
    because some issuers keep their ID tokens small.
    """

    def __init__(
        self,
        issuer: str,
        *,
        title: str | None = None,
        scopes: Sequence[str] = _SCOPES,
        claims: Sequence[str] = ("email", "email_verified", "name", "preferred_username", "groups"),
        userinfo: bool = False,
        algorithms: Sequence[str] = USUAL_ALGORITHMS,
        auth_method: Literal["client_secret_basic", "client_secret_post"] | None = None,
        parameters: Mapping[str, str] | None = None,
        discovery_url: str | None = None,
    ) -> None:
        if "openid" not in scopes:
            raise ValueError(f"{type(self).__name__}: scopes must contain 'openid'")
        self._issuer = provider_url(issuer, f"{type(self).__name__}: the issuer")
        self._discovery_url = discovery_url
        self.title = title or urlsplit(issuer).hostname or issuer
        self.scopes: Sequence[str] = tuple(scopes)
        self.parameters: Mapping[str, str] = dict(parameters or {})
        self._claims = tuple(claims)
        self._userinfo = userinfo
        self._auth_method = auth_method
        self._algorithms = check_algorithms(algorithms)

    def use(self, *, client_id: str, http: ProviderHttp, clock: Clock) -> None:
        self._client_id, self._http, self._clock = client_id, http, clock
        self._rules = Rules.for_identity(client_id, self._algorithms)
        self._asked = Issuer(self._issuer, http=http, clock=clock, url=self._discovery_url)

    def _issuers(self) -> tuple[str, ...]:
        return (self._issuer,)

    async def endpoints(self) -> Endpoints:
        metadata = await self._asked.load()
        authorize, token = metadata.endpoint("authorization_endpoint"), metadata.endpoint("token_endpoint")
        if authorize is None or token is None:
            raise unavailable()
        return Endpoints(
            authorize=authorize,
            token=token,
            auth_methods=metadata.auth_methods if self._auth_method is None else [self._auth_method],
            issuers=self._issuers(),
            names_itself=metadata.names_itself,
        )

    async def account(self, tokens: Mapping[str, Any], nonce: str) -> Account:
        claims = await self._prove(tokens, nonce)
        subject = self.subject(claims)
        if subject is None:
            raise foreign("This account can't be linked here.")
        if self._userinfo:
            claims = {**await self._more(tokens, claims), **claims}
        shown = label(claims, ("preferred_username", "email", "name"))
        return Account(subject=subject, label=shown, claims=select_claims(claims, self._claims))

    async def _prove(self, tokens: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        token = tokens.get("id_token")
        if not isinstance(token, str):
            raise build_refusal("it is missing")
        claims = await prove(read(token.encode()), self._asked, self._issuers(), self._rules, self._clock.now())
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise build_refusal("it was issued for another sign-in")
        # A token for several audiences must have been requested by this client.
        several = claims["aud"] not in (self._client_id, [self._client_id])
        if claims.get("azp", None if several else self._client_id) != self._client_id:
            raise build_refusal("it was issued for another client")
        return claims

    async def _more(self, tokens: Mapping[str, Any], claims: Mapping[str, Any]) -> Mapping[str, Any]:
        url = (await self._asked.load()).endpoint("userinfo_endpoint")
        if url is None:
            raise unavailable()
        answer = await self._http.get(url, {"Authorization": f"Bearer {tokens.get('access_token', '')}"})
        if answer.status != _OK or answer.body.get("sub") != claims["sub"]:
            raise build_refusal("the userinfo endpoint describes another user")
        return answer.body

    def subject(self, claims: Mapping[str, Any]) -> str | None:
        name = claims.get("sub")
        if claims.get("iss") not in self._issuers() or not is_name(name):
            return None
        # An issuer is a URL, which contains no bar.
        return f"{self._issuer}|{name}"


class Google(Oidc):
    """Google accounts. With `domains`, only accounts of these Workspace domains."""

    def __init__(
        self,
        *,
        domains: Sequence[str] = (),
        claims: Sequence[str] = ("email", "email_verified", "name", "hd"),
        issuer: str = "https://accounts.google.com",
    ) -> None:
        super().__init__(issuer, title="Google", claims=claims, parameters=_CHOOSE)
        self._domains = (domains,) if isinstance(domains, str) else tuple(domains)

    def _issuers(self) -> tuple[str, ...]:
        # Google has signed under both names.
        return (self._issuer, self._issuer.partition("://")[2])

    def subject(self, claims: Mapping[str, Any]) -> str | None:
        if self._domains and claims.get("hd") not in self._domains:
            return None
        return super().subject(claims)


class Entra(Oidc):
    """Microsoft Entra accounts of the listed tenant ids only.

    An account is identified by its tenant and its object id. Email addresses are ignored, because a tenant's
    administrator can set them to any value.
    """

    def __init__(
        self,
        *,
        tenants: Sequence[str],
        claims: Sequence[str] = ("oid", "tid", "preferred_username", "name", "groups", "roles"),
        authority: str = "https://login.microsoftonline.com",
    ) -> None:
        self.tenants = tuple(tenant.lower() for tenant in ((tenants,) if isinstance(tenants, str) else tenants))
        if not self.tenants or not all(_TENANT.fullmatch(tenant) for tenant in self.tenants):
            raise ValueError("Entra: tenants must be the ids of the tenants whose accounts may be linked")
        self._authority = provider_url(authority, "Entra: authority").rstrip("/")
        segment, name = self.tenants[0], self.tenants[0]
        if len(self.tenants) > 1:
            segment, name = "common" if _PERSONAL in self.tenants else "organizations", "{tenantid}"
        url = f"{self._authority}/{segment}/v2.0/.well-known/openid-configuration"
        super().__init__(
            self._build_issuer_url(name), title="Microsoft", claims=claims, parameters=_CHOOSE, discovery_url=url
        )

    def _build_issuer_url(self, tenant: str) -> str:
        return f"{self._authority}/{tenant}/v2.0"

    def _issuers(self) -> tuple[str, ...]:
        return tuple(self._build_issuer_url(tenant) for tenant in self.tenants)

    def subject(self, claims: Mapping[str, Any]) -> str | None:
        tenant, account = claims.get("tid"), claims.get("oid")
        # Other services of Microsoft verify the same two claims without being the issuer of a token.
        if tenant not in self.tenants or claims.get("iss", self._build_issuer_url(tenant)) != self._build_issuer_url(
            tenant
        ):
            return None
        return f"entra|{tenant}|{account}" if is_name(account) else None


class GitHub:
    """GitHub accounts, identified by number, because names can be released and taken by somebody else.

    GitHub supports OAuth only. There is no ID token to verify, so the owner of the token is requested over TLS.
    """

    title = "GitHub"

    def __init__(
        self,
        *,
        scopes: Sequence[str] = (),
        claims: Sequence[str] = ("login", "name"),
        url: str = "https://github.com",
        api_url: str = "https://api.github.com",
    ) -> None:
        self._url = provider_url(url, "GitHub: url").rstrip("/")
        self._api_url = provider_url(api_url, "GitHub: api_url").rstrip("/")
        self.scopes: Sequence[str] = tuple(scopes)
        self.parameters: Mapping[str, str] = _CHOOSE
        self._claims = tuple(claims)

    def use(self, *, client_id: str, http: ProviderHttp, clock: Clock) -> None:
        self._http = http

    async def endpoints(self) -> Endpoints:
        return Endpoints(
            authorize=f"{self._url}/login/oauth/authorize",
            token=f"{self._url}/login/oauth/access_token",
            auth_methods=("client_secret_post",),
        )

    async def account(self, tokens: Mapping[str, Any], nonce: str) -> Account:
        token = tokens.get("access_token")
        if not isinstance(token, str):
            raise build_refusal("it is missing")
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        answer = await self._http.get(f"{self._api_url}/user", headers)
        if answer.status != _OK:
            raise build_refusal("GitHub rejected it")
        # An address is shown there only after GitHub has verified it.
        claims: dict[str, Any] = {"email_verified": True, **answer.body, "iss": self._url}
        subject = self.subject(claims)
        if subject is None:
            raise foreign("This account can't be linked here.")
        return Account(
            subject=subject, label=label(claims, ("login", "name")), claims=select_claims(claims, self._claims)
        )

    def subject(self, claims: Mapping[str, Any]) -> str | None:
        number = claims.get("id")
        if claims.get("iss") != self._url or type(number) is not int or number <= 0:
            return None
        return f"{self._url}|{number}"


def is_name(value: object) -> bool:
    """Return True if a subject is a string that can be stored and logged."""
    return (
        isinstance(value, str) and 0 < len(value) <= _MAX_SUBJECT_LENGTH and value.isprintable() and bool(value.strip())
    )
