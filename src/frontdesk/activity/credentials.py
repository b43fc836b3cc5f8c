"""The credentials with which a bot obtains its own tokens. No secret appears in a log or an error."""

import asyncio
import base64
import hashlib
import inspect
import ssl
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from frontdesk.auth.oidc import ProviderHttp
from frontdesk.errors import PushError
from frontdesk.errors.base import install_hint
from frontdesk.ids import new_secret
from frontdesk.secret import Secret, reveal

EXCHANGE_SCOPE: Final = "api://AzureADTokenExchange/.default"
"""The scope of the token of a managed identity that is exchanged for one of the bot."""
_JWT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS = 600
_REFUSED_WAIT = 60.0
"""The seconds until a refused credential is tried again: an operator has to act, and what waits is not lost."""
_DEFAULT_LIFETIME = 300.0
_OK = 200


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request for a token."""

    app_id: str
    token_url: str
    """The token endpoint of the tenant."""
    scope: str
    http: ProviderHttp
    now: float


@dataclass(frozen=True, slots=True)
class IssuedToken:
    token: Secret
    expires_at: float


def credential_refused(code: str) -> PushError:
    """Return the error for a credential that is not accepted. Nothing that waits is lost by it."""
    return PushError(
        f"The login server refuses the credential of the bot: {code}. Check app_id, credential and tenant.",
        code="credential_refused",
        retry_after=_REFUSED_WAIT,
        everywhere=True,
    )


class BotCredential(ABC):
    """Obtains tokens for the bot's app registration."""

    tenant: str | None = None
    """The tenant of a single-tenant bot. `None` for a bot whose tokens come from the tenant of Bot Service."""

    @abstractmethod
    async def acquire(self, request: TokenRequest) -> IssuedToken:
        """Return a new token. Raise `PushError` if there is none at the moment."""

    def findings(self) -> list[str]:
        """Return the configuration errors, one line each."""
        tenant = self.tenant
        if tenant is not None and (not tenant or not tenant.replace("-", "").replace(".", "").isalnum()):
            return [f"{type(self).__name__}: tenant must be the id or the domain of a tenant"]
        return []

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tenant={self.tenant!r})"


class _FormCredential(BotCredential):
    """A credential that is sent to the token endpoint of Entra."""

    @abstractmethod
    async def proof(self, request: TokenRequest) -> Mapping[str, str]:
        """Return the fields of the form that prove who asks."""

    async def acquire(self, request: TokenRequest) -> IssuedToken:
        form = {
            "grant_type": "client_credentials",
            "client_id": request.app_id,
            "scope": request.scope,
            **await self.proof(request),
        }
        answer = await request.http.post(request.token_url, form)
        body = answer.body
        if answer.status != _OK:
            raise _refusal(answer.status, body)
        token, lifetime = body.get("access_token"), body.get("expires_in", _DEFAULT_LIFETIME)
        if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
            raise credential_refused("the response has no token")
        seconds = float(lifetime) if isinstance(lifetime, int | float) and lifetime > 0 else _DEFAULT_LIFETIME
        return IssuedToken(Secret(token), request.now + seconds)


def _refusal(status: int, body: Mapping[str, Any]) -> PushError:
    """Return the error for a refused request. Only the code is quoted: the description names what was sent."""
    error = body.get("error")
    code = error if isinstance(error, str) and error.replace("_", "").isalnum() else f"status_{status}"
    numbers: Any = body.get("error_codes")
    if isinstance(numbers, list) and numbers and isinstance(numbers[0], int):
        code = f"{code}, AADSTS{numbers[0]}"
    if status == 429 or status >= 500:
        return PushError(f"The login server answered {status}, {code}.", code="login_unavailable", everywhere=True)
    return credential_refused(code)


class ClientSecret(_FormCredential):
    """A client secret of the app registration. `tenant` is required for a single-tenant bot."""

    def __init__(self, secret: str | Secret, *, tenant: str | None = None) -> None:
        self._secret = Secret(secret) if reveal(secret) else None
        self.tenant = tenant

    def findings(self) -> list[str]:
        return [*([] if self._secret else ["ClientSecret: the secret must not be empty"]), *super().findings()]

    async def proof(self, request: TokenRequest) -> Mapping[str, str]:
        if self._secret is None:
            raise credential_refused("there is no secret")
        return {"client_secret": self._secret.reveal()}


