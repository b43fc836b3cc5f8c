"""Shows the answer of one run while it is written.

The run does not wait for what is shown. A message is opened in three steps: "opening" is committed, the platform is
called, and the handle is committed. So a process that takes the run over after a crash knows that there may be one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from frontdesk.abc.channel import Channel
from frontdesk.abc.live import LivePlace, LiveTerms, LiveView, StreamsReplies, SupportsLiveLookup, ToolUse
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import Delivery
from frontdesk.data.live import LiveAnswer, LiveState
from frontdesk.delivery.calls import call_platform
from frontdesk.delivery.destination_drain import ChannelOutlet
from frontdesk.delivery.live.claims import LiveClaim
from frontdesk.errors import LostEventError, PushError, PushNotModifiedError, StoreUnavailableError
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.framework.notes import NO_NOTES, Notes
from frontdesk.loggers import deliveries as log

T = TypeVar("T")

KEPT = 7 * 86_400.0
"""The seconds for which a live answer is known, so that no process that has stood still begins it again."""
_MARGIN = 2.0
_CHECKS_PER_LEASE = 4
_NEVER = float("inf")


class LiveWork(NamedTuple):
    """The answer that a writer shows, and its terms."""

    store: HostStateStore
    clock: Clock
    channel: Channel
    outlet: ChannelOutlet
    streams: StreamsReplies
    place: LivePlace
    blank: Delivery
    """A delivery without content to where the answer is shown."""
    claim: LiveClaim

    @property
    def key(self) -> str:
        """Return the key of the first message, the same however often the answer is tried."""
        return f"live:{self.blank.run_id}"

    @property
    def terms(self) -> LiveTerms:
        """Return the terms of the channel."""
        return self.streams.live_terms


class LiveWriter:
    """Opens a message when the first text comes, and updates it; one task, which ends when the run does."""

    def __init__(self, work: LiveWork, known: LiveAnswer | None) -> None:
        """Begin with what an earlier try of the same run has left, if there is something."""
        self._work = work
        self.known = known
        self._text = ""
        self._notes = NO_NOTES
        self._shown = 0
        self._tools_shown: tuple[ToolUse, ...] = ()
        self._sequence = 0
        self._gave_up = known is not None and known.state in ("lost", "closed")
        self._may_exist = known is not None and known.state == "opening"
        self._is_saved = True
        self._paused_until = 0.0
        self._opened_at: float | None = None
        self._checked_at = work.clock.steady()
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_lost(self) -> bool:
        """Tell whether nobody knows which messages it has, or what becomes of them."""
        return self.known is not None and self.known.state == "lost"

    def show(self, text: str, notes: Notes = NO_NOTES) -> None:
        """Show a text with its notes, as soon as that may be."""
        if self._gave_up or self._stopping.is_set():
            return
        self._text, self._notes = text, notes
        self._changed.set()
        if self._task is None and self._says_something:
            self._task = spawn_clean(self._go_on())

    @property
    def _says_something(self) -> bool:
        return bool(self._text.strip() or self._notes.tools)

    async def stop(self) -> None:
        """Show nothing more, and wait for the call that is under way; if that takes too long, the messages are lost."""
        self._stopping.set()
        self._changed.set()
        task = self._task
        if task is None:
            return
        if not task.done():
            await asyncio.wait({task}, timeout=self._work.terms.timeout + _MARGIN)
        if not task.done():
            await stopped(task, within=_MARGIN)
            return await self._lose("stopped")
        self._task = None
        is_open = self.known is not None and self.known.state == "open" and not self._gave_up
        if is_open and self._notes.tools != self._tools_shown:
            # How long a tool took is seen here alone: the whole answer does not say it.
            await self._step()

    async def settle_opening(self, *, says_more: bool) -> None:
        """Find a first message that may have been sent, before the end of the run is recorded; else it is lost."""
        if not self._may_exist or self.known is None or self.known.state != "opening":
            return
        terms, clock = self._work.terms, self._work.clock
        until = clock.steady() + terms.timeout
        while True:
            try:
                return await self._recover(sends=says_more and self._says_something)
            except StoreUnavailableError as error:
                return await self._lose(error.code)
            except PushError as error:
                pause = max(terms.interval, error.retry_after or 0.0)
                if error.permanent or clock.steady() + pause > until:
                    return await self._lose(error.code)
            await asyncio.sleep(pause)

    async def _go_on(self) -> None:
        while not self._stopping.is_set():
            await self._changed.wait()
            self._changed.clear()
            if self._stopping.is_set() or self._gave_up:
                return
            wait = await self._step()
            if wait == _NEVER:
                self._gave_up = True
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stopping.wait()

    async def _step(self) -> float:
        """Show what there is, if it may be shown now; return the seconds until the next try."""
        interval = self._work.terms.interval
        wait = self._waits()
        if wait > 0:
            # What there is still has to be shown.
            self._changed.set()
            return wait
        try:
            return await self._advance()
        except LostEventError:
            return _NEVER
        except StoreUnavailableError:
            self._changed.set()
            return interval
        except PushError as error:
            return await self._failed(error)

    def _waits(self) -> float:
        """Return the seconds for which the platform has to be left alone."""
        steady, row = self._work.clock.steady(), self._work.blank
        if self._opened_at is not None and steady - self._opened_at > self._work.terms.longest:
            return _NEVER
        free_at = max(self._paused_until, self._work.outlet.circuit.free_at(steady))
        if free_at <= steady:
            free_at = self._work.outlet.limits.enter_last(row.place, steady, row.kind)
        return max(free_at - steady, 0.0)

    async def _advance(self) -> float:
        """Open the message, or update it."""
        if not await self._is_ours():
            return _NEVER
        if self.known is not None and not self._is_saved:
            await self._save(self.known.state, self.known.handles)
        if self.known is None:
            if await self._work.store.outbox.open(self._work.blank.destination, limit=1):
                # What waits there comes first.
                self._changed.set()
                return self._work.terms.interval
            await self._save("opening")
            await self._open()
        elif self.known.state == "opening":
            await (self._recover(sends=True) if self._may_exist else self._open())
        else:
            await self._update(self.known.handles)
        return _NEVER if self._gave_up else self._work.terms.interval

    async def _open(self) -> None:
        work, view = self._work, self._view()
        may_exist, self._may_exist = self._may_exist, True
        try:
            handle = await self._call(lambda: work.streams.open_live(work.place, view, work.key))
        except PushError as error:
            # What a refusal says of this try says nothing of an earlier one.
            self._may_exist = may_exist or error.unknown
            raise
        self._opened_at = work.clock.steady()
        await self._keep(() if handle is None else (handle,))
        self._seen(view)

    async def _recover(self, *, sends: bool) -> None:
        """Go on where the first message may have been sent: find it, or send it again if that does no harm.

        Without `sends` nothing may be said any more.
        """
        work, streams = self._work, self._work.streams
        if isinstance(streams, SupportsLiveLookup):
            handle = await self._call(lambda: streams.find_live(work.place, work.key))
            self._may_exist = handle is not None
            if handle is not None:
                await self._keep((handle,))
                self._changed.set()
            elif sends and not self._stopping.is_set():
                await self._open()
        elif work.channel.push_is_idempotent and sends:
            await self._open()
        else:
            await self._lose("opening")

    async def _update(self, handles: tuple[str, ...]) -> None:
        work, view = self._work, self._view()
        if self._opened_at is None:
            self._opened_at = work.clock.steady()
        with suppress(PushNotModifiedError):
            after = await self._call(lambda: work.streams.update_live(work.place, handles, view))
            if after != handles:
                await self._keep(after)
        self._seen(view)

    async def _failed(self, error: PushError) -> float:
        """Decide how it goes on after a failure; none of them counts for the outbox."""
        if error.unknown:
            if self.known is not None and self.known.state == "opening":
                # It is looked for in the next step, or before the end of the run is recorded.
                self._changed.set()
                return self._work.terms.interval
            # It may still arrive, and must not come after the whole answer.
            await self._lose(error.code)
            return _NEVER
        if error.permanent:
            log.info("a live answer on %s is not updated any more: %s", self._work.channel.name, error.code)
            return _NEVER
        self._changed.set()
        if error.retry_after is not None:
            self._paused_until = self._work.clock.steady() + error.retry_after
        return max(self._work.terms.interval, error.retry_after or 0.0)

    async def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        return await call_platform("live answer", self._work.channel.name, work, self._work.terms.timeout)

    def _view(self) -> LiveView:
        tools, citations = self._notes
        return LiveView(
            text=self._text, new_from=self._shown, sequence=self._sequence, tools=tools, citations=citations
        )

    def _seen(self, view: LiveView) -> None:
        self._shown, self._tools_shown = len(view.text), view.tools
        self._sequence += 1

    async def _is_ours(self) -> bool:
        """Tell whether no other process has taken the answer over, as it may have if this one stood still."""
        lease, steady = self._work.store.lease_seconds, self._work.clock.steady()
        if lease is None or steady - self._checked_at < lease / _CHECKS_PER_LEASE:
            return True
        is_held = await self._work.claim.is_held()
        self._checked_at = self._work.clock.steady()
        return is_held

    async def _lose(self, code: str) -> None:
        log.warning("the live answer of run %s is lost: %s", self._work.blank.run_id, code)
        self._gave_up = True
        handles = () if self.known is None else self.known.handles
        try:
            await self._save("lost", handles)
        except (LostEventError, StoreUnavailableError):
            # It is written with the end of the run, or another process has it.
            self.known = self.answer("lost", handles)

    async def _keep(self, handles: tuple[str, ...]) -> None:
        """Commit the messages of the answer; if the store is away, later, or with the end of the run."""
        self._may_exist = False
        self.known = self.answer("open", handles)
        try:
            await self._save("open", handles)
        except StoreUnavailableError:
            self._is_saved = False

    async def _save(self, state: LiveState, handles: tuple[str, ...] = ()) -> None:
        live = self.answer(state, handles)
        async with self._work.store.transaction() as transaction:
            transaction.save_live(live)
        self.known, self._is_saved = live, True

    def answer(self, state: LiveState, handles: tuple[str, ...]) -> LiveAnswer:
        """Return the answer as it is stored in a state."""
        blank = self._work.blank
        return LiveAnswer(
            run_id=blank.run_id,
            channel=blank.channel,
            place=blank.place,
            state=state,
            handles=handles,
            fence=self._work.claim.fence,
            expires_at=self._work.clock.now() + KEPT,
        )
