"""Timeouts of many requests with one shared timer.

A timer of the event loop costs more than parsing a small request, and nearly all would be cancelled before they expire.
So all waits of one kind share a timer. It checks a few times per timeout period for expired waits, which makes adding
and removing a wait cheap.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import call_later_clean
from frontdesk.errors import StoreUnavailableError

_CHECKS_PER_TIMEOUT = 4
"""The number of checks within one timeout."""


class Timed:
    # Without a value here: in Python 3.11, an attribute that a class has too is looked up the slow way.
    task: "asyncio.Task[Any] | None"


W = TypeVar("W", bound=Timed)


class TimeoutWheel(Generic[W]):
    """All waiting operations with the same timeout."""

    __slots__ = ("_act", "_came", "_looks", "_loop", "_pause", "_waiting")

    def __init__(self, seconds: float, act: Callable[[W], None]) -> None:
        """Call `act` for each entry after `seconds`, and before 1.5 times `seconds` have passed."""
        self._act = act
        self._pause = seconds / _CHECKS_PER_TIMEOUT
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looks = 0
        self._came = False
        # The wheel keeps the start of each timeout itself, so that an object can be in several wheels at once.
        self._waiting: dict[W, int] = {}

    def add(self, timed: W, task: "asyncio.Task[Any]") -> None:
        # Until Python 3.12, asking which loop is running costs a call of the system.
        loop = task.get_loop()
        if loop is self._loop:
            self._came = True
            self._waiting[timed] = self._looks
        else:
            self.watch(timed, loop)
        timed.task = task

    def watch(self, timed: W, loop: asyncio.AbstractEventLoop) -> None:
        """Start the timeout of an operation without a task of its own."""
        if loop is not self._loop:
            self._loop = loop
            self._waiting.clear()
            call_later_clean(self._pause, self._look, loop, loop=loop)
        self._came = True
        self._waiting[timed] = self._looks

    def renew(self, timed: W) -> None:
        """Restart the timeout of an object that is in the wheel."""
        if timed in self._waiting:
            self._waiting[timed] = self._looks

    def drop(self, timed: W) -> None:
        self._waiting.pop(timed, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not loop:
            return
        self._looks += 1
        if self._waiting or self._came:
            self._came = False
            call_later_clean(self._pause, self._look, loop, loop=loop)
        else:
            # Nothing was added since the last check; the next `watch` starts the timer again.
            self._loop = None
        # The first check may come at once, so that one more has to pass.
        for timed in [timed for timed, start in self._waiting.items() if self._looks - start > _CHECKS_PER_TIMEOUT]:
            # An earlier call of `act` may have removed this one.
            if self._waiting.pop(timed, None) is not None:
                self._act(timed)


T = TypeVar("T")

RETRY_INTERVAL_SECONDS = 1.0
"""The number of seconds between two attempts."""


def never() -> bool:
    return False


async def until_available(
    attempt: Callable[[], Awaitable[T]], *, pause: float = RETRY_INTERVAL_SECONDS, give_up: Callable[[], bool] = never
) -> T:
    """Retry an attempt until the store is available. Raises the unavailability error when `give_up` returns True."""
    while True:
        try:
            return await attempt()
        except StoreUnavailableError:
            if give_up():
                raise
        await asyncio.sleep(pause)


K = TypeVar("K", bound=Hashable)

LEFT_ALONE_SECONDS = 30.0
"""The seconds for which work is left to processes that can read what it needs."""


class Pauses(Generic[K]):
    """Names with the time until which each is paused. Bounded: the oldest entry is evicted."""

    def __init__(self, clock: Clock, *, most: int = 10_000) -> None:
        self._clock = clock
        self._most = most
        self._until: OrderedDict[K, float] = OrderedDict()

    def begin(self, name: K, seconds: float | None = None) -> float:
        """Pause a name from now on, for the default time if none is given. Return the end of the pause."""
        seconds = LEFT_ALONE_SECONDS if seconds is None else seconds
        self._until[name] = self._clock.steady() + seconds
        self._until.move_to_end(name)
        if len(self._until) > self._most:
            self._until.popitem(last=False)
        return self._clock.now() + seconds

    def until(self, name: K) -> float | None:
        """Return the end of the pause of a name by the current wall clock, or None if it is not paused."""
        until = self._until.get(name)
        if until is None:
            return None
        left = until - self._clock.steady()
        if left > 0:
            return self._clock.now() + left
        del self._until[name]
        return None

    def names(self) -> Sequence[K]:
        return [name for name in tuple(self._until) if self.until(name) is not None]
