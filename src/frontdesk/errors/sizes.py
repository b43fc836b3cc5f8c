"""Sizes, as they are shown to people."""

_KB = 1024
_MB = 1024 * 1024


def format_size(size: int) -> str:
    """Return a number of bytes in B, KB or MB, rounded down to one decimal."""
    for unit, name in ((_MB, "MB"), (_KB, "KB")):
        if size >= unit:
            return f"{size * 10 // unit / 10:g} {name}"
    return f"{size} B"
