"""Migration steps with more than a list of statements."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

BATCH_ROWS = 200
"""The number of rows of a backfill that are changed in one transaction."""
Statement = tuple[str, Sequence[Any]]
_EXPANDS = re.compile(
    r"CREATE TABLE |CREATE INDEX |ALTER TABLE \w+ ADD COLUMN (?!.*NOT NULL)|ALTER TABLE \w+ ADD COLUMN .*DEFAULT ", re.S
)


class Backfill(NamedTuple):
    """Changes existing rows in Python: in batches, in any process, resumable after a crash."""

    name: str
    select: str
    """A query of the rows that still need it, in order; its parameters are a position to start after, and a limit.

    The first column is the position, as a text or a number that the database compares with one.
    """
    change: Callable[[Sequence[Any]], Iterable[Statement]]
    """Returns the statements for a row; they must check that the row is still as it was read."""
    start: str = "0"
    """The position before all rows."""

    def changes(self, rows: Iterable[Sequence[Any]]) -> Iterator[Statement]:
        for row in rows:
            yield from self.change(row)


class Step(tuple[str, ...]):
    """The statements of a migration step. Hosts of an earlier schema can continue, or it has a backfill."""

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
        """Create a step after which a host must know at least the schema `min_reader`.

        `contracts` means that it removes something that those hosts do not use. `needs` names the backfills that must
        be complete before it.
        """
        step = super().__new__(cls, statements)
        step.min_reader, step.backfill, step.needs = min_reader, backfill, needs
        refused = [statement for statement in step if not _EXPANDS.match(statement)]
        if refused and min_reader is not None and not contracts:
            raise ValueError(f"older hosts may fail after {refused[0]!r}. If so, set contracts=True")
        return step
