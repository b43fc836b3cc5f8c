"""The stores that every scenario is played on: what a caller sees must not depend on where it is kept."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from frontdesk.interfaces.store import HostStateStore
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore

KINDS = ("memory", "sqlite")

_chosen: list[tuple[str, Path]] = []


def choose(kind: str, place: Path) -> None:
    """Which store the scenarios that follow are played on."""
    _chosen[:] = [(kind, place)]


def new_store() -> Any:
    """An empty store of the kind that was chosen."""
    kind, place = _chosen[0] if _chosen else ("memory", Path())
    if kind == "memory":
        return InMemoryStateStore()
    return SqliteStateStore(Path(tempfile.mkdtemp(dir=place)) / "frontdesk.db")


@asynccontextmanager
async def open_store(kind: str, directory: Path, **options: Any) -> AsyncGenerator[HostStateStore]:
    """Open a store of a kind, with these options if it is on disk, and close it at the end."""
    store = InMemoryStateStore() if kind == "memory" else SqliteStateStore(directory / "state.db", **options)
    await store.open()
    yield store
    await store.close()
