"""Connection limits of the server, for unidentified callers and for clients that do not read."""

from dataclasses import dataclass, fields

from frontdesk.models.settings import seconds_finding

SEND_SECONDS = 60.0
"""The seconds for which a client may read nothing of what is sent to it, if the operator sets no others."""
MIN_SPARE_FILES = 64
"""The number of files that a process needs besides its connections: databases, calls to models, logs."""


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits for every connection of every caller. They hold for WebSocket handshakes too."""

    max_url_bytes: int = 8 * 1024
    """The largest size of the path and query of a request; more is a `414`."""
    max_header_bytes: int = 16 * 1024
    """The largest size of one header, name and value together; more is a `431`."""
    max_head_bytes: int = 32 * 1024
    """The largest size of the whole head of a request; more is a `431`."""
    max_headers: int = 100
    """The largest number of headers of a request; more is a `431`."""
    max_pipelined: int = 16
    """The number of requests that may wait on a connection for the answer to an earlier one; more close it."""
    head_seconds: float = 10.0
    """The time for a head, from the connection or its first byte on; more is a `408`."""
    max_connections: int = 4_096
    """The number of connections that may be open at once; more are a `503`."""
    send_seconds: float = SEND_SECONDS
    """The time for which a client may read nothing of what is sent to it, before its connection is closed."""

    def findings(self) -> list[str]:
        """Return a line for each setting that is wrong."""
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        wrong = [f"server limits: {finding}" for name, value in given if (finding := seconds_finding(name, value))]
        if wrong:
            return wrong
        for name in ("max_url_bytes", "max_header_bytes"):
            if getattr(self, name) > self.max_head_bytes:
                wrong.append(f"server limits: {name} is larger than max_head_bytes, and could never be reached")
        return wrong


def count_allowed_connections(wanted: int, max_open_files: int | None) -> int:
    """Return how many connections a process can hold and still open files of its own."""
    if max_open_files is None:
        return wanted
    return max(1, min(wanted, max_open_files - max(MIN_SPARE_FILES, max_open_files // 8)))
