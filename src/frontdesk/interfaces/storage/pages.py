"""The size limit of a page of records."""

from collections.abc import Sequence

MAX_PAGE_BYTES = 1024 * 1024
"""The bytes of a page that callers list. A page with one item may have more."""


def count_fitting(sizes: Sequence[int], max_bytes: int) -> int:
    """Return how many leading sizes fit into `max_bytes` in total: at least one, if there is one."""
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if count and total > max_bytes:
            return count
    return len(sizes)
