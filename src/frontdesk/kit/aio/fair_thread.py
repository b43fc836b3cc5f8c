"""A thread that runs the jobs of callers in turn."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")

_Jobs = OrderedDict["Future[Any]", Callable[[], Any]]


class FairThread:
    """Runs jobs one at a time: in the order of each caller, one job of each caller in turn.

    A caller who has just been served comes after everybody who waits then. So one who comes while another has many jobs
    waits for the one that runs, and for one of each caller who waited before.

    There is no limit of its own: every job has somebody who waits for its future, and cancelling the future takes the
    job out of the queue at once.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Hashable, _Jobs] = OrderedDict()
        self._served: Hashable = object()
        self._working = False

    @property
    def waiting(self) -> int:
        """Count the jobs that have not begun."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def submit(self, caller: Hashable, work: Callable[[], R]) -> "Future[R]":
        """Queue a job of a caller's; it does not run if its future is cancelled before it has begun."""
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
