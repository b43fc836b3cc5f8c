"""Runs work on large values in a thread, off the event loop.

There is one thread for the whole process. The work is Python code that holds the interpreter lock, so a second thread
would not make it faster, and would double the delay of other requests. The default executor is not used, because tools
may occupy it for any time. Callers take turns, so that none waits for all work of another.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain
from types import NoneType
from typing import Any, ParamSpec, TypeVar

from frontdesk.concurrency.current import current_caller

R = TypeVar("R")

_Jobs = OrderedDict["Future[Any]", Callable[[], Any]]


class FairThread:
    """Runs jobs one at a time, round-robin between callers and in order for each caller.

    A caller that was just served goes to the end of the queue. A new caller therefore waits only for the running job
    and for one job of each caller that was already waiting, however many jobs others have.

    There is no limit of its own: every job has a caller that waits for its future, and cancelling the future removes
    the job from the queue immediately.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Hashable, _Jobs] = OrderedDict()
        self._served: Hashable = object()
        self._working = False

    @property
    def waiting(self) -> int:
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def submit(self, caller: Hashable, work: Callable[[], R]) -> "Future[R]":
        """Queue a job of a caller. It does not run if its future is cancelled before it has started."""
        job: Future[R] = Future()
        with self._lock:
            if not self._working:
                self._pool.submit(self._run)
                self._working = True
            self._waiting.setdefault(caller, OrderedDict())[job] = work
        job.add_done_callback(lambda job: self._drop(caller, job) if job.cancelled() else None)
        return job

    def _drop(self, caller: Hashable, job: "Future[Any]") -> None:
        with self._lock:
            jobs = self._waiting.get(caller)
            if jobs is not None and jobs.pop(job, None) is not None and not jobs:
                del self._waiting[caller]

    def _run(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        with self._lock:
            if not self._waiting:
                self._working = False
                return False
            job, work = self._take()
        if job.set_running_or_notify_cancel():
            _finish(job, work)
        # An error refers to the frames that it went through: with the job in them, neither is freed before the garbage
        # collector runs, nor is the value that they work on.
        del job, work
        return True

    def _take(self) -> "tuple[Future[Any], Callable[[], Any]]":
        if self._served in self._waiting:
            # Only now, so that a caller who came while the last job ran is before its caller.
            self._waiting.move_to_end(self._served)
        caller, jobs = next(iter(self._waiting.items()))
        taken = jobs.popitem(last=False)
        if not jobs:
            del self._waiting[caller]
        self._served = caller
        return taken


def _finish(job: "Future[R]", work: Callable[[], R]) -> None:
    try:
        job.set_result(work())
    except BaseException as error:  # The waiting caller gets the error, and the thread goes on.
        job.set_exception(error)
    finally:
        del job, work


P = ParamSpec("P")

MIN_LARGE_BYTES = 64 * 1024
"""The number of bytes from which on a value is large."""

MAX_RENDERED_HERE = 2_048
"""The characters that are rendered on the loop at most. A character of Markdown takes up to ten microseconds."""
_VALUE_OVERHEAD_BYTES = 32
"""The bytes that a value counts beside its text when its cost is estimated."""
_TEXTS = (str, bytes)
_SCALARS = (int, float, NoneType)
_thread = FairThread("frontdesk-large")


async def off_loop(work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function in the thread for large values, queued for the current caller."""
    context = copy_context()
    job = _thread.submit(current_caller.get(), lambda: context.run(work, *args, **kwargs))
    return await asyncio.wrap_future(job)


async def run_weighed(value: Any, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function on a value: inline, or in the thread if the value is heavy."""
    if is_heavy(value):
        return await off_loop(work, *args, **kwargs)
    return work(*args, **kwargs)


async def run_rendering(value: Any, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function that renders a value: inline, or in the thread if the value has much text."""
    if compute_weight(value, MAX_RENDERED_HERE, inside=True) > MAX_RENDERED_HERE:
        return await off_loop(work, *args, **kwargs)
    return work(*args, **kwargs)


async def run_sized(size: int, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function on a value of this many bytes: inline, or in the thread if the value is large."""
    if size <= MIN_LARGE_BYTES:
        return work(*args, **kwargs)
    return await off_loop(work, *args, **kwargs)


def is_heavy(value: Any, *, inside: bool = False) -> bool:
    """Return True if a value is slow to serialize because it has much text or many parts."""
    return compute_weight(value, MIN_LARGE_BYTES, each=_VALUE_OVERHEAD_BYTES, inside=inside) > MIN_LARGE_BYTES


def compute_weight(value: Any, most: int, *, each: int = 1, inside: bool = False) -> int:
    """Return a lower bound for the JSON size of a value in bytes. Counting stops above `most`.

    `each` is the overhead of a value besides its text. `inside` also counts the attributes of objects, although not all
    of them are necessarily written.
    """
    weight, rest = 0, [iter((value,))]
    while rest and weight <= most:
        for part in rest[-1]:
            weight += each
            if isinstance(part, _TEXTS):
                weight += len(part) + 1
            elif isinstance(part, _SCALARS):
                pass
            elif parts := _parts(part, inside):
                rest.append(parts)
                break
            if weight > most:
                break
        else:
            rest.pop()
    return weight


def _parts(value: Any, inside: bool) -> Iterator[Any] | None:
    if isinstance(value, dict):
        return chain.from_iterable(value.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, (list, tuple, set, frozenset)):
        return iter(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    fields = getattr(value, "__dict__", None) if inside and not isinstance(value, type) else None
    return None if fields is None else iter(fields.values())
