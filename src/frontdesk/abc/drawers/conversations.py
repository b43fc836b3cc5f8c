"""Conversations that callers made, and their items."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.conversation import Conversation, ConversationItem


class Conversations(Protocol):
    """Conversations that callers made, and their items."""

    async def get(self, owner: str, conversation_id: str) -> Conversation | None: ...

    async def items(
        self, owner: str, conversation_id: str, *, after: int = 0, limit: int = 100, descending: bool = False
    ) -> Sequence[ConversationItem]:
        """List a page of items; `after` is the number of the last one seen, 0 for the first page."""
        ...

    async def item(self, owner: str, conversation_id: str, item_id: str) -> ConversationItem | None: ...


class ConversationWrites(Protocol):
    """Write conversations and their items."""

    def save_conversation(self, conversation: Conversation) -> None: ...

    def delete_conversation(self, owner: str, conversation_id: str) -> None:
        """Remove a conversation and its items."""
        ...

    def add_items(self, owner: str, items: Sequence[ConversationItem]) -> None:
        """Add items to conversations of the owner's; those for any other are left out."""
        ...

    def delete_item(self, owner: str, conversation_id: str, item_id: str) -> None: ...
