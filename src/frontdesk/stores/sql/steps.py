"""What a step of the schema can be besides a list of statements."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

BATCH = 200
"""How many rows of a backfill are changed in one transaction."""
Statement = tuple[str, Sequence[Any]]
_EXPANDS = re.compile(
    r"CREATE TABLE |CREATE INDEX |ALTER TABLE \w+ ADD COLUMN (?!.*NOT NULL)|ALTER TABLE \w+ ADD COLUMN .*DEFAULT ", re.S
)


class Backfill(NamedTuple):
    """Changes rows that are there already, in Python: a batch at a time, in any process, resumed after a crash."""

    name: str
    select: str
    """Up to so many rows (the second parameter) that still need it and come after a position (the first), in order.

    The first column is the position, as a text or a number that the database compares with one.
    """
    change: Callable[[Sequence[Any]], Iterable[Statement]]
    """What to write for a row; only if the row is still as it was read, because it may have changed since."""
    start: str = "0"
    """The position before all rows."""

    def changes(self, rows: Iterable[Sequence[Any]]) -> Iterator[Statement]:
        """Return what to write for some rows."""
        for row in rows:
            yield from self.change(row)


class Step(tuple[str, ...]):
    """The statements of a step with which hosts of an earlier schema can go on, or which belongs to a backfill."""

    min_reader: int | None
    backfill: Backfill | None
    needs: tuple[str, ...]

    def __new__(
        cls,
        statements: Iterable[str],
        *,
        min_reader: int | None = None,
        contracts: bool = False,
        backfill: Backfill | None = None,
        needs: tuple[str, ...] = (),
    ) -> Self:
        """`min_reader` is the lowest schema that a host has to know to work with the store after this step.

        `contracts` says that it takes something away which those hosts do not use; `needs` names the backfills that
        are completed before.
        """
        step = super().__new__(cls, statements)
        step.min_reader, step.backfill, step.needs = min_reader, backfill, needs
        wrong = [one for one in step if min_reader is not None and not contracts and not _EXPANDS.match(one)]
        if wrong:
            raise ValueError(f"an older host may not be able to go on after {wrong[0]!r}; is it contracts=True?")
        return step
