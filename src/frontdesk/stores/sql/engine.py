"""What the drawers and the transaction need of a database."""

from collections.abc import Sequence
from typing import Any, Protocol

from frontdesk.stores.sql.writes import Op

Rows = Sequence[Sequence[Any]]


class Engine(Protocol):
    """A database that answers questions and writes transactions; either can fail with `StoreUnavailableError`."""

    async def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of a query; `?` stands for a parameter."""
        ...

    async def write(self, ops: Sequence[Op]) -> list[Rows]:
        """Writes all or nothing, returns when it is safe; the rows of the statements whose answer is wanted."""
        ...

    async def open(self) -> None:
        """Connects, and brings the schema up to date."""
        ...

    async def close(self) -> None:
        """Writes what is under way, and disconnects."""
        ...
