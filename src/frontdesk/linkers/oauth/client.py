"""The host as an OAuth client: Authlib builds the requests, and they are sent with our limits."""

import base64
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote_plus

from frontdesk.kit.auth.provider import ProviderHttp, unavailable
from frontdesk.kit.auth.secrets import Secret
from frontdesk.kit.auth.tokens import refused
from frontdesk.linkers.oauth.provider import Endpoints, Provider
from frontdesk.loggers import access as log

_OK = 200
_ERROR = re.compile(r"[a-z_]{1,40}")


class CodeClient:
    """Sends browsers to a provider, and exchanges the codes that they bring back."""

    def __init__(
        self, provider: Provider, client_id: str, client_secret: Secret | None, redirect_uri: str, http: ProviderHttp
    ) -> None:
        self._provider = provider
        self._client_id, self._secret = client_id, client_secret
        self._redirect_uri = redirect_uri
        self._http = http

    async def sign_in_url(self, *, state: str, nonce: str, verifier: str) -> str:
        """Return the URL where the person signs in."""
        endpoints = await self._provider.endpoints()
        more = {**self._provider.parameters, **({"nonce": nonce} if "openid" in self._provider.scopes else {})}
        url, _ = self._authlib(endpoints).create_authorization_url(
            endpoints.authorize, state=state, code_verifier=verifier, **more
        )
        return str(url)

    async def tokens(self, code: str, verifier: str) -> Mapping[str, Any]:
        """Exchange a code for tokens, which works once."""
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
        log.warning("the provider gave no token: %s", error if _ERROR.fullmatch(error) else "for no known reason")
        if error in ("invalid_grant", "bad_verification_code"):
            raise refused("the provider does not take its code")
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
