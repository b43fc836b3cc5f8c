"""The calls about OpenAI conversations, for a channel: each is made for a caller, and sees only what is theirs."""

from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.data.conversation import Conversation, ConversationItem
from frontdesk.data.identity import Caller
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.run import RunRecord
from frontdesk.errors import NotFoundError
from frontdesk.host.context.scoped_calls import ScopedCalls
from frontdesk.host.conversations.compact import compact
from frontdesk.host.conversations.editor import ConversationEditor, check_first
from frontdesk.host.parts import Parts
from frontdesk.kit.chat.texts_en import ENGLISH
from frontdesk.kit.framework.messages import as_messages
from frontdesk.kit.openai.forms import as_items, complete_item
from frontdesk.kit.openai.items import to_messages
from frontdesk.sessions.items import find_conversation


class HostConversations(ScopedCalls):
    """The `ConversationsContext` of one channel."""

    def __init__(self, channel: str, parts: Parts) -> None:
        super().__init__(channel, parts)
        self._editor = ConversationEditor(parts.store, parts.turns, parts.ids, parts.clock)

    async def save(
        self,
        caller: Caller,
        conversation_id: str | None,
        metadata: Mapping[str, Any],
        items: Sequence[Mapping[str, Any]] = (),
        *,
        protocol_request: Any = None,
    ) -> Conversation:
        if conversation_id is None:
            return await self._create(caller, metadata, items, protocol_request)
        conversation = (await self._own(caller, conversation_id)).replace(metadata=metadata)
        async with self._store.transaction() as transaction:
            transaction.save_conversation(conversation)
        return conversation

    async def _create(
        self, caller: Caller, metadata: Mapping[str, Any], items: Sequence[Mapping[str, Any]], protocol_request: Any
    ) -> Conversation:
        # Items are refused before anything is stored for an unknown caller.
        await check_first(items)
        admitted, items = await self._admitted(caller, items, protocol_request)
        ids = self._parts.ids
        conversation = Conversation(
            conversation_id=ids.new("conv"),
            owner=admitted.owner,
            created_at=admitted.admitted_at,
            metadata=metadata,
            session_id=ids.new("ses"),
        )
        await self._editor.create(conversation, self._items(conversation, items))
        return conversation

    async def _admitted(
        self, caller: Caller, items: Sequence[Mapping[str, Any]], protocol_request: Any
    ) -> tuple[AdmittedRequest, Sequence[Mapping[str, Any]]]:
        """Take items through the gate; return them as the channel's hook has left them."""
        request = ChannelRequest(channel=self.channel)
        if self._parts.channels[self.channel].run_hook is None:
            return await self._parts.pipeline.admit(request, caller), items
        messages = to_messages(items)[0]
        before = as_items(messages)
        request = request.replace(input=messages, identity=caller.identity, details={"input": items})
        admitted = await self._parts.pipeline.admit(request, caller, protocol_request)
        after = as_items(as_messages(admitted.request.input) or ())
        if before == after:
            return admitted, items
        return admitted, [complete_item(item, self._parts.ids.new("item")) for item in after]

    def _items(self, conversation: Conversation, bodies: Sequence[Mapping[str, Any]]) -> list[ConversationItem]:
        now = self._parts.clock.now()
        return [
            ConversationItem(
                item_id=body["id"], conversation_id=conversation.conversation_id, created_at=now, body=body
            )
            for body in bodies
        ]

    async def get(self, caller: Caller, conversation_id: str) -> Conversation:
        try:
            conversation = await self._readable(
                caller, lambda owner: self._store.conversations.get(owner, conversation_id)
            )
        except NotFoundError:
            # An unknown caller gets the same answer as for any conversation that does not exist.
            conversation = None
        if conversation is None:
            raise NotFoundError("There is no such conversation.", param="conversation")
        return conversation

    async def _own(self, caller: Caller, conversation_id: str) -> Conversation:
        """Return a conversation that the caller may change: not one of the time before they were linked."""
        allowed = await self._allowed(caller)
        if allowed.isolation_key is None:
            raise NotFoundError("There is no such conversation.", param="conversation")
        return await find_conversation(self._store, allowed.isolation_key, conversation_id)

    async def delete(self, caller: Caller, conversation_id: str) -> None:
        conversation = await self._own(caller, conversation_id)
        async with self._store.transaction() as transaction:
            transaction.delete_conversation(conversation.owner, conversation_id)
        asked = await self._store.approvals.of_session(conversation.owner, conversation.session_id)
        await self._parts.decisions.close(asked, reason=ENGLISH["reason.session_deleted"])

    async def add_items(
        self,
        caller: Caller,
        conversation_id: str,
        items: Sequence[Mapping[str, Any]],
        *,
        protocol_request: Any = None,
    ) -> Sequence[Mapping[str, Any]]:
        conversation = await self._own(caller, conversation_id)
        _, items = await self._admitted(caller, items, protocol_request)
        who = {"channel": caller.identity.channel, "native_id": caller.identity.native_id}
        hosting = {"channel": self.channel, "identity": who, "conversation_id": conversation_id}
        await self._editor.add(conversation, self._items(conversation, items), hosting)
        return items

    async def list_items(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        after: str | None = None,
        limit: int = 20,
        descending: bool = False,
    ) -> Sequence[ConversationItem]:
        conversation = await self.get(caller, conversation_id)
        number = 0 if after is None else (await self.get_item(caller, conversation_id, after)).number
        return await self._store.conversations.items(
            conversation.owner, conversation_id, after=number, limit=limit, descending=descending
        )

    async def get_item(self, caller: Caller, conversation_id: str, item_id: str) -> ConversationItem:
        owner = (await self.get(caller, conversation_id)).owner
        item = await self._store.conversations.item(owner, conversation_id, item_id)
        if item is None:
            raise NotFoundError("There is no such item.", param="item_id")
        return item

    async def delete_item(self, caller: Caller, conversation_id: str, item_id: str) -> Conversation:
        conversation = await self._own(caller, conversation_id)
        await self._editor.remove(conversation, item_id)
        return conversation

    async def compact(
        self, request: ChannelRequest, caller: Caller, *, by: Any = None, protocol_request: Any = None
    ) -> RunRecord:
        return await compact(self._parts, request, caller, by, protocol_request)
