"""Start tasks and timers, and find the present task.

A task copies the context variables of the code that starts it. Inside a request that is right. Work that runs later, or
for several callers, must not see them: the keys and the turn of the caller whose request happened to start it would be
visible in another's. Each task is started by one of these functions, which says which of the two it is.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def spawn_clean(work: Coroutine[Any, Any, T], *, loop: asyncio.AbstractEventLoop | None = None) -> "asyncio.Task[T]":
    """Start a task in an empty context, for work that does not belong to the present request."""
    return (loop or asyncio.get_running_loop()).create_task(work, context=Context())


def spawn_within(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start a task that shares the present context, for work that is part of the present request."""
    return asyncio.get_running_loop().create_task(work)


def call_later_within(
    delay: float, callback: "Callable[[*Ts], object]", *args: *Ts, loop: asyncio.AbstractEventLoop | None = None
) -> asyncio.TimerHandle:
    """Set a timer that is part of the present request; on the running loop if none is given."""
    return (loop or asyncio.get_running_loop()).call_later(delay, callback, *args)


def call_later_clean(
    delay: float, callback: "Callable[[*Ts], object]", *args: *Ts, loop: asyncio.AbstractEventLoop | None = None
) -> asyncio.TimerHandle:
    """Set a timer whose callback runs in an empty context; on the running loop if none is given."""
    return (loop or asyncio.get_running_loop()).call_later(delay, callback, *args, context=Context())


class _Here(threading.local):
    loop: asyncio.AbstractEventLoop | None = None


_here = _Here()


def present_task() -> "asyncio.Task[Any]":
    """Return the task that runs this; ASGI servers always have one."""
    # Until Python 3.12, asking which loop is running costs a call of the system; nearly always it is the last one of
    # this thread, and a loop that does not run has no task.
    loop = _here.loop
    task = None if loop is None else asyncio.current_task(loop)
    if task is None:
        loop = _here.loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
    if task is None:
        raise RuntimeError("this needs a task to run in")
    return task
