"""The interface between the drawers and a database."""

from collections.abc import Sequence
from typing import Any, Protocol

from frontdesk.stores.sql.writes import Op

Rows = Sequence[Sequence[Any]]


class Engine(Protocol):
    """A database that runs queries and transactions; either can fail with `StoreUnavailableError`."""

    async def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Return the rows of a query; `?` stands for a parameter."""
        ...

    async def write(self, ops: Sequence[Op]) -> list[Rows]:
        """Commit all operations or none; return the rows of the statements whose answers are wanted."""
        ...

    async def open(self) -> None:
        """Connect, and migrate the schema."""
        ...

    async def close(self) -> None:
        """Finish the writes that are queued, and disconnect."""
        ...
