"""Limits of the server on what anybody can send before they are known, and on whoever does not read."""

from dataclasses import dataclass, fields

SEND_SECONDS = 60.0
"""How long a client may take nothing of what is sent to it, if the operator says nothing else."""
SPARE_FILES = 64
"""How many files a process needs at least besides its connections: databases, calls to models, logs."""


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """What a connection may take, whoever its caller is; it holds for WebSocket handshakes too."""

    max_url_bytes: int = 8 * 1024
    """How long the path and query of a request may be; more is a `414`."""
    max_header_bytes: int = 16 * 1024
    """How long one header may be, name and value together; more is a `431`."""
    max_head_bytes: int = 32 * 1024
    """How long the whole head of a request may be; more is a `431`."""
    max_headers: int = 100
    """How many headers a request may have; more is a `431`."""
    max_pipelined: int = 16
    """How many requests may wait on a connection for the answer to an earlier one; more close it."""
    head_seconds: float = 10.0
    """How long a head may take, from the connection or its first byte on; more is a `408`."""
    max_connections: int = 4_096
    """How many connections may be open at once; more are a `503`."""
    send_seconds: float = SEND_SECONDS
    """How long a client may take nothing of what is sent to it, before its connection is closed."""

    def findings(self) -> list[str]:
        """Return a line for each setting that is wrong."""
        wrong = [
            f"server limits: {field.name} must be positive" for field in fields(self) if getattr(self, field.name) <= 0
        ]
        for name in ("max_url_bytes", "max_header_bytes"):
            if getattr(self, name) > self.max_head_bytes:
                wrong.append(f"server limits: {name} is larger than max_head_bytes, and could never be reached")
        return wrong


def allowed_connections(wanted: int, max_open_files: int | None) -> int:
    """Return how many connections a process can hold and still open files of its own."""
    if max_open_files is None:
        return wanted
    return max(1, min(wanted, max_open_files - max(SPARE_FILES, max_open_files // 8)))
