"""The interface of OAuth providers, and the account claims that a link stores."""

import base64
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast
from urllib.parse import quote_plus

import msgspec

from frontdesk.auth.bearer import build_refusal, drop_unverified
from frontdesk.auth.oidc import ProviderHttp, unavailable
from frontdesk.clock import Clock
from frontdesk.errors import ForbiddenError
from frontdesk.loggers import access as log
from frontdesk.secret import Secret

MAX_CLAIMS_BYTES: Final = 4096
"""The number of bytes of JSON that all claims of a link may have together."""
_MAX_LABEL_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of a provider, and its client authentication method."""

    authorize: str
    token: str
    auth_methods: Collection[str] = ()
    """The methods of client authentication; the default one if it is empty."""
    issuers: Collection[str] = ()
    """The issuer names with which it may send a browser back; empty if it has none."""
    names_itself: bool = False
    """Whether it always sends its issuer name."""


@dataclass(frozen=True, slots=True)
class Account:
    subject: str
    label: str
    """The name by which the person knows the account."""
    claims: Mapping[str, Any] = field(repr=False)


class Provider(Protocol):
    """An identity provider."""

    title: str
    """The name of the provider, for people."""
    scopes: Sequence[str]
    parameters: Mapping[str, str]
    """Further parameters of the sign-in URL."""

    def use(self, *, client_id: str, http: ProviderHttp, clock: Clock) -> None:
        """Configure the client. The linker calls this once."""
        ...

    async def endpoints(self) -> Endpoints:
        """Return the authorization and token endpoints."""
        ...

    async def account(self, tokens: Mapping[str, Any], nonce: str) -> Account:
        """Return the account of the tokens. Raise `UnauthenticatedError` or `ForbiddenError` if they are invalid."""
        ...

    def subject(self, claims: Mapping[str, Any]) -> str | None:
        """Return the unique, immutable name of an account, or `None` if it cannot be linked."""
        ...


def get_subject(provider: Provider, claims: Mapping[str, Any]) -> str | None:
    """Return the subject of the claims as stored in links, or `None` if the account is not of this provider."""
    return provider.subject(claims)


def select_claims(claims: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the claims that a link stores, up to the size limit."""
    claims = drop_unverified(claims)
    selected: dict[str, Any] = {}
    remaining = MAX_CLAIMS_BYTES
    for name in names:
        if name not in claims:
            continue
        size = len(msgspec.json.encode({name: claims[name]}))
        if size > remaining:
            log.warning("claim too large, not stored with the link: claim=%s", name)
            continue
        remaining -= size
        selected[name] = claims[name]
    return selected


def label(claims: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first string among the named claims, as the account's display name."""
    texts = [claims[name] for name in names if isinstance(claims.get(name), str) and claims[name].strip()]
    return texts[0][:_MAX_LABEL_LENGTH] if texts else "an account without a name"


def foreign(message: str) -> ForbiddenError:
    """Return the error for a valid account that this host does not accept."""
    return ForbiddenError(message, code="account_refused")


_OK = 200
_ERROR = re.compile(r"[a-z_]{1,40}")


class CodeClient:
    def __init__(
        self, provider: Provider, client_id: str, client_secret: Secret | None, redirect_uri: str, http: ProviderHttp
    ) -> None:
        self._provider = provider
        self._client_id, self._secret = client_id, client_secret
        self._redirect_uri = redirect_uri
        self._http = http

    async def sign_in_url(self, *, state: str, nonce: str, verifier: str) -> str:
        endpoints = await self._provider.endpoints()
        more = {**self._provider.parameters, **({"nonce": nonce} if "openid" in self._provider.scopes else {})}
        url, _ = self._authlib(endpoints).create_authorization_url(
            endpoints.authorize, state=state, code_verifier=verifier, **more
        )
        return str(url)

    async def tokens(self, code: str, verifier: str) -> Mapping[str, Any]:
        """Exchange a code for tokens. A code works once."""
        from authlib.oauth2.rfc6749.parameters import (  # pyright: ignore[reportMissingTypeStubs]
            prepare_token_request,  # pyright: ignore[reportUnknownVariableType]
        )

        endpoints = await self._provider.endpoints()
        client = self._authlib(endpoints)
        prepare = cast(Any, prepare_token_request)
        body = prepare("authorization_code", code=code, redirect_uri=self._redirect_uri, code_verifier=verifier)
        auth = client.client_auth(client.token_endpoint_auth_method)
        url, headers, body = auth.prepare("POST", endpoints.token, {}, body)
        answer = await self._http.post(url, body, headers)
        if answer.status == _OK and "error" not in answer.body:
            return answer.body
        error = str(answer.body.get("error"))
        # Only the name of an error is logged: anything else could contain a secret.
        log.warning("provider returned no token: %s", error if _ERROR.fullmatch(error) else "for no known reason")
        if error in ("invalid_grant", "bad_verification_code"):
            raise build_refusal("the provider rejected its code")
        raise unavailable()

    def _authlib(self, endpoints: Endpoints) -> Any:
        from authlib.oauth2.client import OAuth2Client  # pyright: ignore[reportMissingTypeStubs]

        client = cast(Any, OAuth2Client)(
            session=None,
            client_id=self._client_id,
            client_secret=None if self._secret is None else self._secret.reveal(),
            token_endpoint_auth_method=_auth_method(self._secret, endpoints),
            scope=" ".join(self._provider.scopes) or None,
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
        )
        client.register_client_auth_method(("client_secret_basic", _basic))
        return client


def _auth_method(secret: Secret | None, endpoints: Endpoints) -> str:
    if secret is None:
        return "none"
    methods = endpoints.auth_methods
    # A provider that supports both expects the method that the client was registered with, usually this one.
    plain = "client_secret_basic" in methods or "client_secret_post" not in methods
    return "client_secret_basic" if plain else "client_secret_post"


def _basic(client: Any, method: str, url: str, headers: Mapping[str, str], body: str) -> tuple[str, Any, str]:
    # RFC 6749 has each part quoted; Authlib does not, which breaks unusual characters.
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    return url, {**headers, "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, body
