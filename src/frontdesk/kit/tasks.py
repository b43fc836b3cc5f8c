"""The task that runs this."""

import asyncio
import threading
from typing import Any


class _Here(threading.local):
    loop: asyncio.AbstractEventLoop | None = None


_here = _Here()


def present_task() -> "asyncio.Task[Any]":
    """The task that runs this; ASGI servers always have one."""
    # Until Python 3.12, asking which loop is running costs a call of the system; nearly always it is the last one of
    # this thread, and a loop that does not run has no task.
    task = None if _here.loop is None else asyncio.current_task(_here.loop)
    if task is None:
        _here.loop = asyncio.get_running_loop()
        task = asyncio.current_task(_here.loop)
    if task is None:
        raise RuntimeError("this needs a task to run in")
    return task
