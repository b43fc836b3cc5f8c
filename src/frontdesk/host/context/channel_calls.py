"""What a channel gets for itself, on all replicas alike."""

from contextlib import AbstractAsyncContextManager

from frontdesk.abc.channel_state import ChannelStorage
from frontdesk.data.leadership import Leadership
from frontdesk.host.context.session_calls import SessionCalls


class ChannelCalls(SessionCalls):
    """The part of a `ChannelContext` that is about the channel itself."""

    def leadership(self, name: str) -> AbstractAsyncContextManager[Leadership]:
        return self._parts.leaders.lead(self.channel, name)

    def channel_storage(self, name: str) -> ChannelStorage:
        return self._parts.storages.of(self.channel, name)
