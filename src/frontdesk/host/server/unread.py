"""Connections whose clients do not read: little is kept for them, and not for ever.

A transport that is closed still sends what it has left, and waits without end for a client that does not read. So all
connections are checked from time to time, whatever they were used for.
"""

import asyncio
import socket
import sys
from collections.abc import Collection
from struct import unpack_from
from typing import Any

from frontdesk.kit.aio.tasks import call_later_clean
from frontdesk.loggers import http as log

UNSENT_BYTES = 64 * 1024
"""The bytes that the system buffers beyond what is on its way: without a bound it buffers megabytes."""
_LOOKS = 4
"""The number of checks within the time for which a client may read nothing."""
_LOW_WATER: int | None = getattr(socket, "TCP_NOTSENT_LOWAT", None)
_INFO: int | None = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
_ACKED, _INFO_BYTES = 120, 128
"""The offset of the number of acknowledged bytes in Linux's `TCP_INFO`, and the size to ask for."""


def bound_unsent(listener: Any) -> None:
    """Let the system buffer little of what is sent on the connections of a listener; they inherit it."""
    if _LOW_WATER is not None and listener.family in (socket.AF_INET, socket.AF_INET6):
        listener.setsockopt(socket.IPPROTO_TCP, _LOW_WATER, UNSENT_BYTES)


def bytes_taken(transport: asyncio.Transport) -> int:
    """Return a number that changes whenever the client of a connection has read something."""
    line = transport.get_extra_info("socket")
    if _INFO is not None and line is not None and line.family in (socket.AF_INET, socket.AF_INET6):
        try:
            info = line.getsockopt(socket.IPPROTO_TCP, _INFO, _INFO_BYTES)
        except OSError:
            info = b""
        if len(info) == _INFO_BYTES:
            return unpack_from("=Q", info, _ACKED)[0]
    # Elsewhere only what has left this process is known.
    return -transport.get_write_buffer_size()


class UnreadWatch:
    """Closes connections that have something to send and whose clients read nothing of it for too long."""

    def __init__(self, connections: Collection[Any], seconds: float) -> None:
        """Watch the connections of a server, in the set in which uvicorn keeps them."""
        self._connections = connections
        self._seconds = seconds
        self._stuck: dict[Any, tuple[int, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start to check."""
        self._timer = call_later_clean(self._seconds / _LOOKS, self._go_on)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        self.start()
        self.look(asyncio.get_running_loop().time())

    def look(self, now: float) -> None:
        """Close connections that were stuck at every check for so many seconds."""
        stuck: dict[Any, tuple[int, float]] = {}
        for connection in [candidate for candidate in self._connections if _waits(candidate)]:
            taken = bytes_taken(connection.transport)
            before, since = self._stuck.get(connection, (None, now))
            if before != taken:
                stuck[connection] = (taken, now)
            elif now - since < self._seconds:
                stuck[connection] = (taken, since)
            else:
                log.info("a client took nothing for %s s, and its connection is closed", self._seconds)
                connection.transport.abort()
        self._stuck = stuck


def _waits(connection: Any) -> bool:
    transport = connection.transport
    if transport is None or not transport.get_write_buffer_size():
        return False
    # WebSockets have a timeout of their own for sending, but not for what is left when they are closed.
    return getattr(connection, "scheme", "") not in ("ws", "wss") or transport.is_closing()
