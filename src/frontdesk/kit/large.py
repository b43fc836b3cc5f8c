"""Work on large values, away from the event loop.

One thread for the whole process: the work is Python code that holds the interpreter, so a second thread would make
nothing faster, and every other request would wait twice as long for its share. It is not the default executor, which
tools may fill for as long as they like.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

LARGE = 64 * 1024
"""From how many bytes on a value is large."""

_thread = ThreadPoolExecutor(1, thread_name_prefix="frontdesk-large")


async def off_loop(work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function in the thread for large values."""
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(_thread, lambda: context.run(work, *args, **kwargs))


async def run_sized(size: int, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function on a value of so many bytes: here, or in the thread if the value is large."""
    if size <= LARGE:
        return work(*args, **kwargs)
    return await off_loop(work, *args, **kwargs)


def weight_of(value: Any, most: int, *, inside: bool = False) -> int:
    """Count the bytes that a value takes as JSON at least; stop counting above `most`.

    `inside` counts what lies in the attributes of objects too, all of which need not be written.
    """
    weight, rest = 0, [iter((value,))]
    while rest and weight <= most:
        for one in rest[-1]:
            if isinstance(one, (str, bytes)):
                weight += len(one) + 2
            else:
                weight += 1
                parts = _parts(one, inside)
                if parts is not None:
                    rest.append(parts)
                    break
            if weight > most:
                break
        else:
            rest.pop()
    return weight


def _parts(value: Any, inside: bool) -> Iterator[Any] | None:
    if isinstance(value, dict):
        return chain.from_iterable(cast("dict[Any, Any]", value).items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return iter(cast("list[Any]", value))
    fields = getattr(value, "__dict__", None) if inside and not isinstance(value, type) else None
    return None if not isinstance(fields, dict) else iter(cast("dict[str, Any]", fields).values())
