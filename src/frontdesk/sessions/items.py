"""Keeps the items of a conversation consistent with the history of its session.

The target reads the history, people read the items. Both are written in one transaction, by the holder of the session.
New entries are appended to both. When an item is deleted, the history before it is ignored: the next turn rebuilds it
from the items that are left.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.conversations import ShowsItems
from frontdesk.abc.store import HostStateStore
from frontdesk.data.conversation import Conversation, ConversationItem
from frontdesk.data.request import AdmittedRequest
from frontdesk.data.result import HostedRunResult
from frontdesk.data.run import RunRecord
from frontdesk.errors import NotFoundError, RequestError
from frontdesk.kit.aio.large import run_weighed
from frontdesk.kit.hooks import show_result
from frontdesk.sessions.snapshot import rewritten


class TurnItems:
    """Makes the items that turns add to conversations, in the format of the channel that they came by."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    async def of(self, admitted: AdmittedRequest, run: RunRecord, conversation_id: str) -> list[ConversationItem]:
        """Return the items of a run that has ended."""
        channel = self._channels[run.channel]
        # An answer to an approval may arrive on a channel that has no items.
        showing = [each for each in (channel, *self._channels.values()) if isinstance(each, ShowsItems)]
        if not showing:
            return []
        bodies = await run_weighed(run.details, showing[0].turn_items, run, await self._shown(admitted, run))
        at = run.finished_at or run.created_at
        items = [
            ConversationItem(item_id=body["id"], conversation_id=conversation_id, created_at=at, body=body)
            for body in bodies
        ]
        return await prepared_items(items)

    async def _shown(self, admitted: AdmittedRequest, run: RunRecord) -> Any:
        """Return the result as its channel shows it: what the response hook hides is hidden in the items too."""
        if run.result is None:
            return None
        recorded = HostedRunResult(result=run.result, run=run)
        try:
            channel = self._channels[run.channel]
            return (await show_result(channel, recorded, admitted.request, admitted.identity)).result
        except RequestError:
            # The hook fails again when the answer is sent, and the answer is not shown.
            return None


async def prepared_items(items: Sequence[ConversationItem]) -> list[ConversationItem]:
    """Encode the items that are large, away from the event loop."""
    return [item.replace(body=await rewritten(item.body)) for item in items]


async def find_conversation(store: HostStateStore, owner: str, conversation_id: str) -> Conversation:
    """Return a conversation of the owner's."""
    conversation = await store.conversations.get(owner, conversation_id)
    if conversation is None:
        raise NotFoundError("There is no such conversation.", param="conversation")
    return conversation
