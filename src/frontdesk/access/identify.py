"""Looks up the isolation keys of identities. A lookup writes nothing. Keys are issued after authorization."""

from collections import Counter
from collections.abc import Awaitable, Collection, Sequence
from typing import Any

from frontdesk.access.families import find_first
from frontdesk.access.principals import Principals
from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import maybe_await
from frontdesk.hooks import call_access
from frontdesk.ids import Ids
from frontdesk.interfaces.access import IdentityResolver
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import access as log
from frontdesk.models.identity import ChannelIdentity, IdentityRecord


class _Watched(dict[str, Any]):
    """Attributes that record reads of missing keys."""

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
    def __init__(
        self,
        store: HostStateStore,
        ids: Ids,
        clock: Clock,
        resolver: IdentityResolver | None = None,
        principals: Principals | None = None,
    ) -> None:
        """Use `resolver`, or issue keys: one key for all identities of a principal on channels that share its auth."""
        self._store = store
        self._ids = ids
        self._clock = clock
        self._resolver = resolver
        self._principals = principals
        self.issues = resolver is None
        """Whether an identity without a key gets one; otherwise the operator's resolver has refused it."""

    def find_record(self, identity: ChannelIdentity) -> Awaitable[IdentityRecord | None]:
        """Return the record of an identity, possibly cached."""
        principals = self._principals
        if principals is not None and principals.are_shared:
            identity = principals.get_home(identity)
        return self._store.identities.find(identity)

    def get_principal(self, identity: ChannelIdentity) -> ChannelIdentity:
        """Return the canonical identity of an unlinked person."""
        return identity if self._principals is None else self._principals.get_home(identity)

    def list_names(self, identity: ChannelIdentity) -> Sequence[ChannelIdentity]:
        return (identity,) if self._principals is None else self._principals.list_names(identity)

    def find_alias(self, identity: ChannelIdentity, channel: str) -> ChannelIdentity:
        """Return the alias of an identity on a channel. Without one, return the identity unchanged."""
        return identity if self._principals is None else self._principals.find_alias(identity, channel)

    def list_channels(self, channel: str) -> Sequence[str]:
        """Return the channels that share the identities of a channel, including itself."""
        return (channel,) if self._principals is None else self._principals.list_channels(channel)

    async def look_up(self, identity: ChannelIdentity) -> str | None:
        if self._resolver is not None:
            return await _resolve(self._resolver, identity)
        record = await self._store.identities.find(self.get_principal(identity))
        return None if record is None else record.isolation_key

    async def ask_before_hook(self, identity: ChannelIdentity) -> tuple[str | None, bool]:
        """Return the key of an identity, and True if the resolver missed an attribute that a hook may add."""
        if self._resolver is None:
            return await self.look_up(identity), False
        watched = _Watched(identity.attributes)
        key = await _resolve(self._resolver, identity.replace(attributes=watched))
        return key, key is None and watched.missed

    async def list_identities(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        """Return the known identities that share a key. For unlinked identities the resolver decides."""
        identities = await self._store.identities.of_owner(isolation_key)
        if self._resolver is None:
            return identities
        return [identity for identity in identities if await self._matches(identity, isolation_key)]

    async def list_addresses(self, isolation_key: str, shared: Collection[str]) -> Sequence[ChannelIdentity]:
        """Return the identities of a key, with only the first one on channels that have one mailbox per person."""
        identities = await self.list_identities(isolation_key)
        counted = Counter(identity.channel for identity in identities if identity.channel in shared)
        if not any(count > 1 for count in counted.values()):
            return identities
        links = [link for link in await self._store.identities.links(isolation_key) if link.identity.channel in shared]
        groups = [[link for link in links if link.identity.channel == channel] for channel in counted]
        first = {find_first(group).identity.key for group in groups if group}
        return [one for one in identities if counted[one.channel] < 2 or one.key in first]

    async def _matches(self, identity: ChannelIdentity, isolation_key: str) -> bool:
        link = await self._store.identities.link(identity)
        return link is not None or await self.look_up(identity) == isolation_key

    async def record(self, identity: ChannelIdentity) -> IdentityRecord | None:
        """Return the current record of an identity, including writes of other processes."""
        return await self._store.identities.find(self.get_principal(identity), fresh=True)

    async def issue(self, identity: ChannelIdentity) -> str | None:
        """Return the key of an allowed identity, issuing it if needed, or None if the operator's resolver refuses
        it."""
        if self._resolver is not None:
            return await _resolve(self._resolver, identity)
        identity = self.get_principal(identity)
        record = IdentityRecord(identity=identity, isolation_key=self._ids.new("key"), created_at=self._clock.now())
        return (await self._store.identities.remember(record)).isolation_key


async def _resolve(resolver: IdentityResolver, identity: ChannelIdentity) -> str | None:
    key = await call_access("identity_resolver", _call_resolver, resolver, identity)
    if key is not None and not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        # Anything but a text, such as True, would be the same key for everyone.
        log.error("identity resolver returned no key, rejecting the caller: value=%s", type(key).__name__)
        return None
    return key or None


async def _call_resolver(resolver: IdentityResolver, identity: ChannelIdentity) -> str | None:
    try:
        return await maybe_await(resolver(identity))
    except KeyError:
        # The attribute that it reads is missing: it does not know this identity.
        return None
