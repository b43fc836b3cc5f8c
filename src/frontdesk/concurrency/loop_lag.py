"""Logs code that blocks the event loop."""

import asyncio
import os
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from frontdesk.clock import Clock, SystemClock
from frontdesk.concurrency.tasks import call_later_clean, start_thread
from frontdesk.loggers import runs as log

MAX_LAG_SECONDS = 2.0
"""The seconds for which the loop may stand still before that is logged."""
_BEAT_SECONDS = 0.25
_MIN_SAMPLES = 2
"""The number of times that a function has to be seen: a process that gets no processor shows another one each time."""
_MAX_PLACES = 100
"""The most functions that are logged; each is logged once."""
_OWN = f"{Path(__file__).resolve().parents[1]}{os.sep}"
_STDLIB = tuple(f"{Path(sysconfig.get_path(name)).resolve()}{os.sep}" for name in ("stdlib", "platstdlib"))
_INSTALLED = tuple(f"{Path(sysconfig.get_path(name)).resolve()}{os.sep}" for name in ("purelib", "platlib"))
_SERVING = tuple(
    f"{place}{name}{os.sep}"
    for place in _INSTALLED
    for name in ("agent_framework", "uvicorn", "starlette", "anyio", "websockets")
)
_LOOP = ("asyncio/base_events.py", "asyncio/events.py", "asyncio/runners.py")
"""The files of the loop itself: the frames above them belong to whoever has started it."""
_TOOLS = "agent_framework/_tools.py"


class Place(NamedTuple):
    """The code location that runs on the loop."""

    function: str
    """The innermost function that is of no installed package, with its file and line."""
    tool: str | None
    """The tool that it belongs to, if it is one."""


class LoopLag:
    """Monitors an event loop from a separate thread."""

    def __init__(self, *, max_seconds: float = MAX_LAG_SECONDS, clock: Clock | None = None) -> None:
        self._max_seconds = max_seconds
        self._clock = clock or SystemClock()
        self._logged: set[str] = set()
        self._seen: Counter[Place] = Counter()
        self._stopping = threading.Event()
        self._wait_for_thread: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._beat_at = 0.0
        self._watched = 0

    async def start(self) -> None:
        self._stopping.clear()
        self._watched = threading.get_ident()
        self._beat_at = self._clock.steady()
        self._beat()
        self._wait_for_thread = start_thread("frontdesk-loop-lag", self._sample).join

    async def stop(self) -> None:
        self._stopping.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._wait_for_thread is not None:
            self._wait_for_thread()

    def _beat(self) -> None:
        now = self._clock.steady()
        lag, self._beat_at = now - self._beat_at - _BEAT_SECONDS, now
        if self._seen:
            seen, self._seen = self._seen, Counter()
            if lag >= self._max_seconds:
                self._log(seen, lag)
        self._timer = call_later_clean(_BEAT_SECONDS, self._beat)

    def _log(self, seen: "Counter[Place]", lag: float) -> None:
        place, count = seen.most_common(1)[0]
        if count < _MIN_SAMPLES or place.function in self._logged or len(self._logged) >= _MAX_PLACES:
            return
        self._logged.add(place.function)
        log.warning(
            "event loop blocked for %.1f s, while all other callers waited: tool=%s function=%s; run blocking calls in "
            "a thread, such as by asyncio.to_thread",
            lag,
            place.tool,
            place.function,
        )

    def _sample(self) -> None:
        while not self._stopping.wait(_BEAT_SECONDS):
            # Half a second late: an idle loop is not.
            if self._clock.steady() - self._beat_at > 3 * _BEAT_SECONDS:
                frame = sys._current_frames().get(self._watched)  # pyright: ignore[reportPrivateUsage]
                place = None if frame is None else locate(frame)
                if place is not None:
                    self._seen[place] += 1


def locate(frame: FrameType) -> Place | None:
    """Return the location in user code on a stack, else in a library, or None if there is neither."""
    function, library, tool = None, None, None
    at: FrameType | None = frame
    while at is not None and not at.f_code.co_filename.endswith(_LOOP):
        code = at.f_code
        name = f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
        if function is None and _is_users(code.co_filename):
            function = name
        if library is None and _is_librarys(code.co_filename):
            library = name
        if tool is None and code.co_filename.endswith(_TOOLS):
            named = getattr(at.f_locals.get("self"), "name", None)
            tool = named if isinstance(named, str) else None
        at = at.f_back
    shown = function or library
    return None if shown is None else Place(shown, tool)


def _is_users(filename: str) -> bool:
    return not filename.startswith(("<", _OWN, *_STDLIB, *_INSTALLED))


def _is_librarys(filename: str) -> bool:
    return filename.startswith(_INSTALLED) and not filename.startswith(_SERVING)
