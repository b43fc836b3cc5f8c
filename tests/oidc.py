"""An identity provider, built on Authlib's authorization server and served for real.

It is an OpenID Connect issuer, and has the paths of Microsoft Entra and of GitHub besides. A test can look at what it
was asked, change what it signs, take it away and bring it back.
"""

import asyncio
import contextlib
import html
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlencode

import uvicorn
from authlib.common.security import generate_token
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Request, grants
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9207 import IssuerParameter
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from frontdesk.http.server_limits import ServerLimits
from frontdesk.server.uvicorn_server import Server

CLIENT_ID = "frontdesk-client"
CLIENT_SECRET = "a-client-secret-5f1d0c"
TENANT = "11111111-2222-3333-4444-555555555555"
OTHER_TENANT = "99999999-2222-3333-4444-555555555555"

# Making a key takes longer than most tests.
_KEYS = [RSAKey.generate_key(2048, {"kid": f"rsa-{number}", "use": "sig"}) for number in range(2)]

PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {"sub": "u-1", "name": "Ada", "email": "ada@example.com", "email_verified": True, "groups": ["staff"]},
    "bob": {"sub": "u-2", "name": "Bob", "email": "bob@example.com", "email_verified": False},
    "mark": {"sub": "u-3", "name": "<script>alert(1)</script>\u202e", "preferred_username": '"><b>mark'},
}

Twist = Callable[[dict[str, Any], dict[str, Any]], str | None]


class Client(ClientMixin):
    """The one client that the provider knows."""

    def __init__(self) -> None:
        self.redirect_uris: set[str] = set()
        self.secret: str | None = CLIENT_SECRET
        self.methods = {"client_secret_post", "client_secret_basic"}
        self.client_id = CLIENT_ID

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str | None:
        return None

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method in self.methods

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


class Code:
    """An authorization code, and what it was given for."""

    def __init__(self, code: str, request: OAuth2Request) -> None:
        data: Any = request.payload.data  # pyright: ignore[reportOptionalMemberAccess]
        self.code, self.user = code, request.user
        self.redirect_uri, self.scope, self.nonce = data["redirect_uri"], data.get("scope", ""), data.get("nonce")
        self.code_challenge = data.get("code_challenge")
        self.code_challenge_method = data.get("code_challenge_method")

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


