"""Work on large values, away from the event loop.

One thread for the whole process: the work is Python code that holds the interpreter, so a second thread would make
nothing faster, and every other request would wait twice as long for its share. It is not the default executor, which
tools may fill for as long as they like. Callers take turns at it, so that nobody waits for all that another has asked
for.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextvars import copy_context
from itertools import chain
from types import NoneType
from typing import Any, ParamSpec, TypeVar

from frontdesk.kit.aio.current import current_caller
from frontdesk.kit.aio.fair_thread import FairThread

P = ParamSpec("P")
R = TypeVar("R")

LARGE = 64 * 1024
"""The number of bytes from which on a value is large."""

_A_VALUE = 32
"""The bytes that a value counts beside its text when its cost is estimated."""
_TEXTS = (str, bytes)
_SCALARS = (int, float, NoneType)
_thread = FairThread("frontdesk-large")


async def off_loop(work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function in the thread for large values, in the turn of the present caller."""
    context = copy_context()
    job = _thread.submit(current_caller.get(), lambda: context.run(work, *args, **kwargs))
    return await asyncio.wrap_future(job)


async def run_weighed(value: Any, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function on a value: here, or in the thread if the value is heavy."""
    if is_heavy(value):
        return await off_loop(work, *args, **kwargs)
    return work(*args, **kwargs)


async def run_sized(size: int, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function on a value of so many bytes: here, or in the thread if the value is large."""
    if size <= LARGE:
        return work(*args, **kwargs)
    return await off_loop(work, *args, **kwargs)


def is_heavy(value: Any, *, inside: bool = False) -> bool:
    """Tell whether it takes long to write a value: it has much text, or many parts."""
    return weight_of(value, LARGE, each=_A_VALUE, inside=inside) > LARGE


def weight_of(value: Any, most: int, *, each: int = 1, inside: bool = False) -> int:
    """Count the bytes that a value takes as JSON at least; stop counting above `most`.

    `each` is what a value counts beside its text. `inside` counts what lies in the attributes of objects too, all of
    which need not be written.
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
