"""Faults that a test sets for the next calls of a bot."""

import asyncio
from dataclasses import dataclass, field

from frontdesk_testing.telegram.errors import ApiError

ANY = "*"
"""Every method."""


@dataclass(slots=True, eq=False)
class Hold:
    """A call that waits until a test releases it."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the call has come."""
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Release the call."""
        self.released.set()


@dataclass(slots=True, eq=False)
class Fault:
    """A fault of some calls. Its settings take effect in this order."""

    method: str
    times: int = 1
    hold: Hold | None = None
    drop_before: bool = False
    """Close the connection, and do nothing."""
    error: ApiError | None = None
    drop_after: bool = False
    """Do what is asked, and close the connection."""


class Faults:
    """The active faults, in order."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Append a fault."""
        self._faults.append(fault)

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    def take(self, method: str) -> Fault | None:
        """Return the fault of a call, and count it."""
        for fault in self._faults:
            if fault.method in (method, ANY):
                fault.times -= 1
                if fault.times <= 0:
                    self._faults.remove(fault)
                return fault
        return None
