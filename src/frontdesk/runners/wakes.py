"""Runs the calls of wake-ups: one at a time per id, with a limit on concurrent calls."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Generic, NamedTuple, TypeVar

from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import call_later_clean, cancel_and_wait, spawn_clean
from frontdesk.interfaces.runner import ONE_GROUP, TaskGroups
from frontdesk.loggers import tasks as log

T = TypeVar("T")


class Shares:
    """Counts the slots that each group holds."""

    def __init__(self, slots: int, groups: Sequence[str] = ()) -> None:
        """Reserve half of the slots, in equal parts, for the groups. Any other group uses the shared half alone."""
        # Without a second group there is nobody to reserve slots for.
        reserved = slots // (2 * len(groups)) if len(groups) > 1 else 0
        self._reserved = dict.fromkeys(groups, reserved)
        self._shared = slots - reserved * len(groups)
        self._held: Counter[str] = Counter()

    def count_held(self, group: str) -> int:
        return self._held[group]

    def can_take(self, group: str) -> bool:
        """Return True if there is a slot for a group, reserved or shared."""
        return self._shared > 0 or self._held[group] < self._reserved.get(group, 0)

    def take(self, group: str) -> bool:
        """Take a slot for a group. Return False if there is none."""
        if not self.can_take(group):
            return False
        if self._held[group] >= self._reserved.get(group, 0):
            self._shared -= 1
        self._held[group] += 1
        return True

    def release(self, group: str) -> None:
        self._held[group] -= 1
        if self._held[group] >= self._reserved.get(group, 0):
            self._shared += 1
        if not self._held[group]:
            del self._held[group]


class FairQueue(Generic[T]):
    """Queues entries by group, and returns them as slots become free, in turn over the groups."""

    def __init__(self, slots: int, groups: Sequence[str] = ()) -> None:
        self.shares = Shares(slots, groups)
        # The group that was served longest ago is first.
        self._queues: OrderedDict[str, deque[T]] = OrderedDict()

    def add(self, group: str, entry: T) -> None:
        self._queues.setdefault(group, deque()).append(entry)

    def take(self) -> tuple[str, T] | None:
        """Take a slot and return the next entry with its group, or None. The caller releases the slot.

        The group with the fewest slots is first. Of several, the least recently served one is first.
        """
        able = [group for group in self._queues if self.shares.can_take(group)]
        if not able:
            return None
        group = min(able, key=self.shares.count_held)
        queue = self._queues.pop(group)
        entry = queue.popleft()
        if queue:
            self._queues[group] = queue
        self.shares.take(group)
        return group, entry

    def clear(self) -> None:
        self._queues.clear()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))


_CANCEL_TIMEOUT_SECONDS = 5.0
_MAX_WAIT_SECONDS = 600.0
"""The longest wait in seconds; a call that comes too early returns its time again. So a wait that was computed before
the clock was set back does not last for ever."""
_CLOSER_SECONDS = 1.0


class Wake(NamedTuple):
    """A wake-up: the task, its id and its payload."""

    name: str
    task_id: str
    payload: Mapping[str, Any]


Call = Callable[[Wake, int], Awaitable[float | None]]
"""A function of a wake-up and its failures in a row; returns when to call again."""


class Failed(Exception):
    """A failed call, to repeat at `at`."""

    def __init__(self, at: float) -> None:
        self.at = at


class _Entry:
    """The state of an id: waiting for its time, waiting for capacity, or running. Times use the steady clock."""

    __slots__ = ("again", "at", "failures", "group", "ready", "task", "wake")

    def __init__(self, wake: Wake, group: str) -> None:
        self.wake = wake
        self.group = group
        self.ready = False
        self.at: float | None = None
        self.task: asyncio.Task[None] | None = None
        self.again: float | None = None
        self.failures = 0


class Wakes:
    """The pending wake-ups of this process."""

    def __init__(self, call: Call, clock: Clock, *, most: int, freed: Callable[[], None]) -> None:
        """Keep at most `most` ids. Call `freed` when capacity is available again."""
        self._call = call
        self._clock = clock
        self._most = most
        self._groups: dict[str, TaskGroups] = {}
        self._known = Shares(most)
        self._entries: dict[str, _Entry] = {}
        self._ready: dict[str, FairQueue[_Entry]] = {}
        self._timed: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self.stopping = False
        self._freed = freed
        self._full = False

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def evict_oldest(self, name: str, most: int, groups: TaskGroups = ONE_GROUP) -> None:
        """Set the concurrency limit of a name, and the groups that share it. Call before the first wake-up."""
        self._groups[name] = groups
        self._ready[name] = FairQueue(most, groups.names)
        self._known = Shares(
            self._most, [_build_share_name(one, group) for one, of in self._groups.items() for group in of.names]
        )

    def start(self) -> None:
        self.stopping = False

    def find_running(self, task_id: str) -> bool | None:
        """Return True if an id is running, or `None` if it is unknown here."""
        entry = self._entries.get(task_id)
        return None if entry is None else entry.task is not None

    def wake(self, wake: Wake, at: float | None = None) -> bool:
        """Schedule a call, now or at a time. Return False if its group, or all groups, have too many ids."""
        entry = self._entries.get(wake.task_id)
        if entry is None:
            group = self.get_group(wake)
            if not self._known.take(_build_share_name(wake.name, group)):
                self._full = True
                return False
            entry = self._entries[wake.task_id] = _Entry(wake, group)
        due = self._steady(at)
        if entry.task is not None:
            entry.wake = wake
            entry.again = due if entry.again is None else min(entry.again, due)
        elif not entry.ready:
            self._plan(entry, due)
        return True

    def get_group(self, wake: Wake) -> str:
        return self._groups[wake.name].get_group(wake.payload)

    def move(self, task_id: str, at: float) -> None:
        """Move a waiting call forward if `at` is sooner than planned. Retries are not moved."""
        entry = self._entries.get(task_id)
        if entry is None or entry.at is None or entry.failures:
            return
        due = self._steady(at)
        if due < entry.at - _CLOSER_SECONDS:
            self._plan(entry, due)

    def _steady(self, at: float | None) -> float:
        """Convert a time of day to the steady clock, using the current offset."""
        steady = self._clock.steady()
        return steady if at is None else steady + min(max(at - self._clock.now(), 0.0), _MAX_WAIT_SECONDS)

    def _plan(self, entry: _Entry, at: float) -> None:
        if at <= self._clock.steady():
            entry.at, entry.ready = None, True
            self._ready[entry.wake.name].add(entry.group, entry)
            self._fill(entry.wake.name)
        elif entry.at is None or at < entry.at:
            entry.at = at
            heappush(self._timed, (at, entry.wake.task_id))
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._timed and not self.stopping:
            pause = max(0.0, self._timed[0][0] - self._clock.steady())
            self._timer = call_later_clean(pause, self._run_due)

    def _run_due(self) -> None:
        now = self._clock.steady()
        self._timer = None
        while self._timed and self._timed[0][0] <= now:
            at, task_id = heappop(self._timed)
            entry = self._entries.get(task_id)
            # An entry that was moved has left its old time in the heap.
            if entry is not None and entry.at == at:
                self._plan(entry, at)
        self._set_timer()

    def _fill(self, name: str) -> None:
        ready = self._ready[name]
        while not self.stopping and (taken := ready.take()) is not None:
            group, entry = taken
            if not entry.ready:
                ready.shares.release(group)
                continue
            entry.ready = False
            entry.task = spawn_clean(self._run(entry))

    async def _run(self, entry: _Entry) -> None:
        name, at = entry.wake.name, None
        try:
            at = await self._call(entry.wake, entry.failures)
            entry.failures = 0
        except Failed as failed:
            entry.failures += 1
            at = failed.at
        finally:
            self._ready[name].shares.release(entry.group)
            self._finish(entry, at)
            self._fill(name)

    def _finish(self, entry: _Entry, at: float | None) -> None:
        entry.task = None
        again, entry.again = entry.again, None
        times = [time for time in (None if at is None else self._steady(at), again) if time is not None]
        if times and not self.stopping:
            self._plan(entry, min(times))
            return
        self._forget(entry)
        if self._full and 2 * len(self._entries) < self._most:
            self._full = False
            self._freed()

    def _forget(self, entry: _Entry) -> None:
        if self._entries.get(entry.wake.task_id) is entry:
            del self._entries[entry.wake.task_id]
            self._known.release(_build_share_name(entry.wake.name, entry.group))

    async def wait_for(self, task_id: str) -> None:
        """Wait for the running call of an id to end, if any."""
        entry = self._entries.get(task_id)
        if entry is not None and entry.task is not None:
            await asyncio.wait([entry.task])

    def has_capacity(self, wake: Wake) -> bool:
        """Return True if the call of a new id could run at once."""
        group = self.get_group(wake)
        return self._ready[wake.name].shares.can_take(group) and self._known.can_take(
            _build_share_name(wake.name, group)
        )

    async def cancel(self, task_id: str) -> None:
        """Drop an id, cancel its running call, and wait for its end."""
        entry = self._entries.get(task_id)
        if entry is None:
            return
        if entry.task is None:
            entry.ready = False
            self._forget(entry)
            return
        entry.again = None
        await cancel_and_wait(entry.task, within=_CANCEL_TIMEOUT_SECONDS)

    async def drain(self, grace: float) -> list[Wake]:
        """Stop making calls, wait `grace` seconds for the running ones, then cancel them.

        Return the wake-ups that were cancelled, and those that waited for capacity.
        """
        self.stopping = True
        self._set_timer()
        left = [entry.wake for entry in self._entries.values() if entry.ready]
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        if tasks and grace > 0:
            await asyncio.wait(tasks, timeout=grace)
        left += [entry.wake for entry in self._entries.values() if entry.task is not None]
        if not await cancel_and_wait(*tasks, within=_CANCEL_TIMEOUT_SECONDS):
            log.warning("tasks did not end after their cancellation")
        for entry in list(self._entries.values()):
            self._forget(entry)
        self._timed.clear()
        for ready in self._ready.values():
            ready.clear()
        return left


def _build_share_name(name: str, group: str) -> str:
    return f"{name}/{group}"
