"""Ids that a test can know beforehand."""

from collections import Counter


class FakeIds:
    """`run_1`, `run_2`, `ses_1`: counted for each prefix."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()

    def new(self, prefix: str) -> str:
        self._made[prefix] += 1
        return f"{prefix}_{self._made[prefix]}"
