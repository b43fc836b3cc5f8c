"""Ends tasks for sure."""

import asyncio
from typing import Any

_AGAIN = 0.05


async def stopped(*tasks: "asyncio.Task[Any] | None", within: float | None = None) -> bool:
    """Cancel tasks until they have ended; return false if that took too long.

    Once may not be enough: up to Python 3.11 `wait_for` swallows a cancellation that comes with what it waits for.
    """
    left = {task for task in tasks if task is not None}
    until = None if within is None else asyncio.get_running_loop().time() + within
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN)
        if until is not None and asyncio.get_running_loop().time() > until:
            break
    return not left
