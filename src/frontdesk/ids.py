"""The only module that creates ids. They are unguessable and ordered by time.

48 bits of milliseconds come first, so that an index keeps rows of the same time together. They are followed by 80
random bits from the operating system. Random bytes are read in blocks, because a system call per id would be most of
its cost.
"""

import os
import re
import string
from collections.abc import Callable, Iterator
from time import time_ns
from typing import Protocol
from weakref import WeakMethod

_BLOCK_BYTES = 1024
_RANDOM_DIGITS = 20
_MADE = re.compile(rf"([a-z]+)_([0-9a-f]{{12}})[0-9a-f]{{{_RANDOM_DIGITS}}}")
_ALPHANUMERIC = string.digits + string.ascii_letters


class Ids(Protocol):
    """Generates ids."""

    def new(self, prefix: str) -> str:
        """Return a new id, such as `run_0192f0c1a2b3...`."""
        ...


class RandomIds:
    __slots__ = ("__weakref__", "_block", "_now", "_stamp")

    def __init__(self) -> None:
        self._block: Iterator[str] = iter(())
        self._now = 0
        self._stamp = ""
        forget = WeakMethod(self._forget)
        # After a fork both processes would hold the same block, and make the same ids from it.
        os.register_at_fork(after_in_child=lambda: _call(forget))

    def _forget(self) -> None:
        self._block = iter(())

    def new(self, prefix: str) -> str:
        digits = next(self._block, None) or self._refill()
        now = time_ns() // 1_000_000
        if now != self._now:
            self._now, self._stamp = now, f"{now:012x}"
        return f"{prefix}_{self._stamp}{digits}"

    def _refill(self) -> str:
        digits = os.urandom(_BLOCK_BYTES * _RANDOM_DIGITS // 2).hex(" ", _RANDOM_DIGITS // 2)
        # The iterator of a list never gives the same item to two threads.
        self._block = iter(digits.split())
        return next(self._block)


def _call(method: WeakMethod[Callable[[], None]]) -> None:
    bound = method()
    if bound is not None:
        bound()


def extract_time(given: str, prefix: str) -> float | None:
    """Return the creation time of an id in epoch seconds, or None for a foreign id."""
    found = _MADE.fullmatch(given)
    return int(found[2], 16) / 1000 if found is not None and found[1] == prefix else None


def new_secret() -> str:
    """Return 192 random bits as hexadecimal digits, for unguessable values."""
    return os.urandom(24).hex()


def new_nonce() -> bytes:
    """Return a random 96-bit nonce for one AES-GCM encryption."""
    return os.urandom(12)


def new_alphanumerics(count: int) -> str:
    """Return random digits and letters, for ids whose format an external service defines."""
    # A byte of 248 or more would favour the first few characters.
    drawn = ""
    while len(drawn) < count:
        drawn += "".join(_ALPHANUMERIC[byte % 62] for byte in os.urandom(2 * count) if byte < 248)
    return drawn[:count]
