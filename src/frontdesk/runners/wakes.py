"""Calls what was woken: one call at a time for each id, and no more at once than there is room for."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple

from frontdesk.clock import Clock
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import call_later_clean, spawn_clean
from frontdesk.loggers import tasks as log

_PATIENCE = 5.0
_LONGEST = 600.0
"""After how many seconds one that waits longer is called all the same: whoever was woken too early says so, and a time
that a clock was set back from is not waited for."""
_CLOSER = 1.0


class Wake(NamedTuple):
    """What is to be called."""

    name: str
    task_id: str
    payload: Mapping[str, Any]


Call = Callable[[Wake, int], Awaitable[float | None]]
"""Does what was woken, told how often that has failed in a row; returns when it wants to be woken again."""


class Failed(Exception):
    """A call failed, and is to be made again at `at`."""

    def __init__(self, at: float) -> None:
        self.at = at


class _Entry:
    """One id: it waits for its time, for room, or runs. Its times are readings of the steady clock."""

    __slots__ = ("again", "at", "failures", "ready", "task", "wake")

    def __init__(self, wake: Wake) -> None:
        self.wake = wake
        self.ready = False
        self.at: float | None = None
        self.task: asyncio.Task[None] | None = None
        self.again: float | None = None
        self.failures = 0


class Wakes:
    """Everything that was woken in this process and has not ended."""

    def __init__(self, call: Call, clock: Clock, *, most: int, freed: Callable[[], None]) -> None:
        """No more than `most` ids are kept; `freed` is told when there is room again after there was none."""
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
        """So many of a name may run at once."""
        self._room[name] = most
        self._ready[name] = deque()

    def start(self) -> None:
        """From here on calls are made."""
        self.stopping = False

    def running(self, task_id: str) -> bool | None:
        """Whether an id runs; `None` if it is not known here."""
        entry = self._entries.get(task_id)
        return None if entry is None else entry.task is not None

    def wake(self, wake: Wake, at: float | None = None) -> bool:
        """Calls soon, or at a time; false if there are too many already."""
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
        """Calls one that waits for a time of day earlier, if that has come closer; not one whose call has failed."""
        entry = self._entries.get(task_id)
        if entry is None or entry.at is None or entry.failures:
            return
        due = self._steady(at)
        if due < entry.at - _CLOSER:
            self._plan(entry, due)

    def _steady(self, at: float | None) -> float:
        """Return what the steady clock will read at a time of day, as far as anybody can tell now."""
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
            self._timer = call_later_clean(pause, self._ring)

    def _ring(self) -> None:
        now = self._clock.steady()
        self._timer = None
        while self._timed and self._timed[0][0] <= now:
            at, task_id = heappop(self._timed)
            entry = self._entries.get(task_id)
            # One that was woken earlier, or for another time, has left its old time behind.
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
        times = [one for one in (None if at is None else self._steady(at), again) if one is not None]
        if times and not self.stopping:
            self._plan(entry, min(times))
            return
        del self._entries[entry.wake.task_id]
        if self._full and 2 * len(self._entries) < self._most:
            self._full = False
            self._freed()

    async def settled(self, task_id: str) -> None:
        """Returns when the call has ended that is being made for an id, if there is one."""
        entry = self._entries.get(task_id)
        if entry is not None and entry.task is not None:
            await asyncio.wait([entry.task])

    def has_room(self, name: str) -> bool:
        """Whether another of a name could run at once."""
        return self._room[name] > 0 and len(self._entries) < self._most

    async def cancel(self, task_id: str) -> None:
        """Forgets an id; a call that is being made is cancelled, and has ended when this returns."""
        entry = self._entries.get(task_id)
        if entry is None:
            return
        if entry.task is None:
            entry.ready = False
            del self._entries[task_id]
            return
        entry.again = None
        await stopped(entry.task, within=_PATIENCE)

    async def drain(self, grace: float) -> list[Wake]:
        """Makes no more calls, lets those that are being made end for a while, then cancels them.

        Returns what was cut off, and what never came to run.
        """
        self.stopping = True
        self._set_timer()
        left = [entry.wake for entry in self._entries.values() if entry.ready]
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        if tasks and grace > 0:
            await asyncio.wait(tasks, timeout=grace)
        left += [entry.wake for entry in self._entries.values() if entry.task is not None]
        if not await stopped(*tasks, within=_PATIENCE):
            log.warning("some tasks did not end when they were cancelled")
        self._entries.clear()
        self._timed.clear()
        for ready in self._ready.values():
            ready.clear()
        return left
