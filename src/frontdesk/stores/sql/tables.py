"""The tables, and the conversion of records into rows. Pure.

`data` contains the record as written by the codec. The other columns are for lookups. External texts pass through `key`
first, so that every text can be a key: long ones, empty ones, and those with a NUL character, which Postgres cannot
store.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import json

from frontdesk.identifiers import digest
from frontdesk.models.run import RunRecord
from frontdesk.models.session import SessionName

_MAX_KEY_LENGTH = 200
DIGEST = "\x01"
"""The prefix of a key that is a digest; no printable text begins with it."""


def key(text: str) -> str:
    """Return a string as a key: unchanged if it is short and printable, otherwise a digest with a prefix."""
    if len(text) <= _MAX_KEY_LENGTH and text.isprintable():
        return text
    return DIGEST + digest(text)


def name_key(name: SessionName) -> str:
    parts = (name.owner, name.kind, name.value, name.channel, name.conversation_id)
    return hashlib.sha256(json.encode(parts)).hexdigest()


class Table(NamedTuple):
    """A table with upserts by key."""

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

    def get_key(self, row: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(row[: len(self.unique)])

    def extract_time(self, row: Sequence[Any]) -> float:
        """Return the time that decides which of two rows is newer."""
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
    ("run_id", "owner", "kind", "ended_at", "outcome", "channel", "session_key", "root_run_id", "data"),
    ("text", "text", "text", "double precision", "text", "text", "text", "text", "bytea"),
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
    row = f"({', '.join('?' for _ in table.columns)})"
    return f"{_insert(table)} VALUES {', '.join([row] * rows)}{_replace(table)}"


@lru_cache(maxsize=64)
def arrays_sql(table: Table) -> str:
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


def build_list_columns(run: RunRecord) -> tuple[str, str | None, str | None]:
    """Return the columns by which an owner's runs are listed: channel, session key and chain."""
    session, root = run.session_key, run.root_run_id
    return key(run.channel), None if session is None else key(session), None if root is None else key(root)


def text(value: Any) -> str | None:
    return None if value is None else bytes(value).decode("utf-8", "surrogatepass")


def as_bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode("utf-8", "surrogatepass")
