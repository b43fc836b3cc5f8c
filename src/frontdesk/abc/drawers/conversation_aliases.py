"""Names of conversations that have moved."""

from collections.abc import Collection
from typing import Protocol

from frontdesk.data.conversation_alias import AliasMerge, ConversationAlias


class ConversationAliases(Protocol):
    """Names by channel."""

    async def moved_on(self, channels: Collection[str]) -> Collection[str]:
        """Return those of some channels on which any conversation has moved."""
        ...

    async def find(self, channel: str, name: str) -> ConversationAlias | None: ...

    async def version(self, channel: str) -> int:
        """Return how often the names of a channel were changed."""
        ...

    async def merge(self, channel: str, merge: AliasMerge, *, version: int) -> bool:
        """Change the names of a channel, unless they were changed since that version; tell whether so."""
        ...
