"""The tables, and how a row is put into one. Pure.

Records are stored as the codec writes them, in `data`; the other columns are for look-ups. Texts that come from outside
go through `key` first, so that every text can be a key: long ones, empty ones, and those with a NUL, which Postgres
can't store.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import json

from frontdesk.data.session import SessionName
from frontdesk.kit.names import digest

_LONGEST = 200
DIGEST = "\x01"
"""The prefix of a key that is a digest; no printable text begins with it."""


def key(text: str) -> str:
    """Return a text as a key: the text if it is short and printable, else its digest with a prefix."""
    if len(text) <= _LONGEST and text.isprintable():
        return text
    return DIGEST + digest(text)


def name_key(name: SessionName) -> str:
    """Return the name of a session as one key."""
    parts = (name.owner, name.kind, name.value, name.channel, name.conversation_id)
    return hashlib.sha256(json.encode(parts)).hexdigest()


class Table(NamedTuple):
    """A table into which rows are put, replacing a row with the same key."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    unique: tuple[str, ...]
    """The columns that make two rows the same; none, if every row is a new one."""
    decides: str = ""
    """A column; an existing row with the same value in it is left as it is."""
    newest: str = ""
    """A column with a time; an existing row that is newer is left as it is."""
    # Tables are singletons, and hashing all names for every row costs more than the row.
    __hash__ = object.__hash__

    def key_of(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Return the key of a row."""
        return tuple(row[: len(self.unique)])

    def time_of(self, row: Sequence[Any]) -> float:
        """Return the time by which the newest of two rows counts."""
        return row[self.columns.index(self.newest)]


SESSIONS = Table(
    "sessions",
    ("session_id", "owner", "self_named", "parent_id", "parent_messages", "updated_at", "data"),
    ("text", "text", "smallint", "text", "bigint", "double precision", "bytea"),
    ("session_id",),
)
HISTORY = Table("history", ("session_id", "data"), ("text", "bytea"), ())
RUNS = Table(
    "runs",
    ("run_id", "owner", "kind", "ended_at", "outcome", "data"),
    ("text", "text", "text", "double precision", "text", "bytea"),
    ("run_id", "owner"),
)
NAMES = Table("names", ("name", "session_id"), ("text", "text"), ("name",))
IDENTITIES = Table(
    "identities",
    ("channel", "native_id", "isolation_key", "version", "data", "seen_at"),
    ("text", "text", "text", "bigint", "bytea", "double precision"),
    ("channel", "native_id"),
    decides="isolation_key",
)
LAST_SEEN = Table(
    "last_seen",
    ("isolation_key", "at", "data"),
    ("text", "double precision", "bytea"),
    ("isolation_key",),
    newest="at",
)
LINKS = Table(
    "links",
    ("channel", "native_id", "isolation_key", "subject", "linked_at", "data"),
    ("text", "text", "text", "text", "double precision", "bytea"),
    ("channel", "native_id"),
)
GRANTS = Table("grants", ("grant_id", "expires_at", "data"), ("text", "double precision", "bytea"), ("grant_id",))
CONVERSATIONS = Table(
    "conversations",
    ("conversation_id", "owner", "updated_at", "data"),
    ("text", "text", "double precision", "bytea"),
    ("conversation_id",),
)

CHECKPOINTS = Table(
    "checkpoints",
    ("session_id", "checkpoint_id", "data"),
    ("text", "text", "bytea"),
    ("session_id", "checkpoint_id"),
)

FILE_CHUNKS = Table("file_chunks", ("file_id", "number", "data"), ("text", "bigint", "bytea"), ("file_id", "number"))
FILE_USES = Table(
    "file_uses",
    ("file_id", "kind", "place", "owner", "used_at"),
    ("text", "text", "text", "text", "double precision"),
    ("file_id", "kind", "place", "owner"),
)


@lru_cache(maxsize=1024)
def values_sql(table: Table, rows: int) -> str:
    """Return the upsert of some rows, each value a parameter of its own."""
    row = f"({', '.join('?' for _ in table.columns)})"
    return f"{_insert(table)} VALUES {', '.join([row] * rows)}{_replace(table)}"


@lru_cache(maxsize=64)
def arrays_sql(table: Table) -> str:
    """Return the upsert of any number of rows, each column an array."""
    arrays = ", ".join(f"%b::{kind}[]" for kind in table.types)
    return f"{_insert(table)} SELECT * FROM unnest({arrays}){_replace(table)}"


def _insert(table: Table) -> str:
    return f"INSERT INTO {table.name} ({', '.join(table.columns)})"


def _replace(table: Table) -> str:
    if not table.unique:
        return ""
    changed = ", ".join(f"{column} = excluded.{column}" for column in table.columns if column not in table.unique)
    unless = f" WHERE {table.name}.{table.decides} <> excluded.{table.decides}" if table.decides else ""
    if table.newest:
        unless = f" WHERE {table.name}.{table.newest} <= excluded.{table.newest}"
    return f" ON CONFLICT ({', '.join(table.unique)}) DO UPDATE SET {changed}{unless}"


def text(value: Any) -> str | None:
    """Return a text that was stored as bytes."""
    return None if value is None else bytes(value).decode("utf-8", "surrogatepass")


def as_bytes(value: str | None) -> bytes | None:
    """Return a text in the form in which it is stored as bytes."""
    return None if value is None else value.encode("utf-8", "surrogatepass")
