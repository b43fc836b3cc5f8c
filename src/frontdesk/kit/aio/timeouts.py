"""Timeouts of many requests, kept by one timer.

A timer of the event loop's own costs more than parsing a small request, and nearly all of them would be cancelled
before their time. So all that wait for the same thing share one timer, which checks a few times per timeout which of
them have waited too long: adding and removing one costs next to nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from frontdesk.kit.aio.tasks import call_later_clean

_LOOKS = 4
"""The number of checks within one timeout."""


class Timed:
    """Something that waits, and the task that it waits in."""

    # Without values here: in Python 3.11, an attribute that a class has too is looked up the slow way.
    task: "asyncio.Task[Any] | None"
    since: int


W = TypeVar("W", bound=Timed)


class TimeoutWheel(Generic[W]):
    """All that wait with the same timeout."""

    __slots__ = ("_act", "_came", "_looks", "_loop", "_pause", "_waiting")

    def __init__(self, seconds: float, act: Callable[[W], None]) -> None:
        """Call `act` for each that has waited `seconds`, before it has waited half as long again."""
        self._act = act
        self._pause = seconds / _LOOKS
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looks = 0
        self._came = False
        self._waiting: set[W] = set()

    def add(self, timed: W, task: "asyncio.Task[Any]") -> None:
        """Start the timeout of something that waits."""
        # Until Python 3.12, asking which loop is running costs a call of the system.
        self.watch(timed, task.get_loop())
        timed.task = task

    def watch(self, timed: W, loop: asyncio.AbstractEventLoop) -> None:
        """Start the timeout of something that has no task of its own."""
        if loop is not self._loop:
            self._loop = loop
            self._waiting.clear()
            call_later_clean(self._pause, self._look, loop, loop=loop)
        self._came = True
        timed.since = self._looks
        self._waiting.add(timed)

    def renew(self, timed: W) -> None:
        """Start the timeout of something that is watched already once more."""
        timed.since = self._looks

    def drop(self, timed: W) -> None:
        """Stop the timeout of something."""
        self._waiting.discard(timed)

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
        for timed in [timed for timed in self._waiting if self._looks - timed.since > _LOOKS]:
            self._waiting.discard(timed)
            self._act(timed)
