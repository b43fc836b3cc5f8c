"""What the judge's tests share."""

import os
from pathlib import Path

import pytest

OPEN = ("cases", "test_short_campaigns.py")
"""The cases and campaigns: `make judge` asks for them, and fails by those of faults that are not mended yet.

Mended are 1, 2, 4, 5, 6 and 7, each with a test of its own in `tests/faults` or `tests/stores/sql`.
"""
collect_ignore = [] if "JUDGE_OPEN" in os.environ else list(OPEN)
SECONDS = 150
"""Each starts several processes and waits for leases to end, on a machine that may do other things too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder more time, unless they say how much they take."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))
