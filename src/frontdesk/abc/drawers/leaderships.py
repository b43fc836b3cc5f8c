"""Leaderships of channels."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.leadership import Leadership


class Leaderships(Protocol):
    """Leaderships by channel and name; at most one holder each."""

    async def claim(self, channel: str, name: str, holder: str) -> Leadership | None:
        """Take a leadership for `lease_seconds`; `None` while another holder has it.

        Each claim that succeeds has a higher fence than all before it, also one by the holder that has it already.
        """
        ...

    async def renew(self, held: Sequence[Leadership]) -> Sequence[Leadership]:
        """Prolong leaderships for another `lease_seconds`; return those that were lost."""
        ...

    async def release(self, channel: str, name: str, holder: str) -> None:
        """Free a leadership for the next holder; one that another has by now stays as it is."""
        ...
