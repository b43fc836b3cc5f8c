"""The channel as an OAuth resource server: its metadata (RFC 9728) and the challenges that name it. Pure."""

from collections.abc import Sequence
from typing import Any

from starlette.types import Scope

from frontdesk.asgi.messages import RawHeaders
from frontdesk.interfaces.auth import OneAuth, ShowsIssuers

WELL_KNOWN = "/oauth-protected-resource"
_CHALLENGE = b"www-authenticate"


def find_issuers(auth: OneAuth | None) -> ShowsIssuers | None:
    """Return the auth if it accepts tokens of OAuth issuers."""
    return auth if isinstance(auth, ShowsIssuers) and auth.authorization_servers else None


def base_url(public_url: str | None, scope: Scope) -> str:
    """Return the URL of the host for others. Without a public one, the URL of the request."""
    if public_url is not None:
        return public_url
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return f"{scope['scheme']}://{host}{scope.get('root_path', '')}"


def metadata(auth: ShowsIssuers, resource: str, name: str) -> dict[str, Any]:
    """Return the metadata of the protected resource."""
    document: dict[str, Any] = {
        "resource": resource,
        "authorization_servers": list(auth.authorization_servers),
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
    if auth.scopes:
        document["scopes_supported"] = list(auth.scopes)
    return document


def with_metadata(headers: RawHeaders, url: str, scopes: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an error. Its challenge names the metadata, and the scopes that are needed."""
    more = f'resource_metadata="{url}"'
    if scopes:
        more += f', scope="{" ".join(scopes)}"'
    return [(name, _joined(value, more) if name == _CHALLENGE else value) for name, value in headers]


def _joined(challenge: bytes, more: str) -> bytes:
    separator = b" " if challenge == b"Bearer" else b", "
    return challenge + separator + more.encode("latin-1", "replace")


def audience_warning(auth: ShowsIssuers, resource: str) -> str | None:
    """Return the warning if clients that follow RFC 8707 get tokens that are rejected."""
    if resource in auth.audiences or f"{resource}/" in auth.audiences:
        return None
    return (
        f"auth: no audience of BearerAuth is {resource!r}. MCP clients request tokens for this URL (RFC 8707). Add it "
        "to audience=, unless the authorization server maps it to one of its own audiences"
    )
