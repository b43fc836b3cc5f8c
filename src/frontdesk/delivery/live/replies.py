"""Selects the runs with live messages or typing notices, and ends these together with their runs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from frontdesk.chat.aliases import Aliases
from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.delivery.live.claims import LiveClaim, event_claim, run_claim
from frontdesk.delivery.live.writer import LiveWork, LiveWriter, end_live, repeat_late
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.push import call_platform
from frontdesk.errors import PushError
from frontdesk.framework.contents import LiveText
from frontdesk.framework.notes import NO_NOTES, LiveNotes
from frontdesk.ids import Ids
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import LivePlace, ShowsNotes, ShowsTyping, StreamsReplies
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.loggers import deliveries as log
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.live_message import LiveFence, LiveMessageRecord
from frontdesk.models.request import AdmittedRequest, ChannelRequest
from frontdesk.models.run import BackgroundRun, RunStatus

_TIMEOUT_SECONDS = 5.0
_DELAY_SECONDS = 0.2
"""The seconds before it is shown first: an answer that is there by then needs no sign, and no call of the platform."""


class TypingRenewer:
    """Task that renews the typing indicator before it expires on the platform. Failures are only logged."""

    def __init__(self, name: str, channel: ShowsTyping, place: LivePlace) -> None:
        self._name = name
        self._channel = channel
        self._place = place
        self._task: asyncio.Task[None] | None = None

    @property
    def stays(self) -> bool:
        return self._channel.typing_with_live

    def start(self) -> None:
        self._task = spawn_clean(self._renew())

    async def stop(self) -> None:
        if self._task is None:
            return
        task, self._task = self._task, None
        await cancel_and_wait(task)
        await self._tell(lambda: self._channel.end_typing(self._place))

    async def _renew(self) -> None:
        await asyncio.sleep(_DELAY_SECONDS)
        while True:
            await self._tell(lambda: self._channel.show_typing(self._place))
            if self._channel.typing_interval is None:
                return
            await asyncio.sleep(self._channel.typing_interval)

    async def _tell(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await call_platform("live answer", self._name, work, _TIMEOUT_SECONDS)
        except PushError as error:
            log.info("failed to show typing: channel=%s: %s", self._name, error.code)


class LiveRun:
    """The streamed answer of one run: its text, its messages and the typing indicator before them."""

    def __init__(
        self,
        channel: Channel,
        blank: Delivery,
        ids: Ids,
        clock: Clock,
        writer: LiveWriter | None,
        typing: TypingRenewer | None,
        streams: bool,
    ) -> None:
        self.streams = streams
        """Whether the target is to be run as a stream, because its text is shown."""
        self._channel = channel
        self._blank = blank
        self._ids = ids
        self._clock = clock
        self._writer = writer
        self._typing = typing
        self._text = LiveText()
        self._notes = LiveNotes(channel.tool_detail, clock.steady) if isinstance(channel, ShowsNotes) else None
        self._own: set[str] = set()

    def start(self) -> None:
        if self._typing is not None:
            self._typing.start()

    def show(self, update: Any) -> None:
        """Add an update to the shown answer. Does not wait for the platform."""
        if self._writer is None:
            return
        changed = self._text.add(update)
        if self._notes is None:
            notes = NO_NOTES
        else:
            changed = self._notes.add(update) or changed
            notes = self._notes.notes
        if changed:
            self._writer.show(self._text.text, notes)

    def note_end(self) -> None:
        """Open no more messages. The target has ended, and the complete answer is sent next."""
        if self._writer is not None:
            self._writer.note_end()

    async def stop(self) -> None:
        """Stop updating the answer and wait for the call in flight."""
        if self._writer is not None:
            await self._writer.stop()

    async def stop_typing(self) -> None:
        if self._typing is not None:
            await self._typing.stop()

    async def end(self, deliveries: Sequence[Delivery], status: RunStatus) -> Sequence[Delivery]:
        """Return the deliveries of the run's end, including edits of the messages that have shown the answer.

        It may be called again with its own result if the end has to be written once more.
        """
        await self.stop()
        writer = self._writer
        if writer is None:
            return deliveries
        await writer.settle_opening(says_more=status == "completed")
        if writer.known is None:
            return deliveries
        before = [row for row in deliveries if row.delivery_id not in self._own]
        handles = writer.known.handles if self._channel.push_edits else ()
        taken = writer.taken if self._channel.edits_may_be_late else ()
        new_id, now = self._ids.new, self._clock.now()
        rows = end_live(before, self._blank, handles, status=status, lost=writer.is_lost, taken=taken, new_id=new_id)
        rows += repeat_late(rows, taken, now=now, due_at=now + writer.longest_call, new_id=new_id)
        self._own = {row.delivery_id for row in rows} - {row.delivery_id for row in before}
        return rows

    def close(self, transaction: StateTransaction) -> None:
        """Close the answer in the transaction that records the end of its run."""
        writer = self._writer
        if writer is not None and writer.known is not None:
            transaction.save_live(writer.answer("lost" if writer.is_lost else "closed", writer.known.handles))

    def add_end(self, transaction: StateTransaction, rows: Sequence[Delivery]) -> None:
        """Close the answer of a run that ends without a turn, with the deliveries that `end` has returned."""
        for row in rows:
            transaction.add_delivery(row)
        self.close(transaction)


class LiveReplies:
    """Creates the live replies of events, and of background runs whose answers go back to a chat."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        planner: Planner,
        outbox: OutboxSender,
        aliases: Aliases,
        clock: Clock,
        ids: Ids,
        stop_event: Callable[[], Awaitable[None]],
        stop_run: Callable[[str, str], Awaitable[None]],
    ) -> None:
        """`stop_event` stops the work of this process on cancelled events, and `stop_run` that on a background run."""
        self._stop_event, self._stop_run = stop_event, stop_run
        self._store = store
        self._planner = planner
        self._outbox = outbox
        self._aliases = aliases
        self._clock = clock
        self._ids = ids
        self._streaming = {name: channel for name, channel in channels.items() if isinstance(channel, StreamsReplies)}
        self._typing = {name: channel for name, channel in channels.items() if isinstance(channel, ShowsTyping)}
        self._channels = channels

    async def of(self, admitted: AdmittedRequest, event: InboxItem) -> LiveRun | None:
        """Return the live reply to an event, or None if the answer is only shown when complete."""
        name = admitted.request.channel
        if (name not in self._streaming and name not in self._typing) or event.reply_by is not None:
            # Who waits on the wire sees the answer when it is whole.
            return None
        channel, request = self._channels[name], admitted.request
        blank = self._planner.origin(request, admitted.caller.identity, admitted.owner, admitted.run_id)
        returns, claim = await self._returns(admitted), event_claim(self._store, event)
        streams = returns and self._shows(channel, blank)
        left = None if claim.is_first else await self._take_over(blank, claim)
        place = await self._place(request, blank)
        shows_typing = self._typing.get(name) if returns else None
        typing = None if shows_typing is None else TypingRenewer(name, shows_typing, place)
        on_shown = None if typing is None or typing.stays else typing.stop
        writer = None
        if streams or left is not None:
            # The resumption of a run is no turn, so that only the run itself can be cancelled.
            resumes = partial(self._stop_run, admitted.owner, admitted.run_id)
            stop = resumes if event.kind == "resume" else self._stop_event
            writer = self._writer(blank, claim, place, left, stop, on_shown)
        if writer is None and typing is None:
            return None
        return LiveRun(channel, blank, self._ids, self._clock, writer, typing, streams)

    async def of_run(self, admitted: AdmittedRequest, run: BackgroundRun) -> LiveRun | None:
        """Return the live reply of a background run, or None if the answer is only shown when complete.

        There is no typing indicator, because users do not expect an immediate answer of a background run.
        """
        request = admitted.request
        if request.channel not in self._streaming or not admitted.pushes:
            return None
        channel = self._channels[request.channel]
        blank = self._planner.origin(request, admitted.caller.identity, admitted.owner, admitted.run_id)
        claim, streams = run_claim(self._store, run), await self._returns(admitted) and self._shows(channel, blank)
        left = None if claim.is_first else await self._take_over(blank, claim)
        if not streams and left is None:
            return None
        stop = partial(self._stop_run, admitted.owner, admitted.run_id)
        writer = self._writer(blank, claim, await self._place(request, blank), left, stop)
        return None if writer is None else LiveRun(channel, blank, self._ids, self._clock, writer, None, streams)

    async def take_over_run(self, run: BackgroundRun) -> LiveRun | None:
        """Return the shown part of the answer of a background run that is not answered any more."""
        admitted = run.admitted
        if admitted.request.channel not in self._streaming or not admitted.pushes:
            return None
        blank = self._planner.origin(admitted.request, admitted.caller.identity, admitted.owner, admitted.run_id)
        return await self._build_left(admitted.request, blank, run_claim(self._store, run))

    async def wake(self, rows: Sequence[Delivery]) -> None:
        await self._outbox.wake(rows)

    async def take_over_event(self, event: InboxItem, owner: str = "") -> LiveRun | None:
        """Return the shown part of an earlier attempt to answer an event that is not answered any more."""
        name, request = event.channel, event.request
        if name not in self._streaming or event.run_id is None:
            return None
        blank = self._planner.origin(request, event.caller.identity, owner, event.run_id)
        return await self._build_left(request, blank, event_claim(self._store, event))

    async def _build_left(self, request: ChannelRequest, blank: Delivery, claim: LiveClaim) -> LiveRun | None:
        known = await self._take_over(blank, claim)
        if known is None:
            return None
        writer = self._writer(blank, claim, await self._place(request, blank), known, self._stop_event)
        return LiveRun(self._channels[blank.channel], blank, self._ids, self._clock, writer, None, False)

    async def _returns(self, admitted: AdmittedRequest) -> bool:
        """Return True if the answer goes back to its origin, as far as known before the run ends."""
        return not admitted.targets_elsewhere() or (await self._planner.route(admitted)).originating

    def _shows(self, channel: Channel, blank: Delivery) -> bool:
        streams = self._streaming.get(channel.name)
        if streams is None or channel.live == "off" or (channel.response_hook is not None and channel.live != "always"):
            return False
        terms = streams.live_terms
        return terms.direct if blank.kind == "direct" else terms.group

    async def _take_over(self, blank: Delivery, claim: LiveClaim) -> LiveMessageRecord | None:
        """Return the state left by an earlier attempt, after it has lost the ability to write."""
        known = await self._store.live.get(blank.run_id, blank.channel, blank.place)
        if known is None or known.state == "closed":
            return None
        taken = known.replace(fence=claim.fence)
        async with self._store.transaction() as transaction:
            transaction.save_live(taken)
        return taken

    async def _place(self, request: ChannelRequest, blank: Delivery) -> LivePlace:
        outward = await self._aliases.outward_delivery(blank)
        return LivePlace(
            identity=blank.identity,
            conversation_id=outward.conversation_id,
            reference=blank.reference,
            details=request.details,
            kind=blank.kind,
        )

    def _writer(
        self,
        blank: Delivery,
        claim: LiveClaim,
        place: LivePlace,
        known: LiveMessageRecord | None,
        stop_run: Callable[[], Awaitable[None]],
        on_shown: Callable[[], Awaitable[None]] | None = None,
    ) -> LiveWriter | None:
        streams, outlet = self._streaming.get(blank.channel), self._outbox.outlet(blank.channel)
        if streams is None or outlet is None:
            return None
        new_id, wake = self._ids.new, self._outbox.wake
        fence = LiveFence(run_id=blank.run_id, channel=blank.channel, place=blank.place, fence=claim.fence)
        place = place.replace(fence=fence)
        work = LiveWork(
            self._store,
            self._clock,
            outlet.channel,
            outlet,
            streams,
            place,
            blank,
            claim,
            new_id,
            wake,
            stop_run,
            on_shown,
        )
        return LiveWriter(work, known)
