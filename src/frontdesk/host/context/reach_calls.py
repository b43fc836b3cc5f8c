"""The calls about reaching people, for a channel: it sees only the references that it has kept itself."""

from collections.abc import Mapping
from typing import Any

from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.errors import ForbiddenError
from frontdesk.host.context.link_calls import LinkCalls


class ReachCalls(LinkCalls):
    """The part of a `ChannelContext` that is about reaching people."""

    async def keep_reference(self, caller: Caller, reference: Mapping[str, Any]) -> None:
        await self._not_denied(caller)
        identity = caller.identity
        owner = await self._parts.gate.issue(identity)
        if not owner:
            raise ForbiddenError
        await self._parts.contacts.keep(identity, owner, reference)

    async def get_reference(self, identity: ChannelIdentity) -> Mapping[str, Any]:
        if identity.channel != self.channel:
            return {}
        return (await self._store.identities.reach(identity)).reference
