"""The base of every context: finds the owner of what a caller may see."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from frontdesk.abc.allowlist import Allowed
from frontdesk.data.identity import Caller
from frontdesk.errors import NotFoundError
from frontdesk.host.parts import Parts

T = TypeVar("T")


class ScopedCalls:
    """The calls of one channel, each made for a caller, who sees only what is theirs."""

    def __init__(self, channel: str, parts: Parts) -> None:
        self.channel = channel
        self._parts = parts
        self._store = parts.store

    async def _readable(self, caller: Caller, look: Callable[[str], Awaitable[T | None]]) -> T | None:
        """Return the record under the caller's key, or under one that they had before they were linked."""
        record = await look(await self._owner(caller))
        if record is None and self._parts.links is not None:
            identity = await self._store.identities.find(caller.identity)
            for key in () if identity is None else identity.archived:
                if (record := await look(key)) is not None:
                    break
        return record

    async def _owner(self, caller: Caller) -> str:
        """Return the key that owns what the caller may see; for an unknown caller nothing exists."""
        allowed = await self._allowed(caller)
        if allowed.isolation_key is None:
            raise NotFoundError
        return allowed.isolation_key

    def _allowed(self, caller: Caller) -> Awaitable[Allowed]:
        return self._parts.gate.authorize(caller, self.channel)