class OidcProvider:
    """The provider, and all that a test can do to it."""

    def __init__(self) -> None:
        self.url = ""
        self.client = Client()
        self.people = {name: dict(claims) for name, claims in PEOPLE.items()}
        self.key: Any = _KEYS[0]
        self.listed: list[dict[str, Any]] = [one.as_dict(private=False) for one in (self.key,)]
        self.document: dict[str, Any] = {}
        """What its document says otherwise than usual."""
        self.twist: Twist | None = None
        """Changes the header and claims of an ID token, or gives another token altogether."""
        self.answer: Response | None = None
        """What the token endpoint says whatever it is asked."""
        self.names_itself = True
        self.away = False
        self.held: asyncio.Event | None = None
        """While it is not set, nobody is answered."""
        self.asked: Counter[str] = Counter()
        self.said: list[str] = []
        """Every code, token and secret that went over the wire."""
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, str] = {}
        self.issuer_name: str | None = None
        self.server: Any = _server(self)

    @property
    def issuer(self) -> str:
        """What it calls itself."""
        return self.issuer_name or self.url

    def rotate(self, *, keep: bool = False) -> None:
        """Signs with another key from here on, and lists the old one no more."""
        self.key = _KEYS[1] if self.key is _KEYS[0] else _KEYS[0]
        new = self.key.as_dict(private=False)
        self.listed = [*self.listed, new] if keep else [new]

    def sign(self, claims: dict[str, Any], header: dict[str, Any] | None = None, key: Any = None) -> str:
        """A token with these claims, as they are."""
        key = key or self.key
        head = {"alg": "ES256" if isinstance(key, ECKey) else "RS256", "kid": key.kid, **(header or {})}
        token = jwt.encode({k: v for k, v in head.items() if v is not None}, claims, key, [head["alg"]])
        self.said.append(token)
        return token

    def claims(self, **changes: Any) -> dict[str, Any]:
        """The claims of a good access token, but for changes; a change to nothing takes a claim away."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": "api://desk", "sub": "u-1", "iat": now, "exp": now + 600, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def id_token(self, person: str, nonce: str | None) -> str:
        """What it says of somebody who has signed in."""
        claims = self.claims(aud=self.client.client_id, nonce=nonce, **self.people[person])
        header = {"alg": "RS256", "kid": self.key.kid}
        made = None if self.twist is None else self.twist(header, claims)
        return made or self.sign(claims, header)

    def app(self) -> ASGIApp:
        routes = [
            Route("/{place:path}", self._serve, methods=["GET", "POST"]),
        ]
        return Starlette(routes=routes)

    async def _serve(self, request: Request) -> Response:
        place = "/" + request.path_params["place"]
        self.asked[place] += 1
        if self.held is not None:
            await self.held.wait()
        if self.away:
            return PlainTextResponse("away", 500)
        if place.endswith("/.well-known/openid-configuration"):
            return JSONResponse({**self._describe(), **self.document})
        if place == "/favicon.ico":
            return Response(status_code=204)
        if place == "/jwks":
            return JSONResponse({"keys": self.listed})
        if place in ("/authorize", "/login/oauth/authorize"):
            return await self._authorize(request)
        if place in ("/token", "/login/oauth/access_token"):
            return await self._token(request)
        if place in ("/userinfo", "/user"):
            return self._user(request, numbered=place == "/user")
        return PlainTextResponse("nothing here", 404)

    def _describe(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/jwks",
            "token_endpoint_auth_methods_supported": sorted(self.client.methods),
            "authorization_response_iss_parameter_supported": self.names_itself,
        }

    async def _authorize(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        asked = _oauth2(request, {**dict(request.query_params)})
        try:
            grant = self.server.get_consent_grant(asked, end_user=None)
        except OAuth2Error as error:
            return PlainTextResponse(f"refused: {error.error} {error.description}", 400)
        if request.method == "GET":
            return HTMLResponse(_login_page(request.url.query))
        person = form.get("person")
        user = person if form.get("do") == "agree" and person in self.people else None
        return self.server.create_authorization_response(asked, grant_user=user, grant=grant)

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        self.said += [form.get("code", ""), form.get("code_verifier", "")]
        return self.answer or self.server.create_token_response(_oauth2(request, form))

    def _user(self, request: Request, *, numbered: bool) -> Response:
        person = self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if person is None:
            return JSONResponse({"message": "Bad credentials"}, 401)
        claims = self.people[person]
        return JSONResponse({"id": 7, "login": person, "name": claims["name"]} if numbered else claims)


def _oauth2(request: Request, data: dict[str, str]) -> OAuth2Request:
    # Authlib wants TLS; between a test and its provider there is none.
    asked = OAuth2Request(request.method, "https://provider.example" + request.url.path, headers=request.headers)
    asked.payload = BasicOAuth2Payload(data)
    type(asked).form = property(lambda self: self.payload.data)  # type: ignore[assignment]
    type(asked).args = property(lambda self: self.payload.data)  # type: ignore[assignment]
    return asked


def _login_page(query: str) -> str:
    action = html.escape(f"?{query}")
    return (
        f'<!doctype html><title>Provider</title><form method="post" action="{action}"><input name="person">'
        '<button name="do" value="agree">Agree</button><button name="do" value="refuse">Refuse</button></form>'
    )


def _server(provider: OidcProvider) -> AuthorizationServer:
    class CodeGrant(grants.AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS: ClassVar = ["client_secret_basic", "client_secret_post", "none"]

        def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
            provider.codes[code] = Code(code, request)
            provider.said.append(code)

        def query_authorization_code(self, code: str, client: Client) -> Code | None:
            return provider.codes.get(code)

        def delete_authorization_code(self, authorization_code: Code) -> None:
            del provider.codes[authorization_code.code]

        def authenticate_user(self, authorization_code: Code) -> Any:
            return authorization_code.user

    class IdToken(OpenIDCode):
        def exists_nonce(self, nonce: str, request: OAuth2Request) -> bool:
            return any(one.nonce == nonce for one in provider.codes.values())

        def encode_id_token(self, token: dict[str, Any], request: OAuth2Request) -> str:
            code: Any = request.authorization_code
            return provider.id_token(code.user, code.nonce)

    class Named(IssuerParameter):
        def __init__(self, server: AuthorizationServer) -> None:
            self(server)

        def get_issuer(self) -> str | None:
            return provider.issuer if provider.names_itself else None

    class Server(AuthorizationServer):
        def query_client(self, client_id: str) -> Client | None:
            return provider.client if client_id == provider.client.client_id else None

        def save_token(self, token: dict[str, Any], request: OAuth2Request) -> None:
            provider.tokens[token["access_token"]] = str(request.user)
            provider.said.append(token["access_token"])

        def create_oauth2_request(self, request: Any) -> OAuth2Request:
            return request

        def handle_response(self, status: int, body: Any, headers: Any) -> Response:
            return _Located(body, status, headers)

        def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
            pass

    server = Server()
    server.register_grant(CodeGrant, [CodeChallenge(required=True), IdToken(require_nonce=True)])
    server.register_token_generator("default", BearerTokenGenerator(lambda **_: generate_token(42)))
    server.register_extension(Named)
    return server


class _Located(Response):
    """A response as Authlib's extensions expect it, whose place to go can be changed."""

    def __init__(self, body: Any, status: int, headers: Any) -> None:
        made: Response = JSONResponse(body, status) if isinstance(body, dict) else PlainTextResponse(body, status)
        super().__init__(made.body, status, media_type=made.media_type)
        for name, value in headers:
            self.headers[name] = value

    @property
    def location(self) -> str | None:
        return self.headers.get("location")

    @location.setter
    def location(self, value: str) -> None:
        self.headers["location"] = value


def free_port() -> socket.socket:
    """A free port of the loopback address, taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    return listener


@contextlib.asynccontextmanager
async def serve_app(app: ASGIApp, listener: socket.socket | None = None, **options: Any) -> AsyncIterator[str]:
    """Serves an app on a free port of the loopback address."""
    listener = listener or free_port()
    config = uvicorn.Config(app, **{"lifespan": "off", "log_config": None, "access_log": False, **options})
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.up.wait()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.down.set()
        await task
        listener.close()


class _Server(Server):
    def __init__(self, config: uvicorn.Config) -> None:
        # What the pages themselves do with a long address is tested too.
        super().__init__(config, ServerLimits(max_url_bytes=16 * 1024))
        self.up, self.down = asyncio.Event(), asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        self.up.set()
        await self.down.wait()


@contextlib.asynccontextmanager
async def oidc_provider(host: str = "127.0.0.1") -> AsyncIterator[OidcProvider]:
    """A provider that can be called."""
    provider = OidcProvider()
    async with serve_app(provider.app()) as url:
        provider.url = url.replace("127.0.0.1", host)
        yield provider


def build_agreement(person: str = "ada") -> str:
    """What the sign-in page sends when somebody agrees."""
    return urlencode({"person": person, "do": "agree"})
