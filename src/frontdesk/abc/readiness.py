"""The check of a channel whether its platform is there."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class ReportsReadiness(Protocol):
    """A channel that knows whether it can receive and send, such as once its platform has said who we are."""

    def is_ready(self) -> bool:
        """Tell whether it can; asked at each `GET /readyz`, so that it waits for nothing."""
        ...


@runtime_checkable
class ChecksOnline(Protocol):
    """A channel that can ask its platform whether its settings work there."""

    async def check_online(self) -> Sequence[str]:
        """Ask the platform whether it takes the credentials; return what is wrong, a line each.

        It is called in a host that was built and not started, and leaves nothing open behind.
        """
        ...
