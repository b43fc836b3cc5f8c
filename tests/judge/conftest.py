"""What the judge's tests share."""

import os
from pathlib import Path

import pytest

LONG = ("cases",)
"""What only `make judge` runs: the faults that the judge has found, by the wire alone.

Each has a test of its own in `tests/faults`, `tests/delivery` or `tests/stores/sql`, which takes less time.
"""
collect_ignore = [] if "JUDGE_CASES" in os.environ else list(LONG)
SECONDS = 150
"""Each starts several processes and waits for leases to end, on a machine that may do other things too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder more time, unless they say how much they take."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))
