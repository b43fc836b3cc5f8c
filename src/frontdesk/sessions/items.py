"""Keeps the items of a conversation consistent with the history of its session.

The target reads the history, people read the items. The holder of the session writes both in one transaction, and
appends new entries to both. After the deletion of an item, the earlier history is ignored: the next turn rebuilds it
from the remaining items.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.concurrency.offload import run_weighed
from frontdesk.errors import NotFoundError, RequestError
from frontdesk.hooks import show_result
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.context import ShowsItems
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.models.request import AdmittedRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord
from frontdesk.sessions.snapshot import rewrite


class TurnItems:
    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    async def of(self, admitted: AdmittedRequest, run: RunRecord, conversation_id: str) -> list[ConversationItem]:
        channel = self._channels[run.channel]
        # An answer to an approval may arrive on a channel that has no items.
        showing = [each for each in (channel, *self._channels.values()) if isinstance(each, ShowsItems)]
        if not showing:
            return []
        bodies = await run_weighed(run.details, showing[0].turn_items, run, await self._show_result(admitted, run))
        at = run.finished_at or run.created_at
        items = [
            ConversationItem(item_id=body["id"], conversation_id=conversation_id, created_at=at, body=body)
            for body in bodies
        ]
        return await prepare_items(items)

    async def _show_result(self, admitted: AdmittedRequest, run: RunRecord) -> Any:
        """Return the result as displayed by its channel. What the response hook hides is hidden here too."""
        if run.result is None:
            return None
        recorded = HostedRunResult(result=run.result, run=run)
        try:
            channel = self._channels[run.channel]
            return (await show_result(channel, recorded, admitted.request, admitted.identity)).result
        except RequestError:
            # The hook fails again when the answer is sent, and the answer is not shown.
            return None


async def prepare_items(items: Sequence[ConversationItem]) -> list[ConversationItem]:
    """Encode the large items outside the event loop."""
    return [item.replace(body=await rewrite(item.body)) for item in items]


async def find_conversation(store: HostStateStore, owner: str, conversation_id: str) -> Conversation:
    conversation = await store.conversations.get(owner, conversation_id)
    if conversation is None:
        raise NotFoundError("Conversation not found.", param="conversation")
    return conversation
