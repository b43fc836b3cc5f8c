"""Finds the state store named on the command line."""

import re
import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from frontdesk.cli.terminal import CommandError
from frontdesk.clock import SystemClock
from frontdesk.errors import StateDirectoryError, StateDirectoryInUseError, StoreError, StoreUnavailableError
from frontdesk.errors.base import install_hint
from frontdesk.host.config import variable
from frontdesk.models.operations import Expiry
from frontdesk.state_dir.lock import lock_directory
from frontdesk.state_dir.paths import DATABASE
from frontdesk.stores.sql.migrations.schema import FOUND, VERSION
from frontdesk.stores.sql.store import SqlStateStore

_ADDRESS = re.compile(r"postgres(ql)?://|\s*\w+\s*=")
_NEEDS_PSYCOPG = f"Postgres needs psycopg: {install_hint('postgres')}"
# Only the host knows how long records are kept; a command drops nothing.
_FOR_GOOD = Expiry(**dict.fromkeys(Expiry.__struct_fields__))


def locate(option: str, given: str | None, name: str | None) -> Path | str:
    """Return the file of a SQLite database, or the URL of a Postgres one."""
    text = variable(name) if name else given
    if not text:
        raise CommandError(f"{option}-env: {name} is not set" if name else f"{option}: a place is needed")
    if _ADDRESS.match(text):
        return text
    if "://" in text:
        # It is not shown, because it may contain a password.
        raise CommandError(f"{option}: an address of a Postgres database begins with postgresql://")
    path = Path(text)
    return path if path.is_file() or path.suffix == ".db" else path / DATABASE


@contextmanager
def store_at(place: Path | str) -> Generator[SqlStateStore]:
    """Yield the store at a location, not yet open. Reject one whose schema a host has to migrate first."""
    try:
        with ExitStack() as held:
            if isinstance(place, str):
                yield _postgres(place)
            else:
                if not place.is_file():
                    raise CommandError(f"--state: file {place} not found")
                held.enter_context(lock_directory(place.resolve().parent, SystemClock()))
                yield _sqlite(place)
    except StateDirectoryInUseError as error:
        raise CommandError(
            f"{error} A running host locks its SQLite state. Use the admin socket,  "
            "unless it has admin_socket=False; on Postgres this works at any time."
        ) from None
    except (StateDirectoryError, StoreError, StoreUnavailableError) as error:
        raise CommandError(str(error)) from None


def _sqlite(path: Path) -> SqlStateStore:
    from frontdesk.stores.sql.sqlite.engine import SqliteStateStore

    _require_version(_sqlite_version(path))
    return SqliteStateStore(path, expiry=_FOR_GOOD)


def _sqlite_version(path: Path) -> int | None:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(FOUND).fetchone()[0]
    except sqlite3.OperationalError:
        return None
    except sqlite3.Error as error:
        raise StoreError(f"the database {path} can't be opened: {error}") from error


def _postgres(address: str) -> SqlStateStore:
    try:
        import psycopg

        from frontdesk.stores.sql.postgres.connections import error_line
        from frontdesk.stores.sql.postgres.engine import PostgresStateStore
    except ImportError:
        raise CommandError(_NEEDS_PSYCOPG) from None
    try:
        with psycopg.connect(address, connect_timeout=10, autocommit=True) as connection:
            row = connection.execute(FOUND).fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    except psycopg.ProgrammingError:
        # The error may quote a part of the password.
        raise StoreError("the database address is not a valid libpq connection string") from None
    except psycopg.Error as error:
        raise StoreError(f"the database can't be reached: {error_line(error)}") from None
    _require_version(None if row is None else row[0])
    return PostgresStateStore(address, expiry=_FOR_GOOD, pool_size=2)


def _require_version(version: int | None) -> None:
    if version is None:
        raise StoreError("the database contains no Frontdesk state")
    # The store itself refuses a schema that is too new when it is opened.
    if version < VERSION:
        raise StoreError(
            f"the state has schema version {version}, and this version of Frontdesk requires {VERSION}. "
            "Start a host of this version on it once"
        )
