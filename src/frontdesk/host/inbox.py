"""Answers the events that platforms sent: in order within a conversation, each once, over processes.

An event is written before it is acknowledged. The process that claims the first one of a conversation answers it; the
result of the turn, its deliveries, and the end of the event are written together. A turn that a crash cuts off is run
again, because it is not known how far it came; an event that ends its process again and again is given up.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from frontdesk.abc.allowlist import Allowed
from frontdesk.abc.channel import Channel
from frontdesk.abc.events import AnswersEvents, SettlesAnswers
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.access.gate import Gate
from frontdesk.clock import Clock
from frontdesk.data.delivery import Delivery, InboxItem, WaitingEvent
from frontdesk.data.request import ChannelRequest
from frontdesk.delivery.outbox import Outbox
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.errors import (
    DeliveryExistsError,
    FrontdeskError,
    InternalError,
    LostEventError,
    PushError,
    RequestError,
    StaleTurnError,
    StoreUnavailableError,
    TooManyRequestsError,
    UnreadableRecordError,
)
from frontdesk.ids import RandomIds
from frontdesk.kit.aio.pauses import Pauses
from frontdesk.kit.aio.retry import PAUSE, until_available
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.names import digest
from frontdesk.loggers import runs as log
from frontdesk.pipeline import Pipeline
from frontdesk.sessions.leases import LeaseRenewal

TASK = "answer"
MOST_AT_ONCE = 200
MOST_TRIES = 3
_PAGE = 500
_LEFT_ALONE = 30.0
"""The seconds for which a conversation is left to processes that can read what it needs."""

Name = tuple[str, str]


class InboxWorker:
    """Answers the events of the inbox."""

    def __init__(
        self,
        store: HostStateStore,
        pipeline: Pipeline,
        channels: Mapping[str, Channel],
        planner: Planner,
        outbox: Outbox,
        clock: Clock,
        gate: Gate,
        presence: Presence,
        aliases: Aliases,
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._channels = channels
        self._planner = planner
        self._outbox = outbox
        self._clock = clock
        self._gate = gate
        self._presence = presence
        self._aliases = aliases
        self._runner: DurableTaskRunner | None = None
        self._holder = ""
        self._held: dict[Name, tuple[InboxItem, asyncio.Task[Any] | None]] = {}
        self._renewal = LeaseRenewal(store.lease_seconds, lambda: list(self._held), self._renew, self._lose)
        self._stopping = False
        self._paused: Pauses[Name] = Pauses(clock, _LEFT_ALONE)
        self._seen: int | None = None
        """The number up to which waiting events were read; `None` before the first time."""

    def register(self, runner: DurableTaskRunner) -> None:
        """Register with the runner that calls this; once, before it starts."""
        runner.register(TASK, self._work, waiting=self._waiting, most=MOST_AT_ONCE)
        self._runner = runner

    async def start(self) -> None:
        """Start to take up events."""
        # A new one at each start, so that the events of the last start are seen to have no holder.
        self._holder = RandomIds().new("host")
        self._stopping, self._seen = False, None
        self._renewal.start()

    async def halt(self) -> None:
        """Take up no more events; those that are being answered go on."""
        self._stopping = True

    async def stop(self) -> None:
        """Stop renewing leases, after the runner has ended."""
        await self._renewal.stop()

    async def accept(self, item: InboxItem) -> None:
        """Store an event; when this returns, it is written."""
        item = await self._aliases.inward(item)
        async with self._store.transaction() as transaction:
            transaction.accept(item)
        if self._runner is not None:
            await self._runner.schedule(TASK, _payload(item), task_id=_task_id(item))

    async def reply(self, item: InboxItem, text: str, number: int) -> None:
        """Send a text to where an event came from; the same number for the same event sends it once."""
        key = digest(f"{number}:{len(item.channel)}:{item.channel}:{item.event_id}")[:32]
        request = await self._aliases.inward_request(item.request)
        rows = self._planner.reply(request, item.caller.identity, text, key)
        with suppress(DeliveryExistsError):
            async with self._store.transaction() as transaction:
                for row in rows:
                    transaction.add_delivery(row, once=True)
        await self._outbox.wake(rows)

    async def _waiting(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Yield all waiting events at the first call; after that a page at a time, because new ones wake the runner."""
        whole, after = self._seen is None, self._seen or 0
        while page := await self._store.inbox.waiting(self._holder, after=after, limit=_PAGE):
            for event in page:
                if self._paused.until((event.channel, event.conversation_id)) is None:
                    yield _task_id(event), _payload(event)
            after = page[-1].number
            if not whole:
                break
        self._seen = after if page and len(page) == _PAGE else 0

    async def _work(self, payload: Mapping[str, Any]) -> float | None:
        """Answer the events of one conversation; return when to come back, or `None` if none is left."""
        conversation = (payload["channel"], payload["conversation_id"])
        while not self._stopping:
            if (until := self._paused.until(conversation)) is not None:
                return until
            try:
                item = await self._store.inbox.claim(*conversation, self._holder)
            except UnreadableRecordError:
                return self._paused.begin(conversation)
            if item is None:
                return None
            self._held[item.channel, item.event_id] = (item, asyncio.current_task())
            try:
                again = await self._process(item)
            finally:
                del self._held[item.channel, item.event_id]
            if again is not None:
                return again
        return None

    async def _process(self, item: InboxItem) -> float | None:
        """Answer one event, or refuse it; return a time if it has to wait, and all that follow with it."""
        try:
            if item.attempts > MOST_TRIES:
                log.error("event %s of %s is given up: each time the process ended", item.event_id, item.channel)
                raise InternalError(code="given_up")
            await self._answer(item)
        except asyncio.CancelledError:
            await self._give_back(item)
            raise
        except UnreadableRecordError:
            # It is answered by a process that can read what it needs, before those that follow.
            await self._give_back(item)
            return self._paused.begin((item.channel, item.conversation_id))
        except (StoreUnavailableError, TooManyRequestsError) as error:
            return await self._later(item, error.retry_after)
        except PushError as error:
            if not error.permanent and item.attempts < MOST_TRIES:
                return await self._later(item, error.retry_after, tried=True)
            await self._refuse(item, InternalError(code=error.code))
        except StaleTurnError:
            log.warning("event %s of %s lost its session, and is answered anew", item.event_id, item.channel)
            return await self._later(item, None)
        except LostEventError:
            log.warning("event %s of %s is answered by another", item.event_id, item.channel)
        except RequestError as error:
            await self._refuse(item, error)
        except Exception as error:  # No code awaits this task, and the next event waits for it.
            log.error("event %s of %s could not be answered", item.event_id, item.channel, exc_info=error)
            await self._refuse(item, InternalError())
        return None

    async def _answer(self, item: InboxItem) -> None:
        channel = self._answering_channel(item)
        shown = await self._aliases.outward(item)
        request: ChannelRequest | None = item.request if channel is None else await channel.prepare(shown)
        if request is not None:
            request = await self._aliases.inward_request(request)
            settle = partial(channel.settle_answers, shown) if isinstance(channel, SettlesAnswers) else None
            await self._pipeline.answer(item, request, settle)
            return
        owner = await self._command_owner(item)
        async with self._store.transaction() as transaction:
            if owner is not None:
                here = item.request.conversation_id
                self._presence.note_place(transaction, owner, item.caller.identity, here, item.received_at)
            transaction.finish(item)

    async def _command_owner(self, item: InboxItem) -> str | None:
        """Return the owner of a command; `None` if the event was none, or of a stranger."""
        if item.request.operation != "command" or not self._presence.matters:
            return None
        decision = await self._gate.decide(item.caller, item.channel)
        return decision.isolation_key if isinstance(decision, Allowed) else None

    def _answering_channel(self, item: InboxItem) -> AnswersEvents | None:
        channel = self._channels.get(item.channel)
        if channel is None:
            raise InternalError(code="no_channel")
        return channel if isinstance(channel, AnswersEvents) else None

    async def _later(self, item: InboxItem, after: float | None, *, tried: bool = False) -> float:
        await self._give_back(item, tried=tried)
        return self._clock.now() + (after or PAUSE)

    async def _give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        """Release an event for the next process to claim; before that is written, no other can."""

        async def write() -> None:
            async with self._store.transaction() as transaction:
                transaction.give_back(item, tried=tried)

        # When the host stops, it is given back by the end of its lease.
        with suppress(LostEventError, StoreUnavailableError):
            await until_available(write, give_up=lambda: self._stopping)

    async def _refuse(self, item: InboxItem, error: RequestError) -> None:
        """Answer an event with an error and end it; a run that failed has done both."""
        if error.run_id is not None:
            return
        log.warning("event %s of %s was not answered: %s", item.event_id, item.channel, error.code)
        failure_notice = await self._failure_notice(item, error)
        with suppress(LostEventError):
            async with self._store.transaction() as transaction:
                transaction.finish(item, error=error.code)
                for delivery in failure_notice:
                    transaction.add_delivery(delivery)
            await self._outbox.wake(failure_notice)

    async def _failure_notice(self, item: InboxItem, error: RequestError) -> Sequence[Delivery]:
        channel = self._channels.get(item.channel)
        if channel is None:
            return ()
        if not isinstance(channel, AnswersEvents):
            return await self._planner.failure_notice(item.request, item.caller.identity, error.message)
        try:
            await channel.refuse(await self._aliases.outward(item), error)
        except FrontdeskError as failure:
            log.warning("the sender of event %s of %s could not be notified: %s", item.event_id, item.channel, failure)
        return ()

    async def _renew(self, held: Sequence[Name]) -> Collection[Name]:
        items = [self._held[name][0] for name in held if name in self._held]
        renewed = await self._store.inbox.renew(items)
        return set(held) - {(item.channel, item.event_id) for item in renewed}

    def _lose(self, name: Name) -> None:
        item, task = self._held.get(name, (None, None))
        if item is not None and task is not None:
            log.warning("the turn of event %s of %s stops: its lease could not be renewed", item.event_id, item.channel)
            task.cancel()


def _task_id(item: InboxItem | WaitingEvent) -> str:
    # The length keeps two conversations apart whatever is in their names.
    return f"{TASK}:{len(item.channel)}:{item.channel}:{item.conversation_id}"


def _payload(item: InboxItem | WaitingEvent) -> Mapping[str, Any]:
    return {"channel": item.channel, "conversation_id": item.conversation_id}
