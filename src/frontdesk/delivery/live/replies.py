"""Decides whose answers are shown while they are written, and ends them together with their runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.live import LivePlace, ShowsNotes, ShowsTyping, StreamsReplies
from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.clock import Clock
from frontdesk.data.background import BackgroundRun
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.live import LiveAnswer
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.run import RunStatus
from frontdesk.delivery.live.claims import LiveClaim, event_claim, run_claim
from frontdesk.delivery.live.ending import end_live
from frontdesk.delivery.live.typing import Typing
from frontdesk.delivery.live.writer import LiveWork, LiveWriter
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.ids import Ids
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.framework.live_text import LiveText
from frontdesk.kit.framework.notes import NO_NOTES, LiveNotes
from frontdesk.kit.hooks import call_stream_hook


class LiveReply:
    """The answer of one run while it is written: its text, its messages and the typing before them."""

    def __init__(
        self,
        channel: Channel,
        blank: Delivery,
        ids: Ids,
        clock: Clock,
        writer: LiveWriter | None,
        typing: Typing | None,
        streams: bool,
    ) -> None:
        self.streams = streams
        """Whether the target is to be run as a stream, because its text is shown."""
        self.shown: list[Any] = []
        """The updates as the channel's hook has changed them, if it has one."""
        self.hook = channel.stream_transform_hook
        self._channel = channel
        self._blank = blank
        self._ids = ids
        self._writer = writer
        self._typing = typing
        self._text = LiveText()
        self._notes = LiveNotes(channel.tool_detail, clock.steady) if isinstance(channel, ShowsNotes) else None
        self._own: set[str] = set()

    def start(self) -> None:
        """Begin to show that an answer is being written."""
        if self._typing is not None:
            self._typing.start()

    async def add(self, update: Any) -> None:
        """Add an update of the target to what is shown, as the hook wants it; showing it is not waited for."""
        if self.hook is not None:
            update = await call_stream_hook(self.hook, update, self._channel.name)
            if update is None:
                return
            self.shown.append(update)
        self.show(update)

    def show(self, update: Any) -> None:
        """Add an update as it is to what is shown."""
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

    async def stop(self) -> None:
        """Show nothing more of the answer, and wait for what is under way."""
        if self._writer is not None:
            await self._writer.stop()

    async def stop_typing(self) -> None:
        """Show no longer that an answer is being written."""
        if self._typing is not None:
            await self._typing.stop()

    async def end(self, deliveries: Sequence[Delivery], status: RunStatus) -> Sequence[Delivery]:
        """Return the deliveries of the run's end, with what becomes of the messages that have shown the answer.

        It may be called again with what it has returned, if the end has to be written once more.
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
        rows = end_live(before, self._blank, handles, status=status, lost=writer.is_lost, new_id=self._ids.new)
        self._own = {row.delivery_id for row in rows} - {row.delivery_id for row in before}
        return rows

    def close(self, transaction: StateTransaction) -> None:
        """Close the answer in the transaction that records the end of its run."""
        writer = self._writer
        if writer is not None and writer.known is not None:
            transaction.save_live(writer.answer("lost" if writer.is_lost else "closed", writer.known.handles))

    def add_end(self, transaction: StateTransaction, rows: Sequence[Delivery]) -> None:
        """Close the answer of a run that no turn ends, with the deliveries that `end` has returned."""
        for row in rows:
            transaction.add_delivery(row)
        self.close(transaction)


class LiveReplies:
    """Makes the live answers of events, and of background runs whose answers go back to a chat."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        planner: Planner,
        outbox: OutboxSender,
        aliases: Aliases,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._store = store
        self._planner = planner
        self._outbox = outbox
        self._aliases = aliases
        self._clock = clock
        self._ids = ids
        self._streaming = {name: channel for name, channel in channels.items() if isinstance(channel, StreamsReplies)}
        self._typing = {name: channel for name, channel in channels.items() if isinstance(channel, ShowsTyping)}
        self._channels = channels

    async def of(self, admitted: AdmittedRequest, event: InboxItem) -> LiveReply | None:
        """Return how the answer to an event is shown; `None` if it is not shown before it is whole."""
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
        typing = None if shows_typing is None else Typing(name, shows_typing, place)
        writer = self._writer(blank, claim, place, left) if streams or left is not None else None
        if writer is None and typing is None:
            return None
        return LiveReply(channel, blank, self._ids, self._clock, writer, typing, streams)

    async def of_run(self, admitted: AdmittedRequest, run: BackgroundRun) -> LiveReply | None:
        """Return how the answer of a background run is shown; `None` if it is not shown before it is whole.

        Typing is not: nobody waits for a run in the background as for an answer.
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
        writer = self._writer(blank, claim, await self._place(request, blank), left)
        return None if writer is None else LiveReply(channel, blank, self._ids, self._clock, writer, None, streams)

    async def left_by(self, run: BackgroundRun) -> LiveReply | None:
        """Return what was shown of the answer of a background run that is not answered any more."""
        admitted = run.admitted
        if admitted.request.channel not in self._streaming or not admitted.pushes:
            return None
        blank = self._planner.origin(admitted.request, admitted.caller.identity, admitted.owner, admitted.run_id)
        return await self._left(admitted.request, blank, run_claim(self._store, run))

    async def wake(self, rows: Sequence[Delivery]) -> None:
        """Send deliveries that were written."""
        await self._outbox.wake(rows)

    async def left(self, event: InboxItem, owner: str = "") -> LiveReply | None:
        """Return what an earlier try has shown of the answer to an event that is not answered any more."""
        name, request = event.channel, event.request
        if name not in self._streaming or event.run_id is None:
            return None
        blank = self._planner.origin(request, event.caller.identity, owner, event.run_id)
        return await self._left(request, blank, event_claim(self._store, event))

    async def _left(self, request: ChannelRequest, blank: Delivery, claim: LiveClaim) -> LiveReply | None:
        known = await self._take_over(blank, claim)
        if known is None:
            return None
        writer = self._writer(blank, claim, await self._place(request, blank), known)
        return LiveReply(self._channels[blank.channel], blank, self._ids, self._clock, writer, None, False)

    async def _returns(self, admitted: AdmittedRequest) -> bool:
        """Tell whether the answer goes back to where it was asked for, as far as that is known before its end."""
        return not admitted.targets_elsewhere() or (await self._planner.route(admitted)).originating

    def _shows(self, channel: Channel, blank: Delivery) -> bool:
        streams = self._streaming.get(channel.name)
        if streams is None or channel.live == "off" or (channel.response_hook is not None and channel.live != "always"):
            return False
        terms = streams.live_terms
        return terms.direct if blank.kind == "direct" else terms.group

    async def _take_over(self, blank: Delivery, claim: LiveClaim) -> LiveAnswer | None:
        """Return what an earlier try has left, once it can write nothing more about it."""
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
        self, blank: Delivery, claim: LiveClaim, place: LivePlace, known: LiveAnswer | None
    ) -> LiveWriter | None:
        streams, outlet = self._streaming.get(blank.channel), self._outbox.outlet(blank.channel)
        if streams is None or outlet is None:
            return None
        work = LiveWork(self._store, self._clock, outlet.channel, outlet, streams, place, blank, claim)
        return LiveWriter(work, known)
