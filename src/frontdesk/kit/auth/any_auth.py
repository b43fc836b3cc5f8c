"""Several kinds of credentials, offered together."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from starlette.types import Scope

from frontdesk.abc.auth import (
    AsksEnvironment,
    Auth,
    HttpAuth,
    OneAuth,
    Principal,
    RequestAuth,
    ShowsSchemes,
    SignsBodies,
    UsesNonces,
)
from frontdesk.abc.drawers.nonces import Nonces
from frontdesk.errors import UnauthenticatedError
from frontdesk.kit.http.asgi import Headers

_BEARER = {"type": "http", "scheme": "bearer"}


class AnyAuth:
    """The first kind of credentials that a request brings decides; wrong ones are not made good by another.

    A principal is called `api_key:alice`, by the name of its kind and its own, so that two kinds never mean the same
    one by accident. `keep_ids_of` names the kind whose principals are called as they are without this.
    """

    def __init__(self, auths: Sequence[OneAuth], *, keep_ids_of: str | None = None) -> None:
        names = [one.name for one in auths]
        if not auths or len(set(names)) < len(names) or not all(names):
            raise ValueError(f"AnyAuth: each of several kinds of auth needs a name of its own, not {names!r}")
        if keep_ids_of is not None and keep_ids_of not in names:
            raise ValueError(f"AnyAuth: keep_ids_of={keep_ids_of!r} is none of {names!r}")
        signed = {one.body_header for one in auths if isinstance(one, SignsBodies)}
        if len(signed) > 1:
            raise ValueError("AnyAuth: all that sign bodies must name the hash in the same header")
        self.name = " or ".join(names)
        self.body_header: bytes | None = signed.pop() if signed else None
        self.gives_claims = any(getattr(one, "gives_claims", True) for one in auths)
        self.security_schemes = {name: one for auth in auths for name, one in schemes_of(auth).items()}
        self._auths = tuple(auths)
        self._members = [_Member(one, "" if one.name == keep_ids_of else f"{one.name}:") for one in auths]
        self._prefixes = tuple(one.prefix for one in self._members if one.prefix)

    def look(self, variable: Callable[[str], str | None]) -> None:
        for one in self._auths:
            if isinstance(one, AsksEnvironment):
                one.look(variable)

    def use_nonces(self, nonces: Nonces, *, durable: bool) -> None:
        for one in self._auths:
            if isinstance(one, UsesNonces):
                one.use_nonces(nonces, durable=durable)

    async def authenticate_request(self, scope: Scope, headers: Headers) -> Principal | None:
        for one in self._members:
            principal = await one.ask(scope, headers)
            if principal is not None:
                return self._named(one, principal)
        return None

    async def recheck(self, scope: Scope, headers: Headers) -> Principal | None:
        for one in self._members:
            principal = await one.recheck(scope, headers)
            if principal is not None:
                return self._named(one, principal)
        return None

    def _named(self, one: "_Member", principal: Principal) -> Principal:
        if one.prefix:
            return principal.replace(id=one.prefix + principal.id)
        if principal.id.startswith(self._prefixes):
            # It would pass for one of another kind.
            raise UnauthenticatedError
        return principal

    def __repr__(self) -> str:
        return f"AnyAuth({self.name})"


class _Member:
    """One kind, asked in whichever way it can be."""

    def __init__(self, auth: OneAuth, prefix: str) -> None:
        self.prefix = prefix
        self._request = auth if isinstance(auth, RequestAuth) else None
        self._plain = auth if isinstance(auth, HttpAuth) else None
        if self._request is None and self._plain is None:
            raise not_an_auth(auth)

    async def ask(self, scope: Scope, headers: Headers) -> Principal | None:
        if self._request is not None:
            return await self._request.authenticate_request(scope, headers)
        return None if self._plain is None else await self._plain.authenticate(headers)

    async def recheck(self, scope: Scope, headers: Headers) -> Principal | None:
        if self._request is not None:
            return await self._request.recheck(scope, headers)
        return await self.ask(scope, headers)


def schemes_of(auth: OneAuth | None) -> Mapping[str, Mapping[str, str]]:
    """How an OpenAPI document describes credentials; those that say nothing are taken for bearer tokens."""
    if auth is None:
        return {}
    return auth.security_schemes if isinstance(auth, ShowsSchemes) else {auth.name: _BEARER}


def as_auth(given: Auth | None) -> OneAuth | None:
    """What a channel was given as `auth`: one kind, or several as a list."""
    if isinstance(given, (list, tuple)):
        return AnyAuth(cast(Sequence[OneAuth], given))
    if given is None or isinstance(given, (HttpAuth, RequestAuth)):
        return given
    raise not_an_auth(given)


def not_an_auth(given: object) -> TypeError:
    """What to say about something that can't be asked who is calling."""
    return TypeError(
        f"auth: {type(given).__name__} is neither an HttpAuth (name, authenticate) "
        "nor a RequestAuth (name, authenticate_request, recheck)"
    )
