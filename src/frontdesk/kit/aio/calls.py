"""Calls functions that may be sync or async."""

from collections.abc import Awaitable
from inspect import isawaitable
from typing import TypeVar, cast

T = TypeVar("T")


async def maybe_await(value: T | Awaitable[T]) -> T:
    """Return the value itself, awaited if it has to be."""
    if isawaitable(value):
        return await cast(Awaitable[T], value)
    return value
