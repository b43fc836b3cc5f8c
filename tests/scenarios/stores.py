"""The stores that every scenario is played on: what a caller sees must not depend on where it is kept."""

import tempfile
from pathlib import Path
from typing import Any

from frontdesk.stores.memory import InMemoryStateStore
from frontdesk.stores.sql.sqlite import SqliteStateStore

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
