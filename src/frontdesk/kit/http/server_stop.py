"""The end of the server, as requests see it that stay open: those end at once, so that no server waits for them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from starlette.types import Scope

STATE_NAME = "frontdesk.server_stop"
"""The name under which our server puts it into the state of each request."""


class ServerStop:
    """Whether the server is stopping, and the events that are set when it does."""

    def __init__(self) -> None:
        self.has_begun = False
        self._events: set[asyncio.Event] = set()

    def begin(self) -> None:
        """Wake up all who wait."""
        self.has_begun = True
        for event in self._events:
            event.set()

    @contextmanager
    def waking(self, event: asyncio.Event) -> Generator[None]:
        """Have an event set when the server begins to stop."""
        if self.has_begun:
            event.set()
        self._events.add(event)
        try:
            yield
        finally:
            self._events.discard(event)


_NEVER = ServerStop()
"""The end of a server that does not tell."""


def server_stop(scope: Scope) -> ServerStop:
    """Return the end of the server of a request; one that never begins, if another server serves it."""
    found = scope.get("state", {}).get(STATE_NAME)
    return found if isinstance(found, ServerStop) else _NEVER
