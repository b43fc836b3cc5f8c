"""Issuers of tokens on loopback: they publish their keys as real ones do, and sign whatever a test asks for."""

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.scenarios.desk import serve_host

AUDIENCE = "api://concierge"
KEYS = {name: RSAKey.generate_key(2048, {"kid": name, "use": "sig", "alg": "RS256"}) for name in ("north", "south")}
STRANGER = RSAKey.generate_key(2048, {"kid": "north", "use": "sig", "alg": "RS256"})


class Issuers:
    """Two tenants of one provider: `north` and `south`, each with its own key."""

    def __init__(self, address: str) -> None:
        self.address = address

    def url(self, tenant: str) -> str:
        return f"{self.address}/{tenant}"

    def token(self, tenant: str, *, key: RSAKey | None = None, without: tuple[str, ...] = (), **claims: Any) -> str:
        """A good token, but for what is asked."""
        said = self._claims(tenant, claims)
        header = {"alg": "RS256", "kid": tenant, "typ": "JWT"}
        return jwt.encode(header, {name: said[name] for name in said if name not in without}, key or KEYS[tenant])

    def make_unsigned(self, tenant: str, **claims: Any) -> str:
        """A token that says of itself that nobody has signed it."""
        parts = ({"alg": "none", "typ": "JWT"}, self._claims(tenant, claims))
        return ".".join([*(_pack(json.dumps(one).encode()) for one in parts), ""])

    def sign_with_the_public_key(self, tenant: str, **claims: Any) -> str:
        """A token whose key is what everybody knows."""
        import hashlib
        import hmac

        public = KEYS[tenant].as_pem(private=False)
        parts = ({"alg": "HS256", "typ": "JWT", "kid": tenant}, self._claims(tenant, claims))
        text = ".".join(_pack(json.dumps(one).encode()) for one in parts)
        return f"{text}.{_pack(hmac.new(public, text.encode(), hashlib.sha256).digest())}"

    def _claims(self, tenant: str, claims: dict[str, Any]) -> dict[str, Any]:
        now = int(time.time())
        usual = {"iss": self.url(tenant), "aud": AUDIENCE, "sub": "u1", "iat": now, "exp": now + 3600}
        return {**usual, **claims}


def _pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@asynccontextmanager
async def serve_issuers() -> AsyncIterator[Issuers]:
    """Serves both."""

    async def about(request: Request) -> JSONResponse:
        base = f"{str(request.base_url).rstrip('/')}/{request.path_params['tenant']}"
        return JSONResponse({"issuer": base, "jwks_uri": f"{base}/keys"})

    async def keys(request: Request) -> JSONResponse:
        return JSONResponse({"keys": [KEYS[request.path_params["tenant"]].as_dict(private=False)]})

    routes = [Route("/{tenant}/.well-known/openid-configuration", about), Route("/{tenant}/keys", keys)]

    class Served:
        app = Starlette(routes=routes)

    served: Any = Served()
    server: uvicorn.Server
    async with serve_host(served) as server:
        yield Issuers(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
