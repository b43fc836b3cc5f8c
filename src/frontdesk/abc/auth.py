"""How an HTTP channel finds out who is calling."""

from collections.abc import Mapping
from typing import Any, Protocol

from frontdesk.data.noun import Noun


class Principal(Noun, frozen=True, kw_only=True):
    """Who an HTTP caller was proved to be."""

    id: str
    claims: Mapping[str, Any] = {}


class HttpAuth(Protocol):
    """Checks the credentials of an HTTP request."""

    name: str

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        """The principal; `None` without credentials of this kind; `UnauthenticatedError` when they are wrong."""
        ...
