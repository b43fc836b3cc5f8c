"""What a channel may add to the contract when its runs can be items of a conversation."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from frontdesk.data.run import RunRecord


@runtime_checkable
class ShowsItems(Protocol):
    """A channel that can show a run as items of a conversation, in the words of the OpenAI APIs."""

    def turn_items(self, run: RunRecord, result: Any) -> Sequence[Mapping[str, Any]]:
        """What was said and what was answered, each with an id that no other item has."""
        ...
