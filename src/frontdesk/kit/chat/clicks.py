"""Acknowledges clicks that wait for their turn for longer than a platform waits for an answer to them."""

import asyncio
from collections import OrderedDict
from contextlib import suppress

from frontdesk.abc.channel import ChannelContext
from frontdesk.data.delivery import InboxItem
from frontdesk.errors import PushError, StoreError, StoreUnavailableError
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.chat.abilities import AnswersClicks
from frontdesk.kit.chat.replies import wording_for

_MOST = 1_000
"""The clicks that are watched at once; those beyond are answered in their turn alone."""


class ClickWatch:
    """Watches the clicks that this process has accepted, until they are answered."""

    def __init__(self, context: ChannelContext, platform: AnswersClicks, after: float) -> None:
        """Acknowledge clicks `after` so many seconds."""
        self._context = context
        self._platform = platform
        self._after = after
        self._watched: dict[str, asyncio.Task[None]] = {}
        self._acknowledged: OrderedDict[str, None] = OrderedDict()

    def watch(self, item: InboxItem) -> None:
        """Acknowledge the click of an event after a while, unless it is answered by then."""
        callback_id = item.request.attributes.get("callback_id")
        if callback_id and callback_id not in self._watched and len(self._watched) < _MOST:
            self._watched[callback_id] = spawn_clean(self._watch(callback_id, item))

    def needs_answer(self, callback_id: str) -> bool:
        """Tell whether a click is still to be answered, and watch it no longer."""
        task = self._watched.pop(callback_id, None)
        if task is not None:
            task.cancel()
        return callback_id not in self._acknowledged

    async def stop(self) -> None:
        """End."""
        await stopped(*self._watched.values())

    async def _watch(self, callback_id: str, item: InboxItem) -> None:
        await asyncio.sleep(self._after)
        with suppress(StoreError, StoreUnavailableError):
            is_finished = await self._context.is_finished(item)
            # From here on it is answered by this.
            self._watched.pop(callback_id, None)
            if not is_finished:
                await self._acknowledge(callback_id, item)
        self._watched.pop(callback_id, None)

    async def _acknowledge(self, callback_id: str, item: InboxItem) -> None:
        self._acknowledged[callback_id] = None
        if len(self._acknowledged) > _MOST:
            self._acknowledged.popitem(last=False)
        text = wording_for(item, self._context.texts).say("click.waits")
        try:
            await self._platform.answer_click(callback_id, text)
        except PushError:
            # Its own answer may still arrive.
            self._acknowledged.pop(callback_id, None)
