"""`PostgresEnd`: a Postgres database as the source or target of a move."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from frontdesk.stores.sql.migrations.schema import POSTGRES
from frontdesk.stores.sql.move.endpoints import MoveEndpoint, MoveError, Shape, read_shapes
from frontdesk.stores.sql.postgres.connections import APPLICATION, HOSTS, MIGRATIONS, statement
from frontdesk.stores.sql.writes import Row

_BATCH_ROWS = 20
"""The number of rows that are read at a time; each may have some megabytes."""
_LOOKS = 10
_POLL_INTERVAL_SECONDS = 0.1
"""The seconds between two looks for hosts that are connected."""


class PostgresEnd(MoveEndpoint):
    """A database without connected hosts."""

    words = POSTGRES

    def __init__(self, conninfo: str) -> None:
        try:
            parts = conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError:
            # The error may quote a part of the password.
            raise MoveError("the database address is not a valid libpq connection string") from None
        self.name = f"the database {parts.get('dbname') or parts.get('user') or ''}".rstrip()
        self._conninfo = conninfo
        self._options = f"{parts.get('options') or ''} -c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
        self._stack = ExitStack()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def hold(self) -> None:
        self._open()
        tables = [shape.name for shape in read_shapes(self.version() or 0)]
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        if tables:
            # From here on there are no writes, and all reads see the same snapshot.
            self.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE MODE NOWAIT")

    def take(self) -> None:
        self._open()
        self.execute("BEGIN")
        # A host that starts takes this lock to look at the schema, so it waits until the move has ended.
        if not self.execute("SELECT pg_try_advisory_xact_lock(?)", (MIGRATIONS,))[0][0]:
            raise MoveError(self._in_use)

    def _open(self) -> None:
        with self._translate_errors():
            self._connection = psycopg.connect(
                self._conninfo,
                autocommit=True,
                connect_timeout=10,
                application_name=f"{APPLICATION}-move",
                options=self._options,
            )
        self._stack.callback(self._connection.close)
        if self._has_hosts():
            raise MoveError(self._in_use)

    def _has_hosts(self) -> bool:
        """Return True if hosts are connected. The server lists a stopped one for a moment longer."""
        for _ in range(_LOOKS):
            if not self.execute(HOSTS):
                return False
            self.execute(f"SELECT pg_sleep({_POLL_INTERVAL_SECONDS})")
        return True

    @property
    def _in_use(self) -> str:
        return f"{self.name} is in use; stop the hosts that use it"

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        try:
            yield
        except psycopg.errors.LockNotAvailable as error:
            raise MoveError(self._in_use) from error
        except psycopg.Error as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise MoveError(f"{self.name}: {reason}") from error

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        with self._translate_errors():
            cursor = self._connection.execute(statement(sql), values)
            return cursor.fetchall() if cursor.description else ()

    def has(self, table: str) -> bool:
        return bool(self.execute("SELECT 1 WHERE to_regclass(?) IS NOT NULL", (table,)))

    def read(self, shape: Shape) -> Iterator[Row]:
        with self._translate_errors(), self._connection.cursor(name="moved", binary=True) as cursor:
            cursor.itersize = _BATCH_ROWS
            cursor.execute(statement(f"SELECT {', '.join(shape.columns)} FROM {shape.name}"))
            yield from cursor

    def put(self, shape: Shape, rows: Iterable[Row]) -> None:
        sql = f"COPY {shape.name} ({', '.join(shape.columns)}) FROM STDIN (FORMAT BINARY)"
        with self._translate_errors(), self._connection.cursor() as cursor, cursor.copy(statement(sql)) as copy:
            copy.set_types(["bigint" if kind == "serial" else kind for kind in shape.kinds])
            for row in rows:
                copy.write_row(row)
        if shape.serial is not None:
            # The next number comes after the highest one that was moved.
            place = f"pg_get_serial_sequence('{shape.name}', '{shape.serial}')"
            self.execute(f"SELECT setval({place}, MAX({shape.serial})) FROM {shape.name}")

    def commit(self) -> None:
        self.execute("COMMIT")
