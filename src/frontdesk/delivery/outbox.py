"""Sends the deliveries of the outbox: in order per destination, destinations in parallel.

The state `sending` of a part is committed before its channel receives the part. After a crash, a part in this state may
have arrived, and a `pending` one has not.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from frontdesk.chat.aliases import Aliases
from frontdesk.clock import Clock
from frontdesk.concurrency.timeouts import Pauses
from frontdesk.delivery.destination_drain import ChannelOutlet, DestinationDrain, SettleShown
from frontdesk.delivery.limits import Ages, Circuit, SendLimits, Waits
from frontdesk.delivery.push import can_push
from frontdesk.errors import FrontdeskError, UnreadableRecordError
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import deliveries as log
from frontdesk.models.delivery import Delivery, Destination
from frontdesk.telemetry.spans import NO_SPANS, Spans

TASK = "deliver"
_PAGE_ROWS = 500


class OutboxSchedule:
    """Schedules the sending of committed deliveries."""

    def __init__(self, runner: DurableTaskRunner, channels: Collection[str]) -> None:
        """Schedule tasks for `channels`, the names of those that can push."""
        self._runner, self._channels = runner, channels

    async def wake(self, deliveries: Iterable[Delivery]) -> None:
        """Schedule committed deliveries. If that fails, the next poll of the runner finds them."""
        for destination in {
            row.destination for row in deliveries if row.ended_at is None and row.channel in self._channels
        }:
            name = f"{TASK}:{destination[0]}"
            try:
                await self._runner.schedule(name, _payload(destination), task_id=task_id(destination))
            except FrontdeskError as error:
                log.warning("failed to schedule a delivery, it stays queued: channel=%s: %s", destination[0], error)


class OutboxSender:
    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        aliases: Aliases | None = None,
        spans: Spans = NO_SPANS,
        *,
        schedule: OutboxSchedule | None = None,
        settle_shown: SettleShown | None = None,
    ) -> None:
        """`settle_shown` returns the deliveries for a message whose question was decided before the platform accepted
        it."""
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
        self._schedule, self._settle_shown = schedule, settle_shown

    def register(self, runner: DurableTaskRunner) -> None:
        """Register a task for each channel with a runner that has not started. Channels do not block each other."""
        for name, outlet in self._outlets.items():
            runner.register(
                f"{TASK}:{name}",
                self.task,
                waiting=self._build_waiting_list(name),
                most=outlet.channel.push_terms.at_once,
            )

    async def task(self, payload: Mapping[str, Any]) -> float | None:
        return await self.drain(payload["channel"], payload["native_id"])

    async def wake(self, deliveries: Iterable[Delivery]) -> None:
        """Schedule committed deliveries, if the host has a runner."""
        if self._schedule is not None:
            await self._schedule.wake(deliveries)

    def _build_waiting_list(self, channel: str) -> Callable[[], AsyncIterator[tuple[str, Mapping[str, Any]]]]:
        async def list_waiting() -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
            async for place in self._places(channel):
                yield task_id((channel, place)), _payload((channel, place))

        return list_waiting

    async def list_waiting(self) -> AsyncIterator[Destination]:
        """Yield every destination with a delivery that is due."""
        for channel in self._outlets:
            async for place in self._places(channel):
                yield channel, place

    async def _places(self, channel: str) -> AsyncIterator[str]:
        self._ages.look()
        if self._ages.newest_at_start is None:
            newest = await self._store.outbox.find(limit=1)
            self._ages.newest_at_start = newest[0].number if newest else 0
        outlet, now, steady = self._outlets[channel], self._clock.now(), self._clock.steady()
        if outlet.circuit.free_at(steady) > steady:
            # While the circuit is open, nothing can be sent.
            return
        longest = outlet.channel.push_terms.retry.longest_delay
        last: str | None = None
        while page := await self._store.outbox.waiting(channel, now=now, longest=longest, after=last, limit=_PAGE_ROWS):
            for place in page:
                if self._paused.until((channel, place)) is None:
                    yield place
            last = page[-1]

    async def drain(self, channel: str, native_id: str) -> float | None:
        """Send everything that is due for a destination. Return the time of the next attempt, or None if nothing is
        left."""
        destination = (channel, native_id)
        outlet = self._outlets.get(channel)
        if outlet is None:
            log.warning("deliveries wait for a channel that this host does not have: channel=%s", channel)
            return None
        if destination in self._busy:
            return self._clock.now() + 1.0
        steady = self._clock.steady()
        if (free_at := outlet.circuit.free_at(steady)) > steady:
            # While the platform is down, the rows of its many destinations need not be read.
            return self._get_time(free_at)
        if (until := self._paused.until(destination)) is not None:
            return until
        self._busy.add(destination)
        try:
            return_at = await self._drain(outlet, destination).go()
            return None if return_at is None else self._get_time(return_at)
        except UnreadableRecordError as error:
            log.info("destination needs a newer version, skipping it: channel=%s: %s", channel, error.reason)
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
            self._settle_shown,
        )

    @contextmanager
    def keep_back(self, rows: Sequence[Delivery]) -> Generator[None]:
        """Exclude parts from sending in this process while a reply is written with them."""
        kept = Counter(row.delivery_id for row in rows)
        self._kept += kept
        try:
            yield
        finally:
            self._kept -= kept

    def is_kept(self, row: Delivery) -> bool:
        """Return True if a reply of this process is being written with a part."""
        return row.delivery_id in self._kept

    def _get_time(self, steady: float) -> float:
        """Convert a monotonic time to a wall-clock time. Wrong if the clock is set before then."""
        return self._clock.now() + max(steady - self._clock.steady(), 0.0)

    def outlet(self, channel: str) -> ChannelOutlet | None:
        """Return the state of a channel's platform in this process, or None if the channel can't push."""
        return self._outlets.get(channel)

    def resume(self, channel: str) -> None:
        """Close the circuit of a channel at the request of an operator."""
        outlet = self._outlets.get(channel)
        if outlet is not None:
            outlet.circuit.succeed()


def task_id(destination: Destination) -> str:
    channel, place = destination
    # The length keeps two destinations apart whatever is in their names.
    return f"{TASK}:{len(channel)}:{channel}:{place}"


def _payload(destination: Destination) -> Mapping[str, Any]:
    return {"channel": destination[0], "native_id": destination[1]}


def _outlet(channel: Channel, clock: Clock, spans: Spans) -> ChannelOutlet:
    terms = channel.push_terms
    return ChannelOutlet(
        channel=channel,
        limits=SendLimits(
            terms.per_second,
            terms.per_destination,
            per_group=terms.per_group,
            windows=terms.windows,
            key_windows=terms.key_windows,
        ),
        circuit=Circuit(terms.failures, terms.pause, terms.retry.longest_delay),
        waits=Waits(clock),
        spans=spans,
    )
