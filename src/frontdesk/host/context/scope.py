"""Base of the groups of a `ChannelContext`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from frontdesk.errors import NotFoundError, UnauthenticatedError
from frontdesk.host.wiring import Components
from frontdesk.interfaces.access import Allowed
from frontdesk.models.identity import Caller, IdentityRecord

_NOBODY = "An anonymous caller has no account to link."
T = TypeVar("T")


class ScopedCalls:
    """The calls of one channel. Each is made for a caller and limited to the caller's own data."""

    def __init__(self, channel: str, parts: Components) -> None:
        self.channel = channel
        self._parts = parts
        self._store = parts.store

    async def _readable(self, caller: Caller, look: Callable[[str], Awaitable[T | None]]) -> T | None:
        """Return the record under the caller's key, or under a key from before the caller was linked."""
        own = (await self._authorize(caller)).isolation_key
        record = None if own is None else await look(own)
        if record is None:
            identity = await self._store.identities.find(self._parts.keys.get_principal(caller.identity))
            for key in () if identity is None else self._earlier_keys(identity):
                if (record := await look(key)) is not None:
                    break
        return record

    def _earlier_keys(self, identity: IdentityRecord) -> Sequence[str]:
        """Return the earlier keys of a person. Those of links only on a host with a linker."""
        return (*(() if self._parts.links is None else identity.archived), *identity.joined)

    async def _owner(self, caller: Caller, missing: str = "No data is stored for this caller.") -> str:
        """Return the owner key of the caller's data. Raises with `missing` for an unknown caller."""
        allowed = await self._authorize(caller)
        if allowed.isolation_key is None:
            raise NotFoundError(missing)
        return allowed.isolation_key

    def _authorize(self, caller: Caller) -> Awaitable[Allowed]:
        return self._parts.gate.authorize(caller, self.channel)

    async def _not_denied(self, caller: Caller) -> None:
        """Reject a caller without access. A caller that has to link first is allowed to link."""
        if caller.anonymous:
            raise UnauthenticatedError(_NOBODY)
        decision = await self._parts.gate.decide(caller, self.channel)
        self._parts.gate.not_denied(decision, caller.identity)
