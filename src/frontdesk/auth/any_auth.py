"""`AnyAuth`: accepts any of several kinds of credentials."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast

from starlette.types import Scope

from frontdesk.asgi.messages import Headers
from frontdesk.errors import UnauthenticatedError
from frontdesk.interfaces.auth import (
    AsksEnvironment,
    Auth,
    HttpAuth,
    OneAuth,
    Principal,
    RequestAuth,
    ShowsIssuers,
    ShowsSchemes,
    SignsBodies,
    UsesNonces,
)
from frontdesk.interfaces.store import Nonces

Undecided = Literal["undecided"]
UNDECIDED: Undecided = "undecided"
_BEARER = {"type": "http", "scheme": "bearer"}


class AnyAuth(AsksEnvironment, ShowsIssuers, ShowsSchemes, SignsBodies, UsesNonces):
    """Combines several kinds of credentials. The first kind present decides, with no fallback if it is invalid.

    A principal is called `api_key:alice`, after its kind and its own name, so that principals of two kinds never
    collide. `keep_ids_of` names the kind whose principals keep their unprefixed names. `None` means there is none.
    """

    def __init__(self, auths: Sequence[OneAuth], *, keep_ids_of: str | Undecided | None = "undecided") -> None:
        names = [auth.name for auth in auths]
        if not auths or len(set(names)) < len(names) or not all(names):
            raise ValueError(f"AnyAuth: the names of its auths must be unique, got {names!r}")
        self.renames = keep_ids_of == UNDECIDED
        """Whether principals are called by their kind, and nobody has said that none had a plain name before."""
        if not self.renames and keep_ids_of is not None and keep_ids_of not in names:
            raise ValueError(f"AnyAuth: keep_ids_of must be one of {names!r}, got {keep_ids_of!r}")
        signed = {auth.body_header for auth in auths if isinstance(auth, SignsBodies)} - {None}
        if len(signed) > 1:
            raise ValueError("AnyAuth: auths that sign bodies must use the same header for the body hash")
        self.name = " or ".join(names)
        self.body_header: bytes | None = signed.pop() if signed else None
        self.gives_claims = any(getattr(auth, "gives_claims", True) for auth in auths)
        self.security_schemes = {name: scheme for auth in auths for name, scheme in collect_schemes(auth).items()}
        self.auths = tuple(auths)
        oauth = [auth for auth in auths if isinstance(auth, ShowsIssuers)]
        self.authorization_servers = tuple(dict.fromkeys(url for auth in oauth for url in auth.authorization_servers))
        self.audiences = tuple(dict.fromkeys(one for auth in oauth for one in auth.audiences))
        self.scopes = tuple(dict.fromkeys(scope for auth in oauth for scope in auth.scopes))
        self._members = [_Member(auth, "" if auth.name == keep_ids_of else f"{auth.name}:") for auth in auths]
        self.members = tuple((id(member.auth), member.prefix) for member in self._members)
        """The checks in their order, each with the prefix of its principals: equal for lists of the same objects."""
        self._prefixes = tuple(member.prefix for member in self._members if member.prefix)

    def look(self, variable: Callable[[str], str | None]) -> None:
        for auth in self.auths:
            if isinstance(auth, AsksEnvironment):
                auth.look(variable)

    def use_nonces(self, nonces: Nonces, *, durable: bool) -> None:
        for auth in self.auths:
            if isinstance(auth, UsesNonces):
                auth.use_nonces(nonces, durable=durable)

    async def authenticate_request(self, scope: Scope, headers: Headers) -> Principal | None:
        for member in self._members:
            principal = await member.ask(scope, headers)
            if principal is not None:
                return self._add_prefix(member, principal)
        return None

    async def recheck(self, scope: Scope, headers: Headers) -> Principal | None:
        for member in self._members:
            principal = await member.recheck(scope, headers)
            if principal is not None:
                return self._add_prefix(member, principal)
        return None

    def _add_prefix(self, member: "_Member", principal: Principal) -> Principal:
        if member.prefix:
            return principal.replace(id=member.prefix + principal.id)
        if principal.id.startswith(self._prefixes):
            # It would pass for one of another kind.
            raise UnauthenticatedError
        return principal

    def __repr__(self) -> str:
        return f"AnyAuth({self.name})"


def rename_warnings(auth: object) -> list[str]:
    """Return warnings, one line each, if callers' data may be stored under a different principal name."""
    if not isinstance(auth, AnyAuth) or not auth.renames:
        return []
    return [
        f"auth: several kinds ({auth.name}), and each principal is called by its kind, such as api_key:alice; if one "
        "of them was the only kind before, its callers no longer find what is theirs: name it with "
        "AnyAuth([...], keep_ids_of=...), or say keep_ids_of=None"
    ]


class _Member:
    """One kind of credentials, called in any way it supports."""

    def __init__(self, auth: OneAuth, prefix: str) -> None:
        self.prefix = prefix
        self.auth = auth
        self._request = auth if isinstance(auth, RequestAuth) else None
        self._plain = auth if isinstance(auth, HttpAuth) else None
        if isinstance(auth, type) or (self._request is None and self._plain is None):
            raise not_an_auth(auth)

    async def ask(self, scope: Scope, headers: Headers) -> Principal | None:
        if self._request is not None:
            return await self._request.authenticate_request(scope, headers)
        return None if self._plain is None else await self._plain.authenticate(headers)

    async def recheck(self, scope: Scope, headers: Headers) -> Principal | None:
        if self._request is not None:
            return await self._request.recheck(scope, headers)
        return await self.ask(scope, headers)


def collect_schemes(auth: OneAuth | None) -> Mapping[str, Mapping[str, str]]:
    """Return the OpenAPI security schemes. A kind without a description counts as bearer tokens."""
    if auth is None:
        return {}
    return auth.security_schemes if isinstance(auth, ShowsSchemes) else {auth.name: _BEARER}


def as_auth(given: Auth | None) -> OneAuth | None:
    """Convert the `auth` of a channel, which may be a list, to one object."""
    if isinstance(given, (list, tuple)):
        return AnyAuth(cast(Sequence[OneAuth], given))
    if given is None or (isinstance(given, (HttpAuth, RequestAuth)) and not isinstance(given, type)):
        return given
    raise not_an_auth(given)


def not_an_auth(given: object) -> TypeError:
    if isinstance(given, type):
        return TypeError(f"auth: {given.__name__} is a class; give an instance: {given.__name__}(...)")
    return TypeError(
        f"auth: {type(given).__name__} is neither an HttpAuth (name, authenticate), such as ApiKeyAuth({{...}}), "
        "nor a RequestAuth (name, authenticate_request, recheck)"
    )
