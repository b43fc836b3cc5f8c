"""What is to be written, and how many transactions become few statements. Pure.

A transaction is a list of operations. Those that only put whole rows need no answer, so the rows of many transactions
go into one statement a table; everything else runs by itself, in its order.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from frontdesk.data.session import Lease
from frontdesk.stores.sql.tables import Table

Row = Sequence[Any]


class Put(Struct, frozen=True, gc=False):
    """A whole row."""

    table: Table
    row: Row


class Do(Struct, frozen=True, gc=False):
    """A statement of its own; `?` stands for a parameter."""

    sql: str
    values: Row = ()
    refusal: Exception | None = None
    """Fails the transaction if the statement changes nothing."""
    answers: bool = False
    """Whether its rows are wanted."""


class Fence(Struct, frozen=True, gc=False):
    """A session's lease must still be the last one given out; it is given free unless it is kept."""

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
        """The leases on which it depends."""
        return [op for op in self.ops if type(op) is Fence]


class Group(NamedTuple):
    """Transactions whose rows are put together, a statement a table."""

    writes: list[Write]
    rows: list[tuple[Table, list[Row]]]


def grouped(writes: Iterable[Write]) -> Iterator[Group | Write]:
    """The same work in fewer statements, in an order that gives the same result."""
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
    """The rows of plain transactions; of two with the same key the later one counts, or the one with the later time."""
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
    # Two processes that lock the same rows in the same order never wait for each other.
    return [rows[place] for place in sorted(rows)] if table.unique else list(rows.values())
