"""The only place that makes ids: unguessable, and in the order of their making.

48 bits of milliseconds come first, so that rows written together lie together in an index; 80 random bits follow, from
the operating system. Random bytes are drawn in blocks, because a system call for each id is what an id costs.
"""

import os
import time
from typing import Protocol

_BLOCK = 4096
_RANDOM_BYTES = 10


class Ids(Protocol):
    """Makes ids."""

    def new(self, prefix: str) -> str:
        """A new id, such as `run_0192f0c1a2b3...`."""
        ...


class RandomIds:
    """Time-ordered random ids."""

    __slots__ = ("_block", "_pid", "_used")

    def __init__(self) -> None:
        self._block = b""
        self._used = 0
        self._pid = 0

    def new(self, prefix: str) -> str:
        start = self._used
        if start + _RANDOM_BYTES > len(self._block) or self._pid != os.getpid():
            # After a fork both processes hold the same block, and would make the same ids from it.
            self._block, self._pid, start = os.urandom(_BLOCK), os.getpid(), 0
        self._used = start + _RANDOM_BYTES
        return f"{prefix}_{time.time_ns() // 1_000_000:012x}{self._block[start : self._used].hex()}"
