"""The interfaces for authenticating callers of an HTTP channel."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from starlette.types import Scope

from frontdesk.interfaces.abilities import auth_ability
from frontdesk.interfaces.store import Nonces
from frontdesk.models.base import FrozenStruct
from frontdesk.models.identity import IsolationKeys


class Principal(FrozenStruct, frozen=True, kw_only=True):
    """The authenticated identity of an HTTP caller."""

    id: str
    claims: Mapping[str, Any] = {}
    isolation: IsolationKeys | None = None
    """The keys of a trusted platform that say whose data this is."""


@runtime_checkable
class HttpAuth(Protocol):
    """Checks the credentials of an HTTP request."""

    name: str

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        """Return the principal, or None without credentials of this kind. Wrong ones raise `UnauthenticatedError`."""
        ...


@runtime_checkable
class RequestAuth(Protocol):
    """Checks credentials that depend on the method, the path or the connection besides headers."""

    name: str

    async def authenticate_request(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal | None:
        """Like `HttpAuth.authenticate`, with the whole ASGI scope."""
        ...

    async def recheck(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal | None:
        """Like `authenticate_request`, for an open connection that was authenticated before."""
        ...


@auth_ability
class SignsBodies(ABC):
    """Credentials that sign the hash of the body given in a header."""

    body_header: bytes | None
    """The header with the SHA-256 of the body; what it says is held against the body when that is read."""


@auth_ability
class ShowsSchemes(ABC):
    """Credentials that an OpenAPI document can describe."""

    security_schemes: Mapping[str, Mapping[str, str]]
    """The security schemes of OpenAPI by their names; any one of them will do."""


@auth_ability
class ShowsIssuers(ABC):
    """Tokens of OAuth authorization servers, for the metadata of a protected resource (RFC 9728)."""

    authorization_servers: Sequence[str]
    """The issuers whose tokens are accepted."""
    audiences: Sequence[str]
    """The audiences of which a token must have one."""
    scopes: Sequence[str]
    """The scopes that every token needs."""


@auth_ability
class AsksEnvironment(ABC):
    """Credentials that depend on the environment of the process."""

    @abstractmethod
    def look(self, variable: Callable[[str], str | None]) -> None:
        """Receive the reader of environment variables. Called once, when the host is built."""


@auth_ability
class UsesNonces(ABC):
    """Single-use credentials. Used ones have to be stored."""

    @abstractmethod
    def use_nonces(self, nonces: Nonces, *, durable: bool) -> None:
        """Receive the store's nonces at every start of the host. `durable` if they survive the process."""


OneAuth = HttpAuth | RequestAuth
Auth = OneAuth | Sequence[OneAuth]
