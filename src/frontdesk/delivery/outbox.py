"""Sends the deliveries in the outbox: in order within a destination, each destination independently.

A part is `sending` before it is given to its channel, and that is committed. So a part which a crash leaves in that
state may have arrived, and one that is `pending` has not.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import Delivery, Destination
from frontdesk.delivery.circuit import Circuit
from frontdesk.delivery.destination_drain import ChannelOutlet, DestinationDrain, SettleShown
from frontdesk.delivery.limits import Limits
from frontdesk.delivery.push import can_push
from frontdesk.delivery.waits import Ages, Waits
from frontdesk.errors import FrontdeskError, UnreadableRecordError
from frontdesk.kit.aio.pauses import Pauses
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.telemetry import NO_SPANS, Spans
from frontdesk.loggers import deliveries as log

TASK = "deliver"
_PAGE = 500


class OutboxSender:
    """Sends the deliveries of all channels of this process."""

    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        aliases: Aliases | None = None,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._aliases = aliases or Aliases(store, channels)
        self._store = store
        self._clock = clock
        self._ages = Ages(clock, shared=store.lease_seconds is not None)
        self._outlets = {
            name: _outlet(channel, clock, spans) for name, channel in channels.items() if can_push(channel)
        }
        self._busy: set[Destination] = set()
        self._kept: Counter[str] = Counter()
        """The parts that a reply of this process is written with."""
        self._paused: Pauses[Destination] = Pauses(clock)
        self._schedule: Callable[[Destination], Awaitable[object]] | None = None
        self.settle_shown: SettleShown | None = None
        """Makes the deliveries for a message whose question was decided before the platform had accepted it."""

    def register(self, runner: DurableTaskRunner) -> None:
        """Register a task for each channel with a runner that has not started; no channel waits for another."""
        for name, outlet in self._outlets.items():
            runner.register(
                f"{TASK}:{name}", self.task, waiting=self._waiting_on(name), most=outlet.channel.push_terms.at_once
            )
        self._schedule = lambda destination: runner.schedule(
            f"{TASK}:{destination[0]}", _payload(destination), task_id=task_id(destination)
        )

    async def task(self, payload: Mapping[str, Any]) -> float | None:
        """Send the deliveries of a task, for the runner."""
        return await self.drain(payload["channel"], payload["native_id"])

    async def wake(self, deliveries: Iterable[Delivery]) -> None:
        """Schedule deliveries that were committed; if that fails, the runner's next poll finds them."""
        destinations = {row.destination for row in deliveries if row.ended_at is None and row.channel in self._outlets}
        if self._schedule is None:
            return
        for destination in destinations:
            try:
                await self._schedule(destination)
            except FrontdeskError as error:
                log.warning("a delivery on %s could not be scheduled, and waits: %s", destination[0], error)

    def _waiting_on(self, channel: str) -> Callable[[], AsyncIterator[tuple[str, Mapping[str, Any]]]]:
        async def waiting() -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
            async for place in self._places(channel):
                yield task_id((channel, place)), _payload((channel, place))

        return waiting

    async def waiting(self) -> AsyncIterator[Destination]:
        """Yield every destination that has something to send now."""
        for channel in self._outlets:
            async for place in self._places(channel):
                yield channel, place

    async def _places(self, channel: str) -> AsyncIterator[str]:
        self._ages.look()
        outlet, now, steady = self._outlets[channel], self._clock.now(), self._clock.steady()
        if outlet.circuit.free_at(steady) > steady:
            # While the circuit is open, nothing can be sent.
            return
        longest = outlet.channel.push_terms.retry.longest_delay
        last: str | None = None
        while page := await self._store.outbox.waiting(channel, now=now, longest=longest, after=last, limit=_PAGE):
            for place in page:
                if self._paused.until((channel, place)) is None:
                    yield place
            last = page[-1]

    async def drain(self, channel: str, native_id: str) -> float | None:
        """Send all that is due for one destination; return when to come back, `None` if nothing is left."""
        destination = (channel, native_id)
        outlet = self._outlets.get(channel)
        if outlet is None:
            log.warning("there is no channel %s here that could send what waits for it", channel)
            return None
        if destination in self._busy:
            return self._clock.now() + 1.0
        steady = self._clock.steady()
        if (free_at := outlet.circuit.free_at(steady)) > steady:
            # While the platform is down, the rows of its many destinations need not be read.
            return self._time_of(free_at)
        if (until := self._paused.until(destination)) is not None:
            return until
        self._busy.add(destination)
        try:
            return_at = await self._drain(outlet, destination).go()
            return None if return_at is None else self._time_of(return_at)
        except UnreadableRecordError as error:
            log.info("a destination on %s is left to a newer version: %s", channel, error.reason)
            return self._paused.begin(destination)
        finally:
            self._busy.discard(destination)

    def _drain(self, outlet: ChannelOutlet, destination: Destination) -> DestinationDrain:
        return DestinationDrain(
            self._store,
            self._clock,
            self._ages,
            outlet,
            destination,
            self._aliases,
            self._kept,
            self.settle_shown,
        )

    @contextmanager
    def keeping(self, rows: Sequence[Delivery]) -> Generator[None]:
        """Leave parts alone in this process, while a reply is written with them."""
        kept = Counter(row.delivery_id for row in rows)
        self._kept += kept
        try:
            yield
        finally:
            self._kept -= kept

    def is_kept(self, row: Delivery) -> bool:
        """Tell whether a reply of this process is being written with a part."""
        return row.delivery_id in self._kept

    def _time_of(self, steady: float) -> float:
        """Return the time of day at a time of the steady clock, unless the clock is set before."""
        return self._clock.now() + max(steady - self._clock.steady(), 0.0)

    def outlet(self, channel: str) -> ChannelOutlet | None:
        """Return what this process knows of the platform of a channel; `None` if the channel can't push."""
        return self._outlets.get(channel)

    def resume(self, channel: str) -> None:
        """Close the circuit of a channel, because the operator knows that its platform works."""
        outlet = self._outlets.get(channel)
        if outlet is not None:
            outlet.circuit.succeed()


def task_id(destination: Destination) -> str:
    """Return the id of the task that serves a destination."""
    channel, place = destination
    # The length keeps two destinations apart whatever is in their names.
    return f"{TASK}:{len(channel)}:{channel}:{place}"


def _payload(destination: Destination) -> Mapping[str, Any]:
    return {"channel": destination[0], "native_id": destination[1]}


def _outlet(channel: Channel, clock: Clock, spans: Spans) -> ChannelOutlet:
    terms = channel.push_terms
    return ChannelOutlet(
        channel=channel,
        limits=Limits(terms.per_second, terms.per_destination, per_group=terms.per_group),
        circuit=Circuit(terms.failures, terms.pause, terms.retry.longest_delay),
        waits=Waits(clock),
        spans=spans,
    )
