"""Where the hosts under test keep their state: a new directory or a new database for each server."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bench.machine import Cores, filesystem
from bench.process import ROOT, Usage
from bench.subjects.base import Store

if TYPE_CHECKING:
    from bench.postgres import Postgres

PLACE = ROOT / ".bench"
"""Beside the sources, because a system's temporary directory may be in memory, where a commit costs nothing."""


@dataclass(frozen=True, slots=True)
class State:
    store: Store | None
    address: str = ""
    """As `Setting.state` says."""


class States:
    """Gives out places for state, and leaves nothing of them behind."""

    def __init__(self, cores: Cores) -> None:
        self._cores = cores
        self._root: Path | None = None
        self._postgres: Postgres | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._postgres:
            self._postgres.stop()
        if self._root:
            rmtree(self._root, ignore_errors=True)

    def new(self, store: Store | None) -> State:
        """An empty one, for as long as the bench runs."""
        if store == "postgres":
            return State(store, self.postgres().create())
        return State(store, tempfile.mkdtemp(dir=self.root()) if store == "sqlite" else "")

    @contextmanager
    def fresh(self, store: Store | None) -> Iterator[State]:
        """An empty one, for a while."""
        state = self.new(store)
        try:
            yield state
        finally:
            if store == "postgres":
                self.postgres().drop(state.address)
            elif state.address:
                rmtree(state.address, ignore_errors=True)

    def usage(self, store: Store | None) -> Usage | None:
        """The processor time of a database that is a process of its own."""
        return self.postgres().usage() if store == "postgres" else None

    def facts(self, stores: Collection[Store | None]) -> dict[str, str]:
        """What the figures of these stores depend on."""
        found: dict[str, str] = {}
        if "sqlite" in stores or "postgres" in stores:
            found["state"] = f"below {PLACE.relative_to(ROOT)}, on {filesystem(self.root())}"
        if "postgres" in stores:
            found["postgres"] = f"{self.postgres().version()}, {self._cores.database_text()}"
        return found

    def root(self) -> Path:
        if self._root is None:
            PLACE.mkdir(exist_ok=True)
            self._root = Path(tempfile.mkdtemp(prefix="state-", dir=PLACE))
        return self._root

    def postgres(self) -> Postgres:
        if self._postgres is None:
            # Only a run that measures it needs its packages.
            from bench.postgres import Postgres

            self._postgres = Postgres(self.root() / "postgres", self._cores)
        return self._postgres
