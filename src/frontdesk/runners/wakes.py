"""Runs the calls of wake-ups: one at a time for each id, and a limited number at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple

from frontdesk.clock import Clock
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import call_later_clean, spawn_clean
from frontdesk.loggers import tasks as log

_CANCEL_TIMEOUT = 5.0
_LONGEST = 600.0
"""The longest wait in seconds; a call that comes too early returns its time again. So a wait that was computed before
the clock was set back does not last for ever."""
_CLOSER = 1.0


class Wake(NamedTuple):
    """A wake-up: the task, its id and its payload."""

    name: str
    task_id: str
    payload: Mapping[str, Any]


Call = Callable[[Wake, int], Awaitable[float | None]]
"""A function of a wake-up and its failures in a row; returns when to call again."""


class Failed(Exception):
    """A call failed, and is to be made again at `at`."""

    def __init__(self, at: float) -> None:
        self.at = at


class _Entry:
    """The state of an id: it waits for its time, waits for room, or runs. Times are of the steady clock."""

    __slots__ = ("again", "at", "failures", "ready", "task", "wake")

    def __init__(self, wake: Wake) -> None:
        self.wake = wake
        self.ready = False
        self.at: float | None = None
        self.task: asyncio.Task[None] | None = None
        self.again: float | None = None
        self.failures = 0


class Wakes:
    """The wake-ups of this process that have not ended."""

    def __init__(self, call: Call, clock: Clock, *, most: int, freed: Callable[[], None]) -> None:
        """Keep `most` ids at most; call `freed` when there is room again after there was none."""
        self._call = call
        self._clock = clock
        self._most = most
        self._room: dict[str, int] = {}
        self._entries: dict[str, _Entry] = {}
        self._ready: dict[str, deque[_Entry]] = {}
        self._timed: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self.stopping = False
        self._freed = freed
        self._full = False

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def make_room(self, name: str, most: int) -> None:
        """Set how many calls of a name may run at once."""
        self._room[name] = most
        self._ready[name] = deque()

    def start(self) -> None:
        """Start making calls."""
        self.stopping = False

    def running(self, task_id: str) -> bool | None:
        """Tell whether an id runs; `None` if it is not known here."""
        entry = self._entries.get(task_id)
        return None if entry is None else entry.task is not None

    def wake(self, wake: Wake, at: float | None = None) -> bool:
        """Plan a call, now or at a time; return false if there are too many ids already."""
        entry = self._entries.get(wake.task_id)
        if entry is None:
            if len(self._entries) >= self._most:
                self._full = True
                return False
            entry = self._entries[wake.task_id] = _Entry(wake)
        due = self._steady(at)
        if entry.task is not None:
            entry.wake = wake
            entry.again = due if entry.again is None else min(entry.again, due)
        elif not entry.ready:
            self._plan(entry, due)
        return True

    def move(self, task_id: str, at: float) -> None:
        """Move a waiting call forward if its time is sooner than planned; not a retry."""
        entry = self._entries.get(task_id)
        if entry is None or entry.at is None or entry.failures:
            return
        due = self._steady(at)
        if due < entry.at - _CLOSER:
            self._plan(entry, due)

    def _steady(self, at: float | None) -> float:
        """Convert a time of day to the steady clock, as far as that is known now."""
        steady = self._clock.steady()
        return steady if at is None else steady + min(max(at - self._clock.now(), 0.0), _LONGEST)

    def _plan(self, entry: _Entry, at: float) -> None:
        if at <= self._clock.steady():
            entry.at, entry.ready = None, True
            self._ready[entry.wake.name].append(entry)
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
        while ready and self._room[name] > 0 and not self.stopping:
            entry = ready.popleft()
            if not entry.ready:
                continue
            entry.ready = False
            self._room[name] -= 1
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
            self._room[name] += 1
            self._ended(entry, at)
            self._fill(name)

    def _ended(self, entry: _Entry, at: float | None) -> None:
        entry.task = None
        again, entry.again = entry.again, None
        times = [time for time in (None if at is None else self._steady(at), again) if time is not None]
        if times and not self.stopping:
            self._plan(entry, min(times))
            return
        del self._entries[entry.wake.task_id]
        if self._full and 2 * len(self._entries) < self._most:
            self._full = False
            self._freed()

    async def settled(self, task_id: str) -> None:
        """Wait for the end of the running call of an id, if there is one."""
        entry = self._entries.get(task_id)
        if entry is not None and entry.task is not None:
            await asyncio.wait([entry.task])

    def has_room(self, name: str) -> bool:
        """Tell whether another call of a name could run at once."""
        return self._room[name] > 0 and len(self._entries) < self._most

    async def cancel(self, task_id: str) -> None:
        """Drop an id; cancel its running call, and wait for its end."""
        entry = self._entries.get(task_id)
        if entry is None:
            return
        if entry.task is None:
            entry.ready = False
            del self._entries[task_id]
            return
        entry.again = None
        await stopped(entry.task, within=_CANCEL_TIMEOUT)

    async def drain(self, grace: float) -> list[Wake]:
        """Stop making calls, wait `grace` seconds for those that run, then cancel them.

        Return the wake-ups that were cancelled, and those that waited for room.
        """
        self.stopping = True
        self._set_timer()
        left = [entry.wake for entry in self._entries.values() if entry.ready]
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        if tasks and grace > 0:
            await asyncio.wait(tasks, timeout=grace)
        left += [entry.wake for entry in self._entries.values() if entry.task is not None]
        if not await stopped(*tasks, within=_CANCEL_TIMEOUT):
            log.warning("some tasks did not end when they were cancelled")
        self._entries.clear()
        self._timed.clear()
        for ready in self._ready.values():
            ready.clear()
        return left
