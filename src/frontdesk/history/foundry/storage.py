"""The seam to a service that stores responses."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from frontdesk.data.isolation import IsolationKeys


class ResponseStorage(Protocol):
    """A service that stores responses with their items; each call is made for the person whose keys it takes."""

    async def create(
        self,
        response: Mapping[str, Any],
        input_items: Sequence[Mapping[str, Any]],
        history_item_ids: Sequence[str],
        keys: IsolationKeys,
    ) -> None:
        """Store a response; `ResponseTakenError` if there is one with its id, `HistoryStorageError` if that fails."""
        ...

    async def history_ids(self, response_id: str, limit: int, keys: IsolationKeys) -> Sequence[str]:
        """Return the ids of the items up to the end of a response, oldest first, and no more than `limit` of the last.

        A limit of -1 is none. `HistoryRefusedError` if the person has no such response.
        """
        ...

    async def items(self, ids: Sequence[str], keys: IsolationKeys) -> Sequence[Mapping[str, Any] | None]:
        """Return the items with these ids; `None` in the place of one that is gone."""
        ...

    async def aclose(self) -> None:
        """Close the connections to the service."""
        ...
