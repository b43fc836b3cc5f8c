"""Predictable ids."""

from collections import Counter


class FakeIds:
    """`run_1`, `run_2`, `ses_1`: counted for each prefix. While `made` is empty, nothing new can have been stored."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()

    def new(self, prefix: str) -> str:
        self.made[prefix] += 1
        return f"{prefix}_{self.made[prefix]}"
