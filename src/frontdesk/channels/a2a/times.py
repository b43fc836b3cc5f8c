"""Times in the format of the protocol. Pure."""

from datetime import UTC, datetime


def format_time(at: float) -> str:
    """Return a time as RFC 3339 with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
