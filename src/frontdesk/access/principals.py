"""Finds the channels that share principals because they share an auth object.

A principal has one identity: its id on the *home* channel of the channels that share the auth object. The name of the
home channel is stored, so principals keep their identity if channels are removed or reordered. A store that is older
than this rule keeps the earlier rule (each channel is its own home) until an operator joins the principals.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from frontdesk.access.policy import TierPolicy
from frontdesk.auth.any_auth import AnyAuth
from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.errors import ConflictError, RequestError, StoreError
from frontdesk.ids import Ids
from frontdesk.interfaces.access import LinkOperation
from frontdesk.interfaces.channel import Channel, ChannelPush
from frontdesk.interfaces.chat import PushesParts
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import access as log
from frontdesk.models.base import FrozenStruct
from frontdesk.models.channel_storage import SealedValue, ValueLocation
from frontdesk.models.identity import ANONYMOUS, ChannelIdentity

REFRESH_SECONDS = 2.0
"""The interval at which a host looks whether an operator has joined the principals, where processes share a store."""
_PLACE = ValueLocation(channel="", storage="principals", key="rule")
_MAX_TRIES = 8


class PrincipalRule(FrozenStruct, frozen=True, kw_only=True):
    format: Literal[1] = 1
    joined: bool = False
    """Whether channels that share an auth object share its principals."""
    homes: Mapping[str, str] = {}
    """The home of each channel, while `joined`."""
    shared: Mapping[str, str] = {}
    """The homes that channels of the host would have if an operator joined their principals."""


class StoredRule:
    def __init__(self, store: HostStateStore, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def read(self) -> tuple[PrincipalRule | None, str | None]:
        """Return the rule and its version. A None rule with a version cannot be read by this release."""
        found = await self._store.channel_values.get(_PLACE, now=self._clock.now())
        if found is None:
            return None, None
        try:
            return msgspec.json.decode(found.data, type=PrincipalRule), found.version
        except msgspec.DecodeError as error:
            log.error("principal rule cannot be decoded, channels share no principals: %s", error)
            return None, found.version

    async def write(self, rule: PrincipalRule, version: str | None) -> bool:
        """Replace the rule of a given version. Return False if the version has changed."""
        value = SealedValue(version=self._ids.new("ver"), key_id="", data=msgspec.json.encode(rule))
        return await self._store.channel_values.compare_and_set(_PLACE, version, value, now=self._clock.now())

    async def join(self) -> PrincipalRule:
        """Let the channels named by the hosts share their principals, and return the rule."""
        for _ in range(_MAX_TRIES):
            rule, version = await self.read()
            if rule is None:
                raise ConflictError(
                    "This state has no principal rule. Start a host whose channels share an auth on it first.",
                    code="changed",
                )
            joined = rule.replace(joined=True, homes={**rule.homes, **rule.shared})
            if joined == rule or await self.write(joined, version):
                return joined
        raise ConflictError("The principal rule was changed concurrently. Try again.", code="changed")

    async def people(self, channel: str, *, limit: int) -> Sequence[Mapping[str, Any]]:
        rows = await self._store.ledger.rows("people", by={"channel": channel}, limit=limit)
        return [row.columns for row in rows]

    async def is_new(self) -> bool:
        for kind in ("people", "sessions", "runs"):
            if await self._store.ledger.rows(kind, limit=1):
                return False
        return True


class Principals:
    """The channels of a host that share principals."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        policy: TierPolicy,
        clock: Clock,
        ids: Ids,
        *,
        resolves_itself: bool = False,
    ) -> None:
        """Share nothing until `start`. With `resolves_itself`, the operator's resolver groups identities into
        people."""
        self.stored = StoredRule(store, clock, ids)
        self._channels = channels
        self._policy = policy
        self._is_shared = store.lease_seconds is not None
        self._resolves_itself = resolves_itself
        self._groups = [] if resolves_itself else _group_principals(channels)
        self._homes: Mapping[str, str] = {}
        self.are_shared = False
        """Whether any channels share principals."""
        self._members: Mapping[str, tuple[str, ...]] = {}
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the rule of the store, or record one, and start watching it for changes."""
        if self._resolves_itself:
            return
        rule = await self._record_rule()
        await self._use(rule)
        if self._is_shared and rule is not None and any(self._homes.get(a) != b for a, b in rule.shared.items()):
            self._refreshing = spawn_clean(self._refresh())

    async def stop(self) -> None:
        task, self._refreshing = self._refreshing, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def reload(self) -> None:
        await self._use((await self.stored.read())[0])

    def home_of_channel(self, channel: str) -> str:
        """Return the home channel for principals of a channel."""
        return self._homes.get(channel, channel)

    def get_home(self, identity: ChannelIdentity) -> ChannelIdentity:
        """Return the canonical identity of a principal. Other identities are returned unchanged."""
        home = self._homes.get(identity.channel)
        if home is None or home == identity.channel or identity.native_id == ANONYMOUS:
            return identity
        return identity.replace(channel=home)

    def find_alias(self, identity: ChannelIdentity, channel: str) -> ChannelIdentity:
        """Return a principal as a user of a sharing channel. Other identities are returned unchanged."""
        if self._homes.get(channel) != identity.channel or channel == identity.channel:
            return identity
        return identity if identity.native_id == ANONYMOUS else identity.replace(channel=channel)

    def list_names(self, identity: ChannelIdentity) -> Sequence[ChannelIdentity]:
        """Return a principal as a user of each sharing channel. Other identities are returned alone."""
        home = self.get_home(identity)
        names = self._members.get(home.channel, ()) if identity.native_id != ANONYMOUS else ()
        return [identity.replace(channel=name) for name in names] or [identity]

    def list_channels(self, channel: str) -> Sequence[str]:
        """Return the channels of the host that share principals with a channel, including itself."""
        members = self._members.get(self.home_of_channel(channel), ())
        return [name for name in members if name in self._channels] or [channel]

    def present(self, channel: str) -> str:
        """Return a channel of the host for an identity's channel: another sharing channel if it was removed."""
        if channel in self._channels:
            return channel
        return self.list_channels(channel)[0]

    async def _record_rule(self) -> PrincipalRule | None:
        for _ in range(_MAX_TRIES):
            rule, version = await self.stored.read()
            if rule is None and version is not None:
                return None
            before = PrincipalRule(joined=await self.stored.is_new()) if rule is None else rule
            now = await self._complete(before)
            if now == rule or await self.stored.write(now, version):
                return now
        log.warning("principal rule changed concurrently, channels share no principals until the next start")
        return None

    async def _complete(self, rule: PrincipalRule) -> PrincipalRule:
        homes, shared = dict(rule.homes) if rule.joined else {}, dict[str, str]()
        for group in self._groups:
            for cluster in await self._clusters(group):
                known = [homes[name] for name in cluster if name in homes]
                home = next((each for each in known if self._may_be_home(each, group)), cluster[0])
                shared.update(dict.fromkeys(cluster, home))
                if rule.joined:
                    # A channel that was in use by itself goes on so until an operator joins it.
                    new = [name for name in cluster if name not in homes]
                    homes.update({name: name if await self._is_used(name) else home for name in new})
        kept = {name: home for name, home in rule.shared.items() if name not in self._channels}
        return rule.replace(homes=homes, shared={**kept, **shared})

    async def _is_used(self, channel: str) -> bool:
        people = await self.stored.people(channel, limit=2)
        return any(person["native_id"] != ANONYMOUS for person in people)

    def _may_be_home(self, home: str, group: Sequence[str]) -> bool:
        return home in group or home not in self._channels

    async def _clusters(self, group: Sequence[str]) -> list[list[str]]:
        """Group the channels that the link policy lets share pairwise."""
        clusters: list[list[str]] = []
        for name in group:
            for cluster in clusters:
                if await self._all_share(name, cluster):
                    cluster.append(name)
                    break
            else:
                clusters.append([name])
        return clusters

    async def _all_share(self, name: str, others: Sequence[str]) -> bool:
        for other in others:
            asked: Sequence[tuple[LinkOperation, str, str]] = (
                ("link", name, other),
                ("deliver", name, other),
                ("deliver", other, name),
            )
            for operation, source, destination in asked:
                try:
                    if not await self._policy.allows(operation, source, destination):
                        return False
                except RequestError:
                    # The policy has failed, and was logged: what it does not allow is not shared.
                    return False
        return True

    async def _use(self, rule: PrincipalRule | None) -> None:
        homes: dict[str, str] = {}
        if rule is not None and rule.joined:
            for group in self._groups:
                homes.update(await self._effective(group, rule.homes))
        members: dict[str, tuple[str, ...]] = {}
        for name, home in homes.items():
            members[home] = tuple(dict.fromkeys((*members.get(home, (home,)), name)))
        # Together, without an await between them.
        self._homes, self._members, self.are_shared = homes, members, bool(homes)

    async def _effective(self, group: Sequence[str], homes: Mapping[str, str]) -> dict[str, str]:
        """Return the effective homes of a group. A home must share the auth object, and the policy must allow it."""
        found: dict[str, list[str]] = {}
        for name in group:
            home = homes.get(name, name)
            claimed = [other for other, its in homes.items() if its == home and other in self._channels]
            # Of several groups nobody knows to which one a home belonged that was removed.
            usable = home in group if home in self._channels else all(other in group for other in claimed)
            members = found.setdefault(home, [home] if home in group else [])
            if home != name and usable and await self._all_share(name, [each for each in members if each != name]):
                members.append(name)
        return {name: home for home, names in found.items() for name in names}

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                rule, _ = await self.stored.read()
                await self._use(rule)
            except StoreError:
                continue
            if rule is None or all(self._homes.get(name) == home for name, home in rule.shared.items()):
                return


def _group_principals(channels: Mapping[str, Channel]) -> list[list[str]]:
    """Group channels by shared auth object.

    Channels that can send first are excluded, because people know them by their own names.
    """
    groups: dict[Any, list[str]] = {}
    for name, channel in channels.items():
        is_http = (
            channel.requires_auth_when_public
            and channel.session_family != "host_tracked"
            and not channel.identifies_anonymous_callers
        )
        if channel.auth is None or not is_http or channel.callers_of is not None:
            continue
        if not isinstance(channel, (ChannelPush, PushesParts)):
            groups.setdefault(_get_key(channel.auth), []).append(name)
    return list(groups.values())


def _get_key(auth: object) -> Any:
    """Return a value that identifies an auth object. Equal lists of the same objects produce equal keys."""
    return auth.members if type(auth) is AnyAuth else id(auth)
