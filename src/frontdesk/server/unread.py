"""Limits the memory and the lifetime of connections whose clients do not read.

A closed transport still sends its buffer, and waits forever for a client that does not read. So all connections are
checked periodically, regardless of their use.
"""

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from struct import unpack_from
from typing import Any

from frontdesk.concurrency.tasks import call_later_clean
from frontdesk.loggers import http as log

if sys.platform == "linux":
    import fcntl
    import termios

    _OUTGOING: int | None = termios.TIOCOUTQ
else:
    _OUTGOING = None

UNSENT_BYTES = 64 * 1024
"""The bytes that the system buffers beyond what is on its way: without a bound it buffers megabytes."""
_CHECKS_PER_TIMEOUT = 4
"""The number of checks within the time for which a client may read nothing."""
_LOW_WATER: int | None = getattr(socket, "TCP_NOTSENT_LOWAT", None)
_INFO: int | None = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
PIECES_PER_BLOCK = 32
"""The number of pieces of a stream after which its client is checked."""
# A client that reads acknowledges small pieces up to 40 ms late. So this is also a rate: 6,400 pieces per second.
_MAX_UNREAD_BLOCKS = 8
MAX_UNREAD_PIECES = _MAX_UNREAD_BLOCKS * PIECES_PER_BLOCK
"""The number of pieces that a stream may be ahead of what the system of its client has acknowledged."""
_INITIAL_DELAY_SECONDS = 0.001
_MAX_DELAY_SECONDS = 0.5
_ACKED, _INFO_BYTES = 120, 128
"""The offset of the number of acknowledged bytes in Linux's `TCP_INFO`, and the size to ask for."""


def limit_unsent(listener: Any) -> None:
    """Limit the system's send buffer for the connections of a listener, which inherit the setting."""
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


def count_unacknowledged_bytes(transport: asyncio.Transport) -> int:
    """Return the number of written bytes that the client's system has not acknowledged, as far as is known."""
    waiting, line = transport.get_write_buffer_size(), transport.get_extra_info("socket")
    if _OUTGOING is not None and line is not None and line.family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            waiting += unpack_from("=i", fcntl.ioctl(line.fileno(), _OUTGOING, b"\0" * 4))[0]
    return waiting


class UnreadPieces:
    """Limits how many pieces of a stream are unread by its client.

    A limit on bytes alone lets an agent be thousands of small updates ahead of its reader. Each update is an object of
    some kilobytes for the duration of its run.
    """

    __slots__ = ("_marks", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._marks: deque[int] = deque()
        """The numbers of bytes that were written at the end of each block which the client has not taken."""

    async def wait(self, written: int) -> None:
        """Wait for free space at the end of a block of `PIECES_PER_BLOCK`, with `written` total bytes."""
        self._marks.append(written)
        pause = _INITIAL_DELAY_SECONDS
        while len(self._marks) >= _MAX_UNREAD_BLOCKS and not self._transport.is_closing():
            taken = written - count_unacknowledged_bytes(self._transport)
            while self._marks and self._marks[0] <= taken:
                self._marks.popleft()
            if len(self._marks) < _MAX_UNREAD_BLOCKS:
                return
            # No event tells that a client has taken something.
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_DELAY_SECONDS)


class UnreadWatch:
    """Closes connections with pending output whose clients read nothing for too long."""

    def __init__(self, connections: Collection[Any], seconds: float) -> None:
        """Watch uvicorn's own set of a server's connections."""
        self._connections = connections
        self._seconds = seconds
        self._stuck: dict[Any, tuple[int, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._timer = call_later_clean(self._seconds / _CHECKS_PER_TIMEOUT, self._go_on)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        self.start()
        self.look(asyncio.get_running_loop().time())

    def look(self, now: float) -> None:
        """Close connections that were stuck at every check for the configured number of seconds."""
        stuck: dict[Any, tuple[int, float]] = {}
        for connection in [candidate for candidate in self._connections if _waits(candidate)]:
            taken = bytes_taken(connection.transport)
            before, since = self._stuck.get(connection, (None, now))
            if before != taken:
                stuck[connection] = (taken, now)
            elif now - since < self._seconds:
                stuck[connection] = (taken, since)
            else:
                log.info("client read nothing, closing its connection: seconds=%s", self._seconds)
                connection.transport.abort()
        self._stuck = stuck


def _waits(connection: Any) -> bool:
    transport = connection.transport
    if transport is None or not transport.get_write_buffer_size():
        return False
    # WebSockets have a timeout of their own for sending, but not for what is left when they are closed.
    return getattr(connection, "scheme", "") not in ("ws", "wss") or transport.is_closing()
