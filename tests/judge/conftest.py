"""What the judge's tests share."""

import os
from pathlib import Path

import pytest

OPEN = (
    "cases/test_03_approvals.py",
    "cases/test_08_clocks.py",
    "cases/test_09_readers_that_never_read.py",
    "cases/test_10_what_stood_still.py",
    "test_short_campaigns.py",
)
"""Faults that the judge reproduces and that are not mended yet, and the campaigns that find them.

`make judge` asks for them, and fails by them; a case that passes is taken out of this list.
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
