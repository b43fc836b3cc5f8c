"""Works through the events that platforms sent: in order within a conversation, each once."""

import asyncio
from collections.abc import Mapping

from frontdesk.abc.channel import Channel
from frontdesk.abc.events import AnswersEvents
from frontdesk.abc.store import HostStateStore
from frontdesk.data.delivery import InboxItem
from frontdesk.errors import FrontdeskError, RequestError
from frontdesk.loggers import runs as log
from frontdesk.pipeline import Pipeline

Conversation = tuple[str, str]


class InboxWorker:
    """One task for each conversation that has something to do."""

    def __init__(self, store: HostStateStore, pipeline: Pipeline, channels: Mapping[str, Channel]) -> None:
        self._store = store
        self._pipeline = pipeline
        self._channels = channels
        self._draining = False
        self._tasks: dict[Conversation, asyncio.Task[None]] = {}
        self._woken: set[Conversation] = set()

    def wake(self, conversation: Conversation) -> None:
        """There is something to do."""
        self._woken.add(conversation)
        # What comes in while the host stops stays in the inbox.
        if conversation not in self._tasks and not self._draining:
            self._tasks[conversation] = asyncio.get_running_loop().create_task(self._work(conversation))

    async def start(self) -> None:
        """Takes up what an earlier process left."""
        self._draining = False
        for conversation in await self._store.inbox.waiting():
            self.wake(conversation)

    async def _work(self, conversation: Conversation) -> None:
        try:
            # What is accepted while we look sets the mark again, so that nothing waits for ever between two looks.
            while conversation in self._woken:
                self._woken.discard(conversation)
                while (item := await self._store.inbox.next(*conversation)) is not None:
                    await self._answer(item)
        finally:
            del self._tasks[conversation]

    async def _answer(self, item: InboxItem) -> None:
        channel = self._channels.get(item.channel)
        voice = channel if isinstance(channel, AnswersEvents) else None
        try:
            await self._run(item, voice)
        except RequestError as error:
            log.warning("event %s of %s was not answered: %s", item.event_id, item.channel, error)
            await self._refuse(item, voice, error)
        except FrontdeskError as error:
            log.warning("the answer to event %s of %s was not sent: %s", item.event_id, item.channel, error)
        async with self._store.transaction() as transaction:
            transaction.finish(item)

    async def _run(self, item: InboxItem, voice: AnswersEvents | None) -> None:
        request = item.request if voice is None else await voice.prepare(item)
        if request is None:
            return
        admitted = await self._pipeline.admit(request, item.caller)
        hosted = await self._pipeline.run_admitted(admitted, patient=True)
        if voice is not None:
            await voice.answer(item, hosted)

    async def _refuse(self, item: InboxItem, voice: AnswersEvents | None, error: RequestError) -> None:
        try:
            if voice is not None:
                await voice.refuse(item, error)
        except FrontdeskError as failure:
            log.warning("nobody could be told about event %s of %s: %s", item.event_id, item.channel, failure)

    async def drain(self, grace: float) -> None:
        """Lets the present turns end for a while, then cancels them; what is not finished stays in the inbox."""
        self._draining = True
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
