"""The calls of a context that are about the channel itself: not made for a caller, and blind to other channels."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from frontdesk.data.leadership import Leadership


class ChannelStateContext(Protocol):
    """What a channel needs to work on many replicas."""

    def leadership(self, name: str) -> AbstractAsyncContextManager[Leadership]:
        """Wait until this process is the only one that runs the block, over all replicas; for a poller and the like.

        Names are per channel. When the leadership can't be kept, the block is cancelled and left with a
        `LeadershipLostError`; to go on, ask again. A process that dies is followed when its lease ends.
        """
        ...
