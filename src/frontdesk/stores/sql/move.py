"""Moves all state from one database into another: SQLite to Postgres, back, or to a new place.

The target is written in one transaction: after an error, a kill or a power cut it is as empty as before, and never half
a store that a host could open. The source is only read, and locked against writes meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator

from frontdesk.stores.sql.migrations import VERSION
from frontdesk.stores.sql.move_endpoints import LEASES, End, MoveError, Shape, need_known, shapes_of
from frontdesk.stores.sql.writes import Row

_EVERY = 10_000
"""The number of rows of a table that are moved between two reports."""

OnProgress = Callable[[str, int, int], None]
"""A function of the name of a table, how many of its rows are moved, and how many it has."""


def move(source: End, target: End, on_progress: OnProgress) -> int:
    """Copy all tables; return how many rows."""
    with source, target:
        source.hold()
        version = source.version()
        if version is None:
            raise MoveError(f"{source.name} holds no state of Frontdesk's")
        need_known(version)
        target.take()
        target.clear(shapes_of(VERSION))
        # An older store is copied as it is, and migrated on the target.
        target.build(0, version)
        moved = sum(_copy(source, target, shape, on_progress) for shape in shapes_of(version) if shape.name != LEASES)
        target.build(version, VERSION)
        target.commit()
        return moved


def _copy(source: End, target: End, shape: Shape, on_progress: OnProgress) -> int:
    total = source.count(shape.name)
    target.put(shape, _counted(source.read(shape), lambda moved: on_progress(shape.name, moved, total)))
    arrived = target.count(shape.name)
    if arrived != total:
        raise MoveError(f"{shape.name} has {total} rows, and {arrived} of them arrived; nothing was kept")
    on_progress(shape.name, total, total)
    return total


def _counted(rows: Iterable[Row], on_progress: Callable[[int], None]) -> Iterator[Row]:
    for number, row in enumerate(rows):
        if number and number % _EVERY == 0:
            on_progress(number)
        yield row
