"""Answers events in their HTTP response. Late answers are left to the outbox.

The answer is recorded as deliveries, as for any event. They become due when the sender stops waiting. The waiting
request marks them as `sending`, writes the response, and marks them as accepted. After a crash, an unwritten part is
pushed when it is due. A part that may have been written is treated like a push with an unknown outcome.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from frontdesk.chat.aliases import Aliases
from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.concurrency.timeouts import until_available
from frontdesk.delivery.awaited import REPLIED, choose
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.push import add_attempt, build_part, build_reference, read_payload
from frontdesk.errors import LostDeliveryError, UnavailableError, UnreadableRecordError
from frontdesk.hooks import show_result
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import PushPart
from frontdesk.interfaces.context import AwaitedReply
from frontdesk.interfaces.store import ChangeKind, HostStateStore
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.result import HostedRunResult
from frontdesk.runs.background.followers import RunSignals

_POLL_INTERVAL_SECONDS = 1.0
"""The seconds after which the store is read again, in case a notification was lost."""
_MAX_ROWS = 200
HOLD_SECONDS = 10.0
"""The seconds for which parts are claimed while a reply is written."""
_RETRY_INTERVAL_SECONDS = 0.5


class AwaitedReplies:
    """Waits for the answers to events and passes them to the channels that reply with them."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        outbox: OutboxSender,
        clock: Clock,
        aliases: Aliases,
    ) -> None:
        self._store = store
        self._channels = channels
        self._outbox = outbox
        self._clock = clock
        self._aliases = aliases
        self._signals = RunSignals(_POLL_INTERVAL_SECONDS)
        store.listen(self._on_change)

    def _on_change(self, kind: ChangeKind, run_id: str) -> None:
        if kind == "run":
            self._signals.notify(run_id)

    def notify(self, item: InboxItem) -> None:
        for member in item.members:
            if member.reply_by is not None and member.run_id is not None:
                self._signals.notify(member.run_id)

    @asynccontextmanager
    async def reply_to(
        self, item: InboxItem, seconds: float, accept: Callable[[InboxItem], Awaitable[object]]
    ) -> AsyncGenerator[AwaitedReply]:
        """Accept an event, wait for its answer, and mark the parts written by the block as accepted."""
        until = self._clock.steady() + seconds
        await accept(item.replace(reply_by=self._clock.now() + seconds))
        # An event that the platform sends again has the run of the first time.
        known = await self._store.inbox.find(item.channel, item.event_id)
        run_id = (None if known is None else known.run_id) or item.run_id or ""
        if not await self._is_done(item, run_id, until - self._clock.steady()):
            yield AwaitedReply(is_late=True)
            return
        choice = choose(await self._rows(item.channel, run_id), again=run_id != item.run_id)
        if choice.how == "busy":
            raise _busy()
        if choice.how == "repeat":
            yield await self._reply(item, choice.rows)
            return
        async with self._hold_parts(choice.rows) as claimed:
            if len(claimed) < len(choice.rows) and run_id != item.run_id:
                raise _busy()
            yield await self._reply(item, claimed)

    async def _rows(self, channel: str, run_id: str) -> Sequence[Delivery]:
        rows = await self._store.outbox.find(channel=channel, run_id=run_id, limit=_MAX_ROWS)
        # A store of one process knows no time for which a part is claimed.
        return [row.replace(held_for=HOLD_SECONDS) if self._outbox.is_kept(row) else row for row in reversed(rows)]

    async def _is_done(self, item: InboxItem, run_id: str, seconds: float) -> bool:
        async with self._signals.subscribe(run_id) as signal:
            try:
                async with asyncio.timeout(seconds):
                    while True:
                        signal.clear()
                        known = await self._store.inbox.find(item.channel, item.event_id)
                        if known is None or known.is_done:
                            return True
                        await signal.wait()
            except TimeoutError:
                return False

    async def _reply(self, item: InboxItem, rows: Sequence[Delivery]) -> AwaitedReply:
        parts = tuple([await self._part(row) for row in rows])
        owned = next((row for row in rows if row.owner), None)
        record = None if owned is None else await self._store.runs.get(owned.owner, owned.run_id)
        if record is None:
            return AwaitedReply(parts=parts)
        hosted = HostedRunResult(result=record.result, run=record)
        if record.status == "completed":
            hosted = await show_result(self._channels[item.channel], hosted, item.request, item.caller.identity)
        return AwaitedReply(parts=parts, result=hosted)

    async def _part(self, row: Delivery) -> PushPart:
        reference = await build_reference(self._store.identities, row)
        addressed = await self._aliases.outward_delivery(row)
        return build_part(self._channels[row.channel], addressed, read_payload(row), reference)

    @asynccontextmanager
    async def _hold_parts(self, rows: Sequence[Delivery]) -> AsyncGenerator[Sequence[Delivery]]:
        """Claim parts while the block writes them. Their outcome is that of the block."""
        with self._outbox.keep_back(rows):
            claimed = await self._claim(rows)
            try:
                yield claimed
            except (asyncio.CancelledError, GeneratorExit, OSError):
                # The client is gone, and may have read it: this is what a push without an answer is.
                await self._end_shielded(claimed, self._release)
                raise
            except BaseException:
                await self._end_shielded(claimed, self._give_back)
                raise
            await self._end_shielded(claimed, self._accept)

    async def _claim(self, rows: Sequence[Delivery]) -> Sequence[Delivery]:
        """Claim all parts or none. None if the outbox was faster, or if only a newer host can read one."""
        claimed = [row.replace(status="sending", attempts=1, ended_at=None) for row in rows]
        try:
            for row in rows:
                read_payload(row)
            await self._write(claimed, hold=HOLD_SECONDS)
        except (LostDeliveryError, UnreadableRecordError):
            return ()
        return [row.replace(fence=row.fence + 1) for row in claimed]

    async def _end_shielded(
        self, rows: Sequence[Delivery], end: Callable[[Sequence[Delivery]], Awaitable[None]]
    ) -> None:
        """Write the outcome of parts even if the request is cancelled, then wake the outbox."""
        if rows:
            await asyncio.shield(spawn_clean(self._end(rows, end)))

    async def _end(self, rows: Sequence[Delivery], end: Callable[[Sequence[Delivery]], Awaitable[None]]) -> None:
        with self._outbox.keep_back(rows):
            await until_available(lambda: end(rows), pause=_RETRY_INTERVAL_SECONDS)
        # What waits behind them need not wait until they would have been due.
        await self._outbox.wake(rows)

    async def _accept(self, rows: Sequence[Delivery]) -> None:
        now = self._clock.now()
        done = [add_attempt(row, now, REPLIED).replace(status="accepted", error=None, ended_at=now) for row in rows]
        try:
            await self._write(done)
        except LostDeliveryError:
            # The claim ended before the reply was written; what was not pushed since has arrived all the same.
            for row in done:
                current = await self._store.outbox.get(row.delivery_id)
                if current is not None and current.status in ("pending", "unknown"):
                    await self._write([row.replace(fence=current.fence)])

    async def _give_back(self, rows: Sequence[Delivery]) -> None:
        now = self._clock.now()
        await self._write([row.replace(status="pending", attempts=0, due_at=now) for row in rows])

    async def _release(self, rows: Sequence[Delivery]) -> None:
        await self._write([row.replace(due_at=self._clock.now()) for row in rows])

    async def _write(self, rows: Sequence[Delivery], hold: float = 0.0) -> None:
        if rows:
            async with self._store.transaction() as transaction:
                for row in rows:
                    transaction.change_delivery(row, hold=hold)


def _busy() -> UnavailableError:
    return UnavailableError("The reply to this event is being written.", retry_after=1.0)
