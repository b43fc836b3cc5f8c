"""The contract between the host and channels that serve conversations of the OpenAI APIs."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from frontdesk.data.conversation import Conversation, ConversationItem
from frontdesk.data.identity import Caller
from frontdesk.data.request import ChannelRequest
from frontdesk.data.run import RunRecord


class ConversationsContext(Protocol):
    """All that such a channel may call besides. Every call is made for a caller, and sees only what is theirs."""

    async def save(
        self,
        caller: Caller,
        conversation_id: str | None,
        metadata: Mapping[str, Any],
        items: Sequence[Mapping[str, Any]] = (),
        *,
        protocol_request: Any = None,
    ) -> Conversation:
        """Make a conversation with its first items, or change the metadata of one."""
        ...

    async def get(self, caller: Caller, conversation_id: str) -> Conversation: ...

    async def delete(self, caller: Caller, conversation_id: str) -> None: ...

    async def add_items(
        self,
        caller: Caller,
        conversation_id: str,
        items: Sequence[Mapping[str, Any]],
        *,
        protocol_request: Any = None,
    ) -> Sequence[Mapping[str, Any]]:
        """Add items, each with an id of its own, once no turn of the conversation runs; return what was added."""
        ...

    async def list_items(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        after: str | None = None,
        limit: int = 20,
        descending: bool = False,
    ) -> Sequence[ConversationItem]: ...

    async def get_item(self, caller: Caller, conversation_id: str, item_id: str) -> ConversationItem: ...

    async def delete_item(self, caller: Caller, conversation_id: str, item_id: str) -> Conversation:
        """Delete an item, once no turn of the conversation runs, and return the conversation."""
        ...

    async def compact(
        self, request: ChannelRequest, caller: Caller, *, by: Any = None, protocol_request: Any = None
    ) -> RunRecord:
        """Keep a summary of the request's input, and of what came before it; `by` is an agent or a function."""
        ...


@runtime_checkable
class ShowsItems(Protocol):
    """A channel that can show a run as items of a conversation, in the words of the OpenAI APIs."""

    def turn_items(self, run: RunRecord, result: Any) -> Sequence[Mapping[str, Any]]:
        """Return what was said and what was answered, each with an id that no other item has."""
        ...
