"""The only place that makes ids: unguessable, and in the order of their making.

48 bits of milliseconds come first, so that rows written together lie together in an index; 80 random bits follow, from
the operating system. Random bytes are drawn in blocks, because a system call for each id is what an id costs.
"""

import os
import time
from collections.abc import Callable
from typing import Protocol
from weakref import WeakMethod

_BLOCK = 4096
_RANDOM_DIGITS = 20


class Ids(Protocol):
    """Makes ids."""

    def new(self, prefix: str) -> str:
        """A new id, such as `run_0192f0c1a2b3...`."""
        ...


class RandomIds:
    """Time-ordered random ids."""

    __slots__ = ("__weakref__", "_digits", "_now", "_stamp", "_used")

    def __init__(self) -> None:
        self._digits = ""
        self._used = 0
        self._now = 0
        self._stamp = ""
        forget = WeakMethod(self._forget)
        # After a fork both processes would hold the same block, and make the same ids from it.
        os.register_at_fork(after_in_child=lambda: _call(forget))

    def _forget(self) -> None:
        self._digits = ""
        self._used = 0

    def new(self, prefix: str) -> str:
        start = self._used
        if start >= len(self._digits):
            self._digits = os.urandom(_BLOCK * _RANDOM_DIGITS // 2).hex()
            start = 0
        self._used = end = start + _RANDOM_DIGITS
        now = time.time_ns() // 1_000_000
        if now != self._now:
            self._now, self._stamp = now, f"{now:012x}"
        return f"{prefix}_{self._stamp}{self._digits[start:end]}"


def _call(method: WeakMethod[Callable[[], None]]) -> None:
    found = method()
    if found is not None:
        found()


def new_secret() -> str:
    """192 random bits in hexadecimal digits, for what must never be guessed."""
    return os.urandom(24).hex()
