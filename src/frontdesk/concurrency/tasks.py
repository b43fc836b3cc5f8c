"""Starts tasks, timers and threads, and finds the current task.

A task copies the context variables of the code that starts it, which is right inside a request. Work that runs later,
or for several callers, must not inherit them. Otherwise the keys and the turn of one caller would be visible in the
work of another. So each task is started by one of these functions, which selects one of the two.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from inspect import isawaitable
from typing import Any, TypeVar, TypeVarTuple, cast

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def spawn_clean(work: Coroutine[Any, Any, T], *, loop: asyncio.AbstractEventLoop | None = None) -> "asyncio.Task[T]":
    """Start a task in an empty context, for work that does not belong to the current request."""
    return (loop or asyncio.get_running_loop()).create_task(work, context=Context())


def spawn_within(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start a task that shares the current context, for work that is part of the current request."""
    return asyncio.get_running_loop().create_task(work)


def call_later_within(
    delay: float, callback: "Callable[[*Ts], object]", *args: *Ts, loop: asyncio.AbstractEventLoop | None = None
) -> asyncio.TimerHandle:
    """Set a timer that is part of the current request. Uses the running loop by default."""
    return (loop or asyncio.get_running_loop()).call_later(delay, callback, *args)


def call_later_clean(
    delay: float, callback: "Callable[[*Ts], object]", *args: *Ts, loop: asyncio.AbstractEventLoop | None = None
) -> asyncio.TimerHandle:
    """Set a timer whose callback runs in an empty context. Uses the running loop by default."""
    return (loop or asyncio.get_running_loop()).call_later(delay, callback, *args, context=Context())


class _Here(threading.local):
    loop: asyncio.AbstractEventLoop | None = None


_here = _Here()


def current_task() -> "asyncio.Task[Any]":
    """Return the current task. ASGI servers always have one."""
    # Until Python 3.12, asking which loop is running costs a call of the system; nearly always it is the last one of
    # this thread, and a loop that does not run has no task.
    loop = _here.loop
    task = None if loop is None else asyncio.current_task(loop)
    if task is None:
        loop = _here.loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
    if task is None:
        raise RuntimeError("this function must be called in an asyncio task")
    return task


def start_thread(name: str, work: Callable[[], object]) -> threading.Thread:
    """Start a thread that does not keep the process alive."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


_RETRY_INTERVAL_SECONDS = 0.05


async def cancel_and_wait(*tasks: "asyncio.Task[Any] | None", within: float | None = None) -> bool:
    """Cancel tasks until they have ended. Return False on timeout.

    Cancelling once may not be enough: up to Python 3.11 `wait_for` swallows a cancellation that coincides with the
    awaited result.
    """
    left = {task for task in tasks if task is not None}
    until = None if within is None else asyncio.get_running_loop().time() + within
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_RETRY_INTERVAL_SECONDS)
        if until is not None and asyncio.get_running_loop().time() > until:
            break
    return not left


async def maybe_await(value: T | Awaitable[T]) -> T:
    if isawaitable(value):
        return await cast(Awaitable[T], value)
    return value


def notify_from_threads(callback: Callable[[T], object]) -> Callable[[T], None]:
    """Return a function for threads that runs a callback in the running loop."""
    loop = asyncio.get_running_loop()

    def notify(value: T) -> None:
        loop.call_soon_threadsafe(callback, value)

    return notify
