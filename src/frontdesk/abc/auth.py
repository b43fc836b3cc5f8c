"""How an HTTP channel finds out who is calling."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from starlette.types import Scope

from frontdesk.abc.drawers.nonces import Nonces
from frontdesk.data.isolation import IsolationKeys
from frontdesk.data.noun import Value


class Principal(Value, frozen=True, kw_only=True):
    """Who an HTTP caller was proved to be."""

    id: str
    claims: Mapping[str, Any] = {}
    isolation: IsolationKeys | None = None
    """What a trusted platform said about whose data this is."""


@runtime_checkable
class HttpAuth(Protocol):
    """Checks the credentials of an HTTP request."""

    name: str

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        """The principal; `None` without credentials of this kind; `UnauthenticatedError` when they are wrong."""
        ...


@runtime_checkable
class RequestAuth(Protocol):
    """Checks credentials that speak of more than headers: of the method, the path or the connection."""

    name: str

    async def authenticate_request(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal | None:
        """As `HttpAuth.authenticate`, with the whole ASGI scope."""
        ...

    async def recheck(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal | None:
        """The same for a connection that was let in before and is still open."""
        ...


@runtime_checkable
class SignsBodies(Protocol):
    """Credentials that cover the hash of the body, which a header names."""

    body_header: bytes
    """The header with the SHA-256 of the body; what it says is held against the body when that is read."""


@runtime_checkable
class ShowsSchemes(Protocol):
    """Credentials that an OpenAPI document can describe."""

    security_schemes: Mapping[str, Mapping[str, str]]
    """The security schemes of OpenAPI by their names; any one of them will do."""


@runtime_checkable
class AsksEnvironment(Protocol):
    """Credentials that depend on where the process runs."""

    def look(self, variable: Callable[[str], str | None]) -> None:
        """Called once, when the host is built, with what reads a variable of the environment."""
        ...


@runtime_checkable
class UsesNonces(Protocol):
    """Credentials that count once, and have to be remembered for that."""

    def use_nonces(self, nonces: Nonces, *, durable: bool) -> None:
        """Called whenever the host starts, with the nonces of its store; `durable`: they survive the process."""
        ...


OneAuth = HttpAuth | RequestAuth
Auth = OneAuth | Sequence[OneAuth]
