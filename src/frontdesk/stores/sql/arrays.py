"""Columns of values as Postgres' arrays, in its binary form.

Psycopg can do that too, for lists of anything in lists of anything, and looks at each value three times to find out
what it is. Here the types are known.
"""

from collections.abc import Callable, Iterable, Sequence
from struct import Struct, error
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD = Struct("!iiIii")
_LENGTH = Struct("!i").pack
_NULL = _LENGTH(-1)
_BIGINT = Struct("!iq").pack
_SMALLINT = Struct("!ih").pack
_DOUBLE = Struct("!id").pack
_BOOLEAN = Struct("!i?").pack


class _Array:
    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


Writer = Callable[[Any], bytes]


def _bytes(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value


def _text(value: str) -> bytes:
    return _bytes(value.encode())


class _Kind:
    """Arrays of one type."""

    def __init__(self, oid: int, array_oid: int, write: Writer) -> None:
        class Array(_Array):
            """An array of this type; psycopg chooses the dumper by the class."""

            __slots__ = ()

        class ArrayDumper(Dumper):
            """Passes on bytes that are encoded already."""

            format = Format.BINARY

            def dump(self, obj: _Array) -> bytes:
                return obj.data

        ArrayDumper.oid = array_oid
        psycopg.adapters.register_dumper(Array, ArrayDumper)
        self._oid = oid
        self._array = Array
        self._write = write

    def array(self, values: Sequence[Any]) -> _Array:
        """Return the values, of which there is at least one, as an array of one dimension."""
        write = self._write
        try:
            written = [_NULL if value is None else write(value) for value in values]
        except error as wrong:
            raise psycopg.DataError(f"a value is not what its column takes: {wrong}") from wrong
        return self._array(_HEAD.pack(1, 1, self._oid, len(values), 1) + b"".join(written))


_KINDS = {
    "text": _Kind(25, 1009, _text),
    "bytea": _Kind(17, 1001, _bytes),
    "double precision": _Kind(701, 1022, lambda value: _DOUBLE(8, value)),
    "bigint": _Kind(20, 1016, lambda value: _BIGINT(8, value)),
    "smallint": _Kind(21, 1005, lambda value: _SMALLINT(2, value)),
    "boolean": _Kind(16, 1000, lambda value: _BOOLEAN(1, value)),
}


def columns(kinds: Iterable[str], rows: Sequence[Sequence[Any]]) -> list[_Array]:
    """Return rows of one shape as one array per column; `kinds` are the types of the columns."""
    return [_KINDS[kind].array(column) for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)]
