"""Coroutines that start when they are called, even if they are never awaited."""

from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from frontdesk.concurrency.tasks import spawn_clean

T = TypeVar("T")

_collected: "ContextVar[list[Begun[Any]] | None]" = ContextVar("begun_work", default=None)
_running: "set[Begun[Any]]" = set()


class Begun(Generic[T]):
    """Work that has been started. Awaiting it returns its result."""

    __slots__ = ("_task", "is_awaited")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        """Start the work. The event loop logs the error of work that is never awaited."""
        try:
            self._task = spawn_clean(work)
        except RuntimeError:
            # There is no loop here.
            work.close()
            raise
        self.is_awaited = False
        # The loop holds no reference to a task.
        _running.add(self)
        self._task.add_done_callback(lambda _: _running.discard(self))
        if (collected := _collected.get()) is not None:
            collected.append(self)

    def __await__(self) -> Generator[Any, None, T]:
        self.is_awaited = True
        return self._task.__await__()


@contextmanager
def collect_begun() -> Generator[None]:
    """Collect the work that is started inside the block, for `await_begun`."""
    token = _collected.set([])
    try:
        yield
    finally:
        _collected.reset(token)


async def await_begun() -> None:
    """Await the collected work that was not awaited yet, and raise its error."""
    for work in _collected.get() or ():
        if not work.is_awaited:
            await work
