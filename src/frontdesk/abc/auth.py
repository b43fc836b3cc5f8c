"""The verification of callers of an HTTP channel."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from starlette.types import Scope

from frontdesk.abc.drawers.nonces import Nonces
from frontdesk.data.isolation import IsolationKeys
from frontdesk.data.noun import Value


class Principal(Value, frozen=True, kw_only=True):
    """The identity that an HTTP caller has proved."""

    id: str
    claims: Mapping[str, Any] = {}
    isolation: IsolationKeys | None = None
    """The keys of a trusted platform that say whose data this is."""


@runtime_checkable
class HttpAuth(Protocol):
    """Checks the credentials of an HTTP request."""

    name: str

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        """Return the principal; `None` without credentials of this kind, `UnauthenticatedError` when they are wrong."""
        ...


@runtime_checkable
class RequestAuth(Protocol):
    """Checks credentials that speak of more than headers: of the method, the path or the connection."""

    name: str

    async def authenticate_request(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal | None:
        """Do the same as `HttpAuth.authenticate`, with the whole ASGI scope."""
        ...

    async def recheck(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal | None:
        """Do the same for a connection that was let in before and is still open."""
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
        """Take what reads a variable of the environment; called once, when the host is built."""
        ...


@runtime_checkable
class UsesNonces(Protocol):
    """Credentials that count once, and have to be remembered for that."""

    def use_nonces(self, nonces: Nonces, *, durable: bool) -> None:
        """Take the nonces of the store whenever the host starts; `durable` if they survive the process."""
        ...


OneAuth = HttpAuth | RequestAuth
Auth = OneAuth | Sequence[OneAuth]
