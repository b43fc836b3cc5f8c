"""Finds callers with free identities, such as cookies. They share one limit: limits per caller have no effect."""

from collections.abc import Mapping

from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.identity import Caller


class UnlinkedVisitors:
    """Callers without credentials and account that have their own identities, such as by a cookie."""

    def __init__(self, store: HostStateStore, channels: Mapping[str, Channel]) -> None:
        self._identities = store.identities
        self.channels = frozenset(name for name, channel in channels.items() if channel.identifies_anonymous_callers)
        """The names of the channels that have such callers."""

    async def includes(self, caller: Caller) -> bool:
        """Return True if a caller is unlinked, or linked only with other visitors."""
        if caller.identity.channel not in self.channels:
            return False
        link = await self._identities.link(caller.identity)
        if link is None:
            return True
        if link.subject is not None:
            return False
        links = await self._identities.links(link.isolation_key)
        return all(other.subject is None and other.identity.channel in self.channels for other in links)
