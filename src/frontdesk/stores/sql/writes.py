"""Operations of transactions, and how many transactions become few statements. Pure.

A transaction is a list of operations. Those that only put whole rows need no answer, so the rows of many transactions
go into one statement per table; everything else runs by itself, in its order.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from frontdesk.data.session import Lease
from frontdesk.stores.sql.tables import Table

Row = Sequence[Any]


class Put(Struct, frozen=True, gc=False):
    """The upsert of a whole row."""

    table: Table
    row: Row


class Do(Struct, frozen=True, gc=False):
    """A statement of its own; `?` stands for a parameter."""

    sql: str
    values: Row = ()
    refusal: Exception | None = None
    """The error that fails the transaction if the statement changes nothing."""
    answers: bool = False
    """Whether its rows are wanted."""


class Fence(Struct, frozen=True, gc=False):
    """A check that a lease is still the last one of its session; it is released unless it is kept."""

    lease: Lease
    keep: bool


Op = Put | Do | Fence


class Write:
    """One transaction on its way to the database."""

    __slots__ = ("answers", "ops", "plain")

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops
        self.plain = Do not in [type(op) for op in ops]
        self.answers: list[Sequence[Row]] = []

    @property
    def fences(self) -> list[Fence]:
        """Return the checks of the leases on which it depends."""
        return [op for op in self.ops if type(op) is Fence]


class Group(NamedTuple):
    """Transactions whose rows are put together, one statement per table."""

    writes: list[Write]
    rows: list[tuple[Table, list[Row]]]


def grouped(writes: Iterable[Write]) -> Iterator[Group | Write]:
    """Yield the same work in fewer statements, in an order that gives the same result."""
    together: list[Write] = []
    for write in writes:
        if write.plain:
            together.append(write)
            continue
        if together:
            yield group(together)
            together = []
        yield write
    if together:
        yield group(together)


def group(writes: list[Write]) -> Group:
    """Merge the rows of plain transactions; of two with the same key the later one wins, or the newer by its time."""
    tables: dict[Table, dict[Any, Row]] = {}
    for write in writes:
        for op in write.ops:
            if type(op) is Put:
                table, row = op.table, op.row
                rows = tables.get(table)
                if rows is None:
                    rows = tables[table] = {}
                place = table.key_of(row) if table.unique else len(rows)
                if not table.newest or place not in rows or table.time_of(rows[place]) <= table.time_of(row):
                    rows[place] = row
    return Group(writes, [(table, _in_order(table, rows)) for table, rows in sorted(tables.items())])


def _in_order(table: Table, rows: dict[Any, Row]) -> list[Row]:
    # Processes that lock rows in the same order never deadlock.
    return [rows[place] for place in sorted(rows)] if table.unique else list(rows.values())
