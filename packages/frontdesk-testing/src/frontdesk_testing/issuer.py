"""A stand-in for an identity provider, to try signing in on one machine: `python -m frontdesk_testing.issuer`.

It is an OpenID Connect issuer on the loopback address with two people who sign in by a click: Ada, who is of
the staff, and Bob, who is not. It proves nothing about anybody, and sends people back to this machine alone.
"""

import base64
import hashlib
import html
from argparse import ArgumentParser
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from frontdesk.auth.local_callers import is_loopback
from frontdesk.clock import SystemClock
from frontdesk.ids import new_secret

PORT = 8901
PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {"sub": "ada", "name": "Ada", "email": "ada@example.com", "email_verified": True, "groups": ["staff"]},
    "bob": {"sub": "bob", "name": "Bob", "email": "bob@example.com", "email_verified": True, "groups": ["guests"]},
}
_LIFETIME_SECONDS = 300
_MAX_BODY_BYTES = 16 * 1024
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign in</title>
<body style="font-family: sans-serif; margin: 3em"><h1>A stand-in for an identity provider</h1><p>Who are you?</p>{}
"""


class _Grant(NamedTuple):
    person: str
    client_id: str
    redirect_uri: str
    nonce: str
    challenge: str


class Issuer:
    """The issuer: its key, and the codes that were not exchanged yet."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._key = RSAKey.generate_key(2048, {"kid": "the-key", "use": "sig"})
        self._grants: dict[str, _Grant] = {}
        self._clock = SystemClock()

    @property
    def app(self) -> Starlette:
        """Return the app of the issuer."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discovery),
                Route("/jwks", self._keys),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    async def _discovery(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/jwks",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
            }
        )

    async def _keys(self, request: Request) -> Response:
        return JSONResponse({"keys": [self._key.as_dict(private=False)]})

    async def _authorize(self, request: Request) -> Response:
        """Show the people who can sign in, or redirect with the chosen one."""
        asked = dict(request.query_params)
        place = asked.get("redirect_uri", "")
        if not is_loopback(urlsplit(place).hostname or ""):
            return HTMLResponse(_PAGE.format("<p>This sends people back to this machine alone.</p>"), 400)
        if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
            return HTMLResponse(_PAGE.format("<p>The request has no PKCE challenge.</p>"), 400)
        person = asked.pop("person", "")
        if person not in PEOPLE:
            return HTMLResponse(_PAGE.format("".join(_choice(name, asked) for name in PEOPLE)))
        code = new_secret()
        self._grants[code] = _Grant(
            person, asked.get("client_id", ""), place, asked.get("nonce", ""), asked["code_challenge"]
        )
        back = {"code": code, "state": asked.get("state", "")}
        return RedirectResponse(f"{place}{'&' if '?' in place else '?'}{urlencode(back)}", 302)

    async def _token(self, request: Request) -> Response:
        """Exchange a code, once, for the token of the person who was chosen."""
        form = await _form(request)
        grant = self._grants.pop(form.get("code", ""), None)
        if grant is None or form.get("redirect_uri") != grant.redirect_uri:
            return JSONResponse({"error": "invalid_grant"}, 400)
        proof = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(proof).rstrip(b"=").decode() != grant.challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(self._clock.now())
        claims = {
            **PEOPLE[grant.person],
            "iss": self.url,
            "aud": grant.client_id,
            "iat": now,
            "exp": now + _LIFETIME_SECONDS,
        }
        token = jwt.encode({"alg": "RS256", "kid": "the-key"}, {**claims, "nonce": grant.nonce}, self._key)
        answer = {
            "access_token": new_secret(),
            "token_type": "Bearer",
            "expires_in": _LIFETIME_SECONDS,
            "id_token": token,
        }
        return JSONResponse(answer)


def _choice(name: str, asked: dict[str, str]) -> str:
    link = html.escape(f"/authorize?{urlencode({**asked, 'person': name})}")
    return f'<p><a href="{link}">{html.escape(str(PEOPLE[name]["name"]))}</a></p>'


async def _form(request: Request) -> dict[str, str]:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_BODY_BYTES:
            return {}
    return {name: values[-1] for name, values in parse_qs(body.decode("latin-1")).items()}


def main() -> None:
    """Serve it until Ctrl-C."""
    parser = ArgumentParser(
        prog="python -m frontdesk_testing.issuer", description="A stand-in for an identity provider."
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"{PORT} if not given")
    port = parser.parse_args().port
    url = f"http://127.0.0.1:{port}"
    print(f"The issuer is {url}; Ctrl-C stops it.", flush=True)
    uvicorn.run(Issuer(url).app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
