"""Limits the size of a page of records."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from frontdesk.concurrency.offload import compute_weight
from frontdesk.interfaces.storage.pages import count_fitting

R = TypeVar("R")


def limit_page(records: Sequence[R], max_bytes: int | None, content: Callable[[R], Any]) -> Sequence[R]:
    """Return the first records whose content fits into `max_bytes`: at least one, if there is one."""
    if max_bytes is None:
        return records
    sizes = [compute_weight(content(record), max_bytes, inside=True) for record in records]
    return records[: count_fitting(sizes, max_bytes)]
