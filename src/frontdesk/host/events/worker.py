"""Answers the events that platforms sent: in order within a conversation, each once, over processes.

An event is written before it is acknowledged. The process that claims the first one of a conversation answers it; the
result of the turn, its deliveries, and the end of the event are written together. A turn that a crash cuts off is run
again, because it is not known how far it came; an event that ends its process again and again is given up. One that
goes on after a decision is tried far more often, and rests in between: a yes must not be lost because hosts restart.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import EventKind, InboxItem
from frontdesk.errors import (
    InternalError,
    LostEventError,
    PushError,
    RequestError,
    RunExistsError,
    StaleTurnError,
    StoreUnavailableError,
    TooManyRequestsError,
    UnreadableRecordError,
)
from frontdesk.host.events.answering import EventAnswering
from frontdesk.host.events.awaited import AwaitedReplies
from frontdesk.host.events.gathering import Gathering
from frontdesk.host.events.held import HeldEvent, HeldEvents
from frontdesk.host.events.places import SenderPlaces
from frontdesk.host.events.tasks import TASKS, task_id, task_payload
from frontdesk.host.events.tries import MOST_TRIES, rest_before
from frontdesk.ids import RandomIds
from frontdesk.kit.aio.pauses import Pauses
from frontdesk.kit.aio.retry import PAUSE
from frontdesk.kit.telemetry import NO_SPANS, Spans, outcome_of
from frontdesk.loggers import runs as log

MOST_AT_ONCE = 200
MOST_CONTROL_AT_ONCE = 50
MOST_OF_SENDER = 20
"""The number of turns that are answered at once for one sender, in all their conversations."""
MOST_CONTROL_OF_SENDER = 5
_PLACE_SECONDS = 30.0
"""The seconds after which a conversation is looked at again whose sender had no place, should nothing wake it up."""
_PAGE = 500


class InboxWorker:
    """Claims the events of the inbox and has them answered, or tried again."""

    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        held: HeldEvents,
        gathering: Gathering,
        awaited: AwaitedReplies,
        answering: EventAnswering,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._held = held
        self._gathering = gathering
        self._awaited = awaited
        self._answering = answering
        self._spans = spans
        self._holder = ""
        self._runner: DurableTaskRunner | None = None
        self._places = SenderPlaces(
            {"turn": MOST_OF_SENDER, "control": MOST_CONTROL_OF_SENDER, "resume": MOST_CONTROL_OF_SENDER}
        )
        self._paused: Pauses[tuple[EventKind, str, str]] = Pauses(clock)
        self._rested: OrderedDict[tuple[str, str], int] = OrderedDict()
        """The events that have rested before a try, by the number of that."""
        self._seen: dict[EventKind, int] = {}
        """The numbers up to which waiting events were read, by kind; none before the first time."""

    def register(self, runner: DurableTaskRunner) -> None:
        """Register with the runner that calls this; once, before it starts."""
        self._runner = runner
        runner.register(TASKS["turn"], self._work, waiting=self._waiting, most=MOST_AT_ONCE)
        # With room of their own, control events never wait for the end of a turn.
        control, waiting = partial(self._work, kind="control"), partial(self._waiting, kind="control")
        runner.register(TASKS["control"], control, waiting=waiting, most=MOST_CONTROL_AT_ONCE)
        resume, waiting = partial(self._work, kind="resume"), partial(self._waiting, kind="resume")
        runner.register(TASKS["resume"], resume, waiting=waiting, most=MOST_CONTROL_AT_ONCE)

    async def start(self) -> None:
        """Start to take up events."""
        # A new one at each start, so that the events of the last start are seen to have no holder.
        self._holder = RandomIds().new("host")
        self._seen.clear()
        self._held.start()

    async def halt(self) -> None:
        """Take up no more events; those that are being answered go on."""
        self._held.halt()

    async def stop(self) -> None:
        """Stop renewing leases, after the runner has ended."""
        await self._held.stop()

    async def _waiting(self, kind: EventKind = "turn") -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Yield all waiting events at the first call; after that a page at a time, because new ones wake the runner."""
        whole, after = kind not in self._seen, self._seen.get(kind, 0)
        while page := await self._store.inbox.waiting(self._holder, kind=kind, after=after, limit=_PAGE):
            for event in page:
                conversation = (event.channel, event.conversation_id)
                if self._paused.until((kind, *conversation)) is None and not self._places.waits(kind, conversation):
                    yield task_id(kind, event.channel, event.conversation_id), task_payload(event)
            after = page[-1].number
            if not whole:
                break
        self._seen[kind] = after if page and len(page) == _PAGE else 0

    async def _work(self, payload: Mapping[str, Any], kind: EventKind = "turn") -> float | None:
        """Answer the events of one conversation; return when to come back, or `None` if none is left."""
        conversation, has_answered = (payload["channel"], payload["conversation_id"]), False
        self._places.forget(kind, conversation)
        while not self._held.stopping:
            if (until := self._paused.until((kind, *conversation))) is not None:
                return until
            try:
                item = await self._gathering.claim(*conversation, self._holder, kind, again=has_answered)
            except UnreadableRecordError:
                return self._paused.begin((kind, *conversation))
            if not isinstance(item, InboxItem):
                return item
            if (seconds := self._rest(item)) is not None:
                await self._held.give_back(item)
                return self._paused.begin((kind, *conversation), seconds)
            if not self._places.enter(item):
                await self._held.give_back(item)
                return self._clock.now() + _PLACE_SECONDS
            held, has_answered = self._held.add(item), True
            try:
                again = await self._process(held)
            finally:
                self._held.remove(item)
                self._awaited.notify(item)
                await self._free_place(item)
            if again is not None:
                return again
        return None

    async def _free_place(self, item: InboxItem) -> None:
        """Have the conversation taken up that has waited for the place of an event."""
        conversation = self._places.leave(item)
        if conversation is not None and self._runner is not None and not self._held.stopping:
            channel, conversation_id = conversation
            payload = {"channel": channel, "conversation_id": conversation_id}
            name = task_id(item.kind, channel, conversation_id)
            await self._runner.schedule(TASKS[item.kind], payload, task_id=name)

    def _rest(self, item: InboxItem) -> float | None:
        """Return the seconds for which an event has to rest in this process, before it is tried once more."""
        seconds, name = rest_before(item), (item.channel, item.event_id)
        if not seconds or self._rested.pop(name, None) == item.attempts:
            return None
        self._rested[name] = item.attempts
        if len(self._rested) > _PAGE:
            self._rested.popitem(last=False)
        return seconds

    async def _process(self, held: HeldEvent) -> float | None:
        """Answer one event, or refuse it; return a time if it has to wait, and all that follow with it."""
        span = self._spans.begin("event", held.item.channel, held.item.trace)
        trace = span.carry()
        if trace is not None:
            # In this process only: another one that takes it up begins a span of its own, in the same trace.
            held.item = held.item.replace(trace=trace)
        try:
            await self._answering.attempt(held)
        except asyncio.CancelledError:
            span.end("cancelled")
            await self._held.give_back(held.item)
            raise
        except Exception as error:
            span.end(outcome_of(error))
            return await self._after(held.item, error)
        span.end("ok")
        return None

    async def _after(self, item: InboxItem, failure: Exception) -> float | None:
        """Deal with an event that could not be answered, as its error asks for."""
        try:
            raise failure
        except UnreadableRecordError:
            # It is answered by a process that can read what it needs, before those that follow.
            await self._held.give_back(item)
            return self._paused.begin((item.kind, item.channel, item.conversation_id))
        except (StoreUnavailableError, TooManyRequestsError) as error:
            return await self._later(item, error.retry_after)
        except PushError as error:
            if not error.permanent and item.attempts < MOST_TRIES:
                return await self._later(item, error.retry_after, tried=True)
            await self._answering.refuse(item, InternalError(code=error.code))
        except StaleTurnError:
            log.warning("event %s of %s lost its session, and is answered anew", item.event_id, item.channel)
            return await self._later(item, None)
        except LostEventError:
            log.warning("event %s of %s is answered by another", item.event_id, item.channel)
        except RunExistsError as error:
            # Another process may have recorded the event's run, and with it that the event is done.
            if item.attempts < MOST_TRIES:
                return await self._later(item, None, tried=True)
            await self._answering.refuse(item, error)
        except RequestError as error:
            await self._answering.refuse(item, error)
        except Exception as error:  # No code awaits this task, and the next event waits for it.
            log.error("event %s of %s could not be answered", item.event_id, item.channel, exc_info=error)
            await self._answering.refuse(item, InternalError())
        return None

    async def _later(self, item: InboxItem, after: float | None, *, tried: bool = False) -> float:
        await self._held.give_back(item, tried=tried)
        return self._clock.now() + (after or PAUSE)
