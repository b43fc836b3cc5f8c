"""Looks up the isolation keys of identities. A look-up writes nothing; a key is issued only after authorization."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from frontdesk.abc.allowlist import IdentityResolver
from frontdesk.abc.store import HostStateStore
from frontdesk.access.families import first_of
from frontdesk.clock import Clock
from frontdesk.data.identity import ChannelIdentity, IdentityRecord
from frontdesk.ids import Ids
from frontdesk.kit.aio.calls import maybe_await
from frontdesk.kit.hooks import call_access
from frontdesk.loggers import access as log


class _Watched(dict[str, Any]):
    """Attributes that note when a missing one is read."""

    missed = False

    def __missing__(self, name: str) -> Any:
        self.missed = True
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        present = super().__contains__(name)
        self.missed = self.missed or not present
        return present

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
        """Tell whether an identity without a key gets one; otherwise the operator's resolver has refused it."""
        return self._resolver is None

    async def look_up(self, identity: ChannelIdentity) -> str | None:
        """Return the key of an identity, if it has one."""
        if self._resolver is not None:
            return await _resolve(self._resolver, identity)
        record = await self._store.identities.find(identity)
        return None if record is None else record.isolation_key

    async def ask_before_hook(self, identity: ChannelIdentity) -> tuple[str | None, bool]:
        """Return the key of an identity, and whether the resolver missed an attribute that a hook may add."""
        if self._resolver is None:
            return await self.look_up(identity), False
        watched = _Watched(identity.attributes)
        key = await _resolve(self._resolver, identity.replace(attributes=watched))
        return key, key is None and watched.missed

    async def identities_of(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        """Return the known identities that share a key; about those without a link the resolver decides."""
        identities = await self._store.identities.of_owner(isolation_key)
        if self._resolver is None:
            return identities
        return [identity for identity in identities if await self._is_of(identity, isolation_key)]

    async def places_of(self, isolation_key: str, shared: Collection[str]) -> Sequence[ChannelIdentity]:
        """Return the same, with the first identity alone on the channels that show all of a person's one mailbox."""
        identities = await self.identities_of(isolation_key)
        counted = Counter(identity.channel for identity in identities if identity.channel in shared)
        if not any(count > 1 for count in counted.values()):
            return identities
        links = [link for link in await self._store.identities.links(isolation_key) if link.identity.channel in shared]
        groups = [[link for link in links if link.identity.channel == channel] for channel in counted]
        first = {first_of(group).identity.key for group in groups if group}
        return [one for one in identities if counted[one.channel] < 2 or one.key in first]

    async def _is_of(self, identity: ChannelIdentity, isolation_key: str) -> bool:
        link = await self._store.identities.link(identity)
        return link is not None or await self.look_up(identity) == isolation_key

    async def record(self, identity: ChannelIdentity) -> IdentityRecord | None:
        """Return the record of an identity as it is now, whatever other processes have written."""
        return await self._store.identities.find(identity, fresh=True)

    async def issue(self, identity: ChannelIdentity) -> str | None:
        """Return the key of an allowed identity, issued if need be; `None` if the operator's resolver refuses it."""
        if self._resolver is not None:
            return await _resolve(self._resolver, identity)
        record = IdentityRecord(identity=identity, isolation_key=self._ids.new("key"), created_at=self._clock.now())
        return (await self._store.identities.remember(record)).isolation_key


async def _resolve(resolver: IdentityResolver, identity: ChannelIdentity) -> str | None:
    key = await call_access("identity_resolver", _call_resolver, resolver, identity)
    if key is not None and not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        # Anything but a text, such as True, would be the same key for everyone.
        log.error("the identity resolver has returned %s, which is no key: refused", type(key).__name__)
        return None
    return key or None


async def _call_resolver(resolver: IdentityResolver, identity: ChannelIdentity) -> str | None:
    try:
        return await maybe_await(resolver(identity))
    except KeyError:
        # The attribute that it reads is missing: it does not know this identity.
        return None