class Certificate(_FormCredential):
    """A certificate of the app registration, with its private key. Both are PEM.

    The chain of the certificate is sent with each request (`x5c`), so that a renewed certificate of the same subject is
    accepted without another registration.
    """

    def __init__(self, *, certificate: str, private_key: str | Secret, tenant: str | None = None) -> None:
        self._certificate = certificate
        self._key = Secret(private_key) if reveal(private_key) else None
        self.tenant = tenant

    def findings(self) -> list[str]:
        wrong = super().findings()
        try:
            if not self._chain():
                wrong.append("Certificate: certificate must be PEM, with -----BEGIN CERTIFICATE-----")
        except ValueError:
            wrong.append("Certificate: certificate is not valid PEM")
        if self._key is None or "PRIVATE KEY-----" not in self._key.reveal():
            wrong.append("Certificate: private_key must be PEM without a password, with -----BEGIN PRIVATE KEY-----")
        return wrong

    def _chain(self) -> list[bytes]:
        """Return the certificates in DER, the own one first."""
        end = "-----END CERTIFICATE-----"
        parts = self._certificate.split("-----BEGIN CERTIFICATE-----")[1:]
        pems = [f"-----BEGIN CERTIFICATE-----{part.partition(end)[0]}{end}" for part in parts]
        return [ssl.PEM_cert_to_DER_cert(pem) for pem in pems]

    async def proof(self, request: TokenRequest) -> Mapping[str, str]:
        if self._key is None:
            raise credential_refused("there is no private key")
        return {"client_assertion_type": _JWT_ASSERTION, "client_assertion": self._assertion(self._key, request)}

    def _assertion(self, private_key: Secret, request: TokenRequest) -> str:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import RSAKey
        from joserfc.jws import JWSRegistry

        chain, now = self._chain(), int(request.now)
        digest = hashlib.sha256(chain[0]).digest()
        header = {
            "alg": "PS256",
            "typ": "JWT",
            "x5t#S256": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "x5c": [base64.b64encode(each).decode() for each in chain],
        }
        claims = {
            "aud": request.token_url,
            "iss": request.app_id,
            "sub": request.app_id,
            "jti": new_secret(),
            "iat": now,
            "nbf": now,
            "exp": now + _ASSERTION_SECONDS,
        }
        registry = JWSRegistry(algorithms=["PS256"], strict_check_header=False)
        try:
            return jwt.encode(header, claims, RSAKey.import_key(private_key.reveal()), registry=registry)
        except (JoseError, ValueError, TypeError):
            raise credential_refused("the private key is not a valid RSA key") from None


GetToken = Callable[[str], "tuple[str, float]"]


def _azure_token(client_id: str | None, scope: str) -> tuple[str, float]:
    """Return a token of the managed identity of this machine, and when it ends. Blocks."""
    identity = _azure_identity()
    credential = (
        identity.ManagedIdentityCredential(client_id=client_id) if client_id else (identity.ManagedIdentityCredential())
    )
    with credential:
        token = credential.get_token(scope)
    return str(token.token), float(token.expires_on)


def _azure_identity() -> Any:
    try:
        from importlib import import_module

        return import_module("azure.identity")
    except ImportError as error:
        raise ImportError(f"a managed identity needs azure-identity: {install_hint('activity')}") from error


async def _get_managed_token(client_id: str | None, scope: str, get_token: GetToken | None) -> IssuedToken:
    try:
        token, expires_at = await asyncio.to_thread(
            (lambda: _azure_token(client_id, scope)) if get_token is None else (lambda: get_token(scope))
        )
    except ImportError:
        raise
    except Exception as error:
        # The errors of azure-identity quote responses.
        raise credential_refused(f"the managed identity has no token, {type(error).__name__}") from None
    return IssuedToken(Secret(token), expires_at)


class ManagedIdentity(BotCredential):
    """The managed identity of the machine, for a bot of the type `UserAssignedMSI`.

    `client_id` is that of the identity; the default is the bot's `app_id`.
    """

    def __init__(self, *, tenant: str, client_id: str | None = None, get_token: GetToken | None = None) -> None:
        """Take `get_token` in tests: it returns a token for a scope, and when it ends."""
        self.tenant = tenant
        self._client_id = client_id
        self._get_token = get_token

    def findings(self) -> list[str]:
        return [*_find_missing_library(self._get_token), *super().findings()]

    async def acquire(self, request: TokenRequest) -> IssuedToken:
        return await _get_managed_token(
            self._client_id or request.app_id, request.scope.removesuffix("/.default"), self._get_token
        )


Assertion = Callable[[], "str | Awaitable[str]"]


class FederatedIdentity(_FormCredential):
    """A federated credential of the app registration: a token of another issuer instead of a secret.

    By default the token is that of the machine's managed identity with `client_id`. `assertion` returns the token of
    another issuer, such as that of a Kubernetes cluster.
    """

    def __init__(
        self,
        *,
        tenant: str | None = None,
        client_id: str | None = None,
        assertion: Assertion | None = None,
        get_token: GetToken | None = None,
    ) -> None:
        self.tenant = tenant
        self._client_id = client_id
        self._assertion = assertion
        self._get_token = get_token

    def findings(self) -> list[str]:
        wrong = super().findings()
        if self._assertion is not None and self._client_id is not None:
            wrong.append("FederatedIdentity: client_id has no effect with assertion")
        return wrong if self._assertion is not None else [*_find_missing_library(self._get_token), *wrong]

    async def proof(self, request: TokenRequest) -> Mapping[str, str]:
        return {"client_assertion_type": _JWT_ASSERTION, "client_assertion": await self._get_assertion()}

    async def _get_assertion(self) -> str:
        if self._assertion is None:
            return (await _get_managed_token(self._client_id, EXCHANGE_SCOPE, self._get_token)).token.reveal()
        try:
            given = self._assertion()
            token = await given if inspect.isawaitable(given) else given
        except Exception as error:
            raise credential_refused(f"assertion failed with {type(error).__name__}") from error
        if not token or not cast(object, token) or not token.isascii():
            raise credential_refused("assertion returned no token")
        return token


def _find_missing_library(get_token: GetToken | None) -> list[str]:
    if get_token is not None:
        return []
    try:
        _azure_identity()
    except ImportError as error:
        return [str(error)]
    return []
