"""Notifies requests when the server stops."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from starlette.types import Scope

STATE_NAME = "frontdesk.server_stop"
"""The name under which our server puts it into the state of each request."""


class ServerStop:
    """The stop state of the server, and the events that are set when it stops."""

    def __init__(self) -> None:
        self.has_begun = False
        self._events: set[asyncio.Event] = set()
        self.before_cancel: list[Callable[[], Awaitable[None]]] = []
        """Awaited when the time for open requests is over, before the server cancels them."""

    def begin(self) -> None:
        self.has_begun = True
        for event in self._events:
            event.set()

    @contextmanager
    def wake_on_stop(self, event: asyncio.Event) -> Generator[None]:
        """Register an event that is set when the server starts to stop."""
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
    """Return the stop state of a request's server. On other servers it is never set."""
    found = scope.get("state", {}).get(STATE_NAME)
    return found if isinstance(found, ServerStop) else _NEVER


def call_before_cancel(scope: Scope, call: Callable[[], Awaitable[None]]) -> None:
    """Await a function before the server of a scope cancels open requests. Other servers do not support this."""
    stop = server_stop(scope)
    if stop is not _NEVER:
        stop.before_cancel.append(call)
