"""Writes the live message of one run.

The run does not wait for the live message. A message is opened in three steps: "opening" is committed, the platform is
called, and the handle is committed. So a process that takes over the run after a crash can detect a message that may
exist.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.concurrency.timeouts import until_available
from frontdesk.delivery.destination_drain import ChannelOutlet
from frontdesk.delivery.live.claims import LiveClaim
from frontdesk.delivery.push import add_attempt, call_platform
from frontdesk.errors import LostEventError, PushError, PushNotModifiedError, PushStoppedError, StoreUnavailableError
from frontdesk.framework.notes import NO_NOTES, Notes
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import LivePlace, LiveTerms, LiveView, StreamsReplies, SupportsLiveLookup, ToolUse
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import deliveries as log
from frontdesk.models.delivery import Delivery, DeliveryAction
from frontdesk.models.live_message import LiveMessageRecord, LiveState
from frontdesk.models.run import RunStatus

REPEAT = "repeat:"
"""The beginning of the queue of changes that are repeated, so that nothing else waits behind them."""
LOST = "live answer lost"
"""The code in the history of an answer that is sent anew, because the messages that showed it were lost."""


def end_live(
    rows: Sequence[Delivery],
    blank: Delivery,
    handles: Sequence[str],
    *,
    status: RunStatus,
    lost: bool,
    taken: Collection[str] = (),
    new_id: Callable[[str], str],
) -> list[Delivery]:
    """Return the deliveries of a run that was shown live. `blank` is a delivery to the location of the messages.

    The parts of the answer replace these messages, and surplus messages are removed. Lost messages may still be edited
    by a call in flight. They are removed and not replaced. For a run that did not complete, the messages are only
    settled.

    Messages that were `taken` over from another process are edited once more later (see `repeat_late`). No question
    replaces one, because it may have been decided by then.
    """
    if status != "completed":
        return [*act_on(blank, handles, "settle", new_id), *rows]
    if lost:
        anew = [add_attempt(row, row.created_at, LOST) if _is_first(row, blank) else row for row in rows]
        return [*anew, *act_on(blank, handles, "retract", new_id)]
    left, replacing = list(handles), list[Delivery]()
    for row in rows:
        replaces = bool(left) and _is_answer(row, blank) and not (row.approval_id is not None and left[0] in taken)
        replacing.append(row.replace(replaces=left.pop(0)) if replaces else row)
    return [*replacing, *act_on(blank, left, "retract", new_id)]


def repeat_late(
    rows: Sequence[Delivery], taken: Collection[str], *, now: float, due_at: float, new_id: Callable[[str], str]
) -> list[Delivery]:
    """Return deliveries that repeat the edit of messages taken over from another process.

    An edit of that process may still be in flight and reach the platform after the edit by this process. Each delivery
    has its own answer and queue.
    """
    return [
        row.replace(
            delivery_id=new_id("dlv"),
            answer_id=new_id("ans"),
            part=0,
            parts=1,
            queue=f"{REPEAT}{row.replaces}",
            is_repeat=True,
            created_at=now,
            due_at=due_at,
            history=(),
        )
        for row in rows
        if row.replaces in taken and row.action != "retract"
    ]


def _is_answer(row: Delivery, blank: Delivery) -> bool:
    """Return True if a delivery is a part of the answer to the place where it was shown live."""
    return row.destination == blank.destination and row.action == "send" and row.ended_at is None and not row.is_echo


def _is_first(row: Delivery, blank: Delivery) -> bool:
    return _is_answer(row, blank) and row.part == 0


def act_on(
    blank: Delivery, handles: Sequence[str], action: DeliveryAction, new_id: Callable[[str], str]
) -> list[Delivery]:
    """Return a delivery for each message. They form a separate answer so that none of them fails with the text."""
    answer_id = new_id("ans")
    return [
        blank.replace(
            delivery_id=new_id("dlv"),
            answer_id=answer_id,
            action=action,
            replaces=handle,
            part=number,
            parts=len(handles),
            payload=None,
        )
        for number, handle in enumerate(handles)
    ]


T = TypeVar("T")

KEEP_SECONDS = 7 * 86_400.0
"""The seconds for which a live answer is known, so that no process that has stood still begins it again."""
_MARGIN_SECONDS = 2.0
_CHECKS_PER_LEASE = 4
_NEVER = float("inf")


class LiveWork(NamedTuple):
    store: HostStateStore
    clock: Clock
    channel: Channel
    outlet: ChannelOutlet
    streams: StreamsReplies
    place: LivePlace
    blank: Delivery
    """A delivery without content to where the answer is shown."""
    claim: LiveClaim
    new_id: Callable[[str], str]
    wake: Callable[[Sequence[Delivery]], Awaitable[None]]
    """Sends deliveries that were written."""
    stop_run: Callable[[], Awaitable[None]]
    """Cancels the run in this process, after it was marked as cancelled."""
    on_shown: Callable[[], Awaitable[None]] | None = None
    """Called once, when a message shows something of the answer."""

    @property
    def key(self) -> str:
        """Return the key of the first message. It is stable across attempts to answer."""
        return f"live:{self.blank.run_id}"

    @property
    def terms(self) -> LiveTerms:
        return self.streams.live_terms


class LiveWriter:
    """Opens a message for the first text and updates it, in one task that ends with the run."""

    def __init__(self, work: LiveWork, known: LiveMessageRecord | None) -> None:
        """Start from the state that an earlier attempt of the same run has left, if any."""
        self._work = work
        self.known = known
        self.taken = () if known is None else known.handles
        """The messages that another process has shown. An edit of it may still be under way."""
        self._text = ""
        self._notes = NO_NOTES
        self._shown = 0
        self._tools_shown: tuple[ToolUse, ...] = ()
        self._sequence = work.claim.first_sequence
        self._gave_up = known is not None and known.state in ("lost", "closed")
        self._may_exist = known is not None and known.state == "opening"
        self._is_saved = True
        self._paused_until = 0.0
        self._opened_at: float | None = None
        self._checked_at = work.clock.steady()
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._withdrawal: asyncio.Task[None] | None = None
        self._stopping_run: asyncio.Task[None] | None = None
        self._is_shown = False

    @property
    def longest_call(self) -> float:
        """Return the seconds after which no call of another process can be in flight."""
        return self._work.terms.timeout + _MARGIN_SECONDS

    @property
    def is_lost(self) -> bool:
        """Return True if its messages or their final state are unknown."""
        return self.known is not None and self.known.state == "lost"

    def show(self, text: str, notes: Notes = NO_NOTES) -> None:
        """Show a text with its notes as soon as the rate limits allow."""
        if self._gave_up or self._stopping.is_set():
            return
        self._text, self._notes = text, notes
        self._changed.set()
        if self._task is None and self._says_something:
            self._task = spawn_clean(self._go_on())

    @property
    def _says_something(self) -> bool:
        return bool(self._text.strip() or self._notes.tools)

    def note_end(self) -> None:
        """Open and update no more messages."""
        self._stopping.set()
        self._changed.set()

    async def stop(self) -> None:
        """Stop updating and wait for the call in flight. After the timeout the messages are lost."""
        self.note_end()
        task = self._task
        if task is None:
            return
        if not task.done():
            await asyncio.wait({task}, timeout=self._work.terms.timeout + _MARGIN_SECONDS)
        if not task.done():
            await cancel_and_wait(task, within=_MARGIN_SECONDS)
            return await self._lose("stopped")
        self._task = None
        is_open = self.known is not None and self.known.state == "open" and not self._gave_up
        if is_open and self._notes.tools != self._tools_shown:
            # How long a tool took is seen here alone: the whole answer does not say it.
            await self._step()

    async def settle_opening(self, *, says_more: bool) -> None:
        """Look up a first message that may have been sent, before the end of the run is recorded. Otherwise it is
        lost."""
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
            with suppress(TimeoutError):
                async with asyncio.timeout(self._silence):
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

    @property
    def _silence(self) -> float | None:
        """Return the seconds after which the view is repeated, or None."""
        is_open = self.known is not None and self.known.state == "open"
        return self._work.terms.silence if is_open else None

    async def _step(self) -> float:
        """Show the current text if allowed now. Return the seconds until the next attempt."""
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
            return await self._handle_failure(error)

    def _waits(self) -> float:
        """Return the seconds until the platform may be called again."""
        steady, row = self._work.clock.steady(), self._work.blank
        if self._opened_at is not None and steady - self._opened_at > self._work.terms.longest:
            return _NEVER
        free_at = max(self._paused_until, self._work.outlet.circuit.free_at(steady))
        if free_at <= steady:
            free_at = self._work.outlet.limits.enter_last(row.place, steady, row.kind, self._work.outlet.rate_key(row))
        return max(free_at - steady, 0.0)

    async def _advance(self) -> float:
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
            await self._open_while_running()
        elif self.known.state == "opening":
            await (self._recover(sends=True) if self._may_exist else self._open_while_running())
        else:
            await self._update(self.known.handles)
        return _NEVER if self._gave_up else self._work.terms.interval

    async def _open_while_running(self) -> None:
        # A whole answer is sent by itself. If the reply to this call were lost, it would be there twice.
        if not self._stopping.is_set():
            await self._open()

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
        try:
            await self._keep(() if handle is None else (handle,))
        except LostEventError:
            if handle is not None:
                self._withdrawal = spawn_clean(self._withdraw(handle))
            raise
        await self._note_shown(view)

    async def _withdraw(self, handle: str) -> None:
        """Remove a message that was opened after this process lost the answer, unless the new owner has found it.

        Otherwise it would look unfinished forever: the new owner searched for it before it arrived.
        """
        work, blank = self._work, self._work.blank
        deadline = work.clock.steady() + work.terms.longest
        while True:
            known = await until_available(lambda: work.store.live.get(blank.run_id, blank.channel, blank.place))
            if known is not None and handle in known.handles:
                return
            if known is None or known.state != "opening" or work.clock.steady() > deadline:
                break
            # Its new owner may still find the message.
            await asyncio.sleep(work.terms.interval)
        log.warning("removing a message that was opened after another process took the answer: run_id=%s", blank.run_id)
        rows = act_on(blank, (handle,), "retract", work.new_id)

        async def write() -> None:
            async with work.store.transaction() as transaction:
                for row in rows:
                    transaction.add_delivery(row)

        await until_available(write)
        await work.wake(rows)

    async def _recover(self, *, sends: bool) -> None:
        """Recover if the first message may have been sent: look it up, or send it again if a duplicate is harmless.

        Without `sends`, no new message may be sent.
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
        await self._note_shown(view)

    async def _handle_failure(self, error: PushError) -> float:
        """Decide how to continue after a failure. These failures do not count for the outbox."""
        if error.unknown:
            if self.known is not None and self.known.state == "opening":
                # It is looked for in the next step, or before the end of the run is recorded.
                self._changed.set()
                return self._work.terms.interval
            # It may still arrive, and must not come after the whole answer.
            await self._lose(error.code)
            return _NEVER
        if isinstance(error, PushStoppedError):
            log.info("answer stopped on the platform, cancelling its run: run_id=%s", self._work.blank.run_id)
            # Not awaited here: the run waits for this task before it ends.
            self._stopping_run = spawn_clean(self._stop_run())
            return _NEVER
        if error.permanent:
            log.info("live message no longer updated: channel=%s: %s", self._work.channel.name, error.code)
            return _NEVER
        self._changed.set()
        if error.retry_after is not None:
            self._paused_until = self._work.clock.steady() + error.retry_after
        return max(self._work.terms.interval, error.retry_after or 0.0)

    async def _stop_run(self) -> None:
        await until_available(self._work.claim.cancel)
        await self._work.stop_run()

    async def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        return await call_platform("live answer", self._work.channel.name, work, self._work.terms.timeout)

    def _view(self) -> LiveView:
        tools, citations = self._notes
        return LiveView(
            text=self._text, new_from=self._shown, sequence=self._sequence, tools=tools, citations=citations
        )

    async def _note_shown(self, view: LiveView) -> None:
        self._shown, self._tools_shown = len(view.text), view.tools
        self._sequence += 1
        if not self._is_shown:
            self._is_shown = True
            if self._work.on_shown is not None:
                await self._work.on_shown()

    async def _is_ours(self) -> bool:
        """Return True unless another process has taken over the answer, for example after this one was suspended."""
        lease, steady = self._work.store.lease_seconds, self._work.clock.steady()
        if lease is None or steady - self._checked_at < lease / _CHECKS_PER_LEASE:
            return True
        is_held = await self._work.claim.is_held()
        self._checked_at = self._work.clock.steady()
        return is_held

    async def _lose(self, code: str) -> None:
        log.warning("live message lost: run_id=%s: %s", self._work.blank.run_id, code)
        self._gave_up = True
        handles = () if self.known is None else self.known.handles
        try:
            await self._save("lost", handles)
        except (LostEventError, StoreUnavailableError):
            # It is written with the end of the run, or another process has it.
            self.known = self.answer("lost", handles)

    async def _keep(self, handles: tuple[str, ...]) -> None:
        """Commit the messages of the answer. If the store is unavailable: later, or with the end of the run."""
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

    def answer(self, state: LiveState, handles: tuple[str, ...]) -> LiveMessageRecord:
        blank = self._work.blank
        return LiveMessageRecord(
            run_id=blank.run_id,
            channel=blank.channel,
            place=blank.place,
            state=state,
            handles=handles,
            fence=self._work.claim.fence,
            expires_at=self._work.clock.now() + KEEP_SECONDS,
        )
