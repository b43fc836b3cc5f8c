"""Groups of senders that share the slots for event processing.

Each channel is a group. On a channel with free identities, such as cookies, a limit per sender has no effect. All
senders of such channels without a linked account are one group together.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from frontdesk.access.visitors import UnlinkedVisitors
from frontdesk.errors import StoreUnavailableError
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.runner import TaskGroups
from frontdesk.models.delivery import InboxItem

UNLINKED = ":unlinked"
"""The group of all unlinked visitors. No channel has this name."""
_MAX_CONVERSATIONS = 20_000


class SenderGroups:
    """Determines the group of each event, and stores it for the conversation of the event."""

    def __init__(self, channels: Mapping[str, Channel], visitors: UnlinkedVisitors) -> None:
        self._visitors = visitors
        self._open = visitors.channels
        self._channels = tuple(name for name, channel in channels.items() if channel.session_family == "host_tracked")
        self._of: OrderedDict[tuple[str, str], str] = OrderedDict()

    @property
    def channels(self) -> tuple[str, ...]:
        return self._channels

    def task_groups(self) -> TaskGroups:
        """Return the groups in the format of a runner."""
        return TaskGroups((*self._channels, UNLINKED) if self._open else self._channels, self._get_group)

    async def note(self, item: InboxItem) -> None:
        """Store the group of an event for its conversation."""
        if item.channel not in self._open:
            return
        conversation = (item.channel, item.conversation_id)
        try:
            unlinked = await self._visitors.includes(item.caller)
        except StoreUnavailableError:
            # The event is answered all the same, in the share of the unlinked.
            return
        self._of[conversation] = UNLINKED if unlinked else item.channel
        self._of.move_to_end(conversation)
        if len(self._of) > _MAX_CONVERSATIONS:
            self._of.popitem(last=False)

    async def note_unknown(self, item: InboxItem) -> None:
        """Store the group of an event that another process has accepted."""
        if (item.channel, item.conversation_id) not in self._of:
            await self.note(item)

    async def build_sender(self, item: InboxItem) -> tuple[str, str]:
        """Return the unit of fair scheduling: an account, or all unlinked visitors together."""
        await self.note_unknown(item)
        unlinked = item.channel in self._open and self._of.get((item.channel, item.conversation_id)) != item.channel
        return (UNLINKED, "") if unlinked else item.caller.identity.key

    def _get_group(self, payload: Mapping[str, Any]) -> str:
        channel = payload["channel"]
        if channel not in self._open:
            return channel
        # An unknown one is unlinked until its event was read: nobody gets more than the unlinked by being unknown.
        return self._of.get((channel, payload["conversation_id"]), UNLINKED)
