"""What a channel gets for itself, on all replicas alike."""

from contextlib import AbstractAsyncContextManager

from frontdesk.data.leadership import Leadership
from frontdesk.host.context.session_calls import SessionCalls


class ChannelCalls(SessionCalls):
    """The part of a `ChannelContext` that is about the channel itself."""

    def leadership(self, name: str) -> AbstractAsyncContextManager[Leadership]:
        return self._parts.leaders.lead(self.channel, name)
