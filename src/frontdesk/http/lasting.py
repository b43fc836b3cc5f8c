"""Limits the long-lived connections of callers without credentials to a share of the server's connections."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from starlette.types import Scope

from frontdesk.errors import UnavailableError

LASTING = "frontdesk.lasting"
"""The extension by which the server of this host offers the count."""
_RETRY_SECONDS = 5.0


class LastingConnections:
    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0

    @contextmanager
    def keep_open(self) -> Generator[None]:
        """Count a connection during the block, or reject it."""
        if self.count >= self.most:
            raise UnavailableError("Too many open connections.", retry_after=_RETRY_SECONDS)
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1


@contextmanager
def keep_open(scope: Scope) -> Generator[None]:
    """Count the connection of a request during the block, if the server supports it."""
    extensions: Mapping[str, Any] = scope.get("extensions") or {}
    lasting: LastingConnections | None = extensions.get(LASTING)
    if lasting is None:
        yield
    else:
        with lasting.keep_open():
            yield
