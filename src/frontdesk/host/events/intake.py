"""Takes in the events that channels hand over, and what channels say to them."""

from contextlib import AbstractAsyncContextManager

from frontdesk.abc.awaited import AwaitedReply
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.data.delivery import InboxItem
from frontdesk.data.reply import Reply
from frontdesk.errors import TooManyRequestsError
from frontdesk.host.events.awaited import AwaitedReplies
from frontdesk.host.events.dependencies import EventDependencies
from frontdesk.host.events.gathering import Gathering
from frontdesk.host.events.held import HeldEvents
from frontdesk.host.events.limits import EventLimiter
from frontdesk.host.events.replies import EventReplies
from frontdesk.host.events.tasks import TASKS, task_id, task_payload
from frontdesk.kit.telemetry import outcome_of


class EventIntake:
    """Stores events before they are acknowledged, and has them taken up."""

    def __init__(
        self,
        given: EventDependencies,
        held: HeldEvents,
        replies: EventReplies,
        awaited: AwaitedReplies,
        gathering: Gathering,
        limiter: EventLimiter,
    ) -> None:
        self._store, self._channels = given.store, given.channels
        self._gate, self._aliases, self._spans = given.gate, given.aliases, given.spans
        self._held = held
        self._replies = replies
        self._awaited = awaited
        self._gathering = gathering
        self._limiter = limiter
        self._runner: DurableTaskRunner | None = None

    def use(self, runner: DurableTaskRunner) -> None:
        """Wake this runner from now on when an event is written."""
        self._runner = runner

    async def accept(self, item: InboxItem) -> bool:
        """Store an event, and tell whether that was done; if not, it is too much, and its sender is told so."""
        span = self._spans.begin("accept", item.channel, item.trace)
        trace = span.carry()
        try:
            accepted = await self._store_event(item if trace is None else item.replace(trace=trace))
        except BaseException as error:
            span.end(outcome_of(error))
            raise
        span.end("ok" if accepted else TooManyRequestsError.code)
        return accepted

    async def _store_event(self, item: InboxItem) -> bool:
        """Store an event, and tell whether that was done; false if it is too much."""
        if await self._limiter.refuses(item):
            return False
        item = self._gathering.postponed(self._with_run(await self._aliases.inward(item)))
        interrupts = item.is_message and item.addressed and self._interrupts(item.channel)
        # The messages of an album don't interrupt each other.
        others = await self._store.inbox.outside_album(item) if interrupts and item.waits_for_album else None
        async with self._store.transaction() as transaction:
            transaction.accept(item)
            if item.not_before is not None:
                transaction.postpone_earlier(item)
            if interrupts:
                transaction.interrupt_earlier(item, only=others)
        if interrupts:
            await self._held.look(item)
        await self.wake(item)
        return True

    def accept_and_wait(self, item: InboxItem, seconds: float) -> AbstractAsyncContextManager[AwaitedReply]:
        """Store an event and wait for its answer, which the block writes into the reply to the event."""
        return self._awaited.reply_to(self._with_run(item), seconds, self.accept)

    async def wake(self, item: InboxItem) -> None:
        """Have an event that was written taken up."""
        if self._runner is not None:
            name = task_id(item.kind, item.channel, item.conversation_id)
            await self._runner.schedule(TASKS[item.kind], task_payload(item), task_id=name, at=item.not_before)

    async def reply(self, item: InboxItem, reply: Reply | str, number: int) -> None:
        """Keep a reply until the event is finished; write it at once if this process does not work on the event."""
        await self._replies.add(item, reply, number)

    def _with_run(self, item: InboxItem) -> InboxItem:
        return item if item.run_id is not None else item.replace(run_id=self._gate.new_run_id(item.channel))

    def _interrupts(self, channel: str) -> bool:
        return channel in self._channels and self._channels[channel].on_busy == "interrupt"
