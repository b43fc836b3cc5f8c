"""Looks up whose request it is. Looking leaves nothing behind; a key is issued only to those who are let in."""

from collections.abc import Sequence
from typing import Any

from frontdesk.abc.allowlist import IdentityResolver
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.identity import ChannelIdentity, IdentityRecord
from frontdesk.ids import Ids
from frontdesk.kit.aio.calls import settle
from frontdesk.kit.hooks import call_access
from frontdesk.loggers import access as log


class _Watched(dict[str, Any]):
    """Attributes that take note when one is looked for that is not there."""

    missed = False

    def __missing__(self, name: str) -> Any:
        self.missed = True
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        found = super().__contains__(name)
        self.missed = self.missed or not found
        return found

    def get(self, name: str, default: Any = None) -> Any:
        self.missed = self.missed or not super().__contains__(name)
        return super().get(name, default)


class IdentityKeys:
    """Isolation keys: from the operator's own resolver, or issued on first contact and remembered."""

    def __init__(self, store: HostStateStore, ids: Ids, clock: Clock, resolver: IdentityResolver | None = None) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._resolver = resolver

    @property
    def issues(self) -> bool:
        """Whether an identity without a key gets one; otherwise the operator's resolver has refused it."""
        return self._resolver is None

    async def look_up(self, identity: ChannelIdentity) -> str | None:
        """The key of an identity that has one."""
        if self._resolver is not None:
            return await _resolved(self._resolver, identity)
        record = await self._store.identities.find(identity)
        return None if record is None else record.isolation_key

    async def ask_before_hook(self, identity: ChannelIdentity) -> tuple[str | None, bool]:
        """The key of an identity, and whether the operator's resolver missed an attribute that a hook may add."""
        if self._resolver is None:
            return await self.look_up(identity), False
        watched = _Watched(identity.attributes)
        key = await _resolved(self._resolver, identity.replace(attributes=watched))
        return key, key is None and watched.missed

    async def identities_of(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        """The identities that share a key, as far as they were seen; of those not linked the resolver decides."""
        found = await self._store.identities.of_owner(isolation_key)
        if self._resolver is None:
            return found
        return [one for one in found if await self._is_of(one, isolation_key)]

    async def _is_of(self, identity: ChannelIdentity, isolation_key: str) -> bool:
        link = await self._store.identities.link(identity)
        return link is not None or await self.look_up(identity) == isolation_key

    async def record(self, identity: ChannelIdentity) -> IdentityRecord | None:
        """Return the record of an identity as it is now, whatever other processes have written."""
        return await self._store.identities.find(identity, fresh=True)

    async def issue(self, identity: ChannelIdentity) -> str | None:
        """The key of an identity that was let in; `None` when the operator's resolver refuses it."""
        if self._resolver is not None:
            return await _resolved(self._resolver, identity)
        record = IdentityRecord(identity=identity, isolation_key=self._ids.new("key"), created_at=self._clock.now())
        return (await self._store.identities.remember(record)).isolation_key


async def _resolved(resolver: IdentityResolver, identity: ChannelIdentity) -> str | None:
    key = await call_access("identity_resolver", _asked, resolver, identity)
    if key is not None and not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        # Every answer that is no text, such as True, would be one person.
        log.error("the identity resolver has answered with %s, which is no key: refused", type(key).__name__)
        return None
    return key or None


async def _asked(resolver: IdentityResolver, identity: ChannelIdentity) -> str | None:
    try:
        return await settle(resolver(identity))
    except KeyError:
        # What it goes by is not there: it does not know them.
        return None
