"""Changes OpenAI conversations between their turns."""

from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.clock import Clock
from frontdesk.data.codec import form_of
from frontdesk.data.conversation import Conversation, ConversationItem
from frontdesk.data.session import ClientCall, Lease, SessionRecord
from frontdesk.errors import CodecError, ConflictError, InvalidRequestError, NotFoundError
from frontdesk.host.conversations.history import pages
from frontdesk.ids import Ids
from frontdesk.kit.aio.large import run_weighed
from frontdesk.kit.framework.client_outputs import as_results
from frontdesk.kit.framework.messages import stamped
from frontdesk.kit.framework.workflow_requests import REQUEST_INFO
from frontdesk.kit.openai.items import Items, read_added
from frontdesk.sessions.items import find_conversation, prepared_items
from frontdesk.sessions.snapshot import rewritten
from frontdesk.sessions.turns import Turns


class ConversationEditor:
    """Adds and removes items, never during a turn."""

    def __init__(self, store: HostStateStore, turns: Turns, ids: Ids, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._turns = turns
        self._clock = clock

    async def create(self, conversation: Conversation, items: Sequence[ConversationItem]) -> None:
        """Store a new conversation with its first items."""
        await check_first([item.body for item in items])
        items = await prepared_items(items)
        async with self._store.transaction() as transaction:
            transaction.save_conversation(conversation)
            transaction.add_items(conversation.owner, items)

    async def add(
        self, conversation: Conversation, items: Sequence[ConversationItem], hosting: Mapping[str, Any]
    ) -> None:
        """Add items at the end; `hosting` says where they came from."""
        added = await _read([item.body for item in items])
        items = await prepared_items(items)
        async with self._turns.held(conversation.session_id) as lease:
            await find_conversation(self._store, conversation.owner, conversation.conversation_id)
            if added.calls or added.outputs:
                _need_calls(added, await self._calls(conversation))
            session = await self._store.sessions.get(conversation.owner, conversation.session_id)
            _refuse_workflow_answers(session, added)
            if session is not None:
                session = session.replace(state=await rewritten(session.state))
            async with self._store.transaction() as transaction:
                transaction.add_items(conversation.owner, items)
                # A session without a history of its own gets it from the items.
                if session is not None and session.messages > session.ignored:
                    self._append(transaction, session, lease, added, hosting)

    def _append(
        self,
        transaction: StateTransaction,
        session: SessionRecord,
        lease: Lease,
        added: Items,
        hosting: Mapping[str, Any],
    ) -> None:
        unstamped = (*as_results(added.outputs), *added.messages)
        messages = [stamped(message, hosting, self._ids.new("msg")) for message in unstamped]
        answered = {output.call_id for output in added.outputs}
        waiting = [call for call in session.client_calls if call.call_id not in answered]
        for message in added.messages:
            calls = [content for content in message.contents if content.type == "function_call"]
            waiting += [
                ClientCall(call_id=str(call.call_id), name=str(call.name))
                for call in calls
                if not added.calls[str(call.call_id)]
            ]
        longer = session.replace(
            messages=session.messages + len(messages), client_calls=tuple(waiting), updated_at=self._clock.now()
        )
        transaction.save_session(longer, lease)
        transaction.append_history(session.session_id, messages)

    async def _calls(self, conversation: Conversation) -> dict[str, bool]:
        """Return the calls of a conversation, and whether each has its output."""
        calls: dict[str, bool] = {}
        async for page in pages(self._store, conversation.owner, conversation.conversation_id):
            for item in page:
                kind, call_id = item.body.get("type"), item.body.get("call_id")
                if kind in ("function_call", "function_call_output") and isinstance(call_id, str):
                    calls[call_id] = kind == "function_call_output"
        return calls

    async def remove(self, conversation: Conversation, item_id: str) -> None:
        """Delete an item; from then on the target gets only what is left."""
        owner, session_id = conversation.owner, conversation.session_id
        async with self._turns.held(session_id) as lease:
            await find_conversation(self._store, owner, conversation.conversation_id)
            if await self._store.conversations.item(owner, conversation.conversation_id, item_id) is None:
                raise NotFoundError("There is no such item.", param="item_id")
            session = await self._store.sessions.get(owner, session_id)
            if session is not None:
                await self._need_rest(session)
                session = session.replace(state=await rewritten(session.state))
            async with self._store.transaction() as transaction:
                transaction.delete_item(owner, conversation.conversation_id, item_id)
                if session is not None:
                    untold = session.replace(ignored=session.messages, updated_at=self._clock.now())
                    transaction.save_session(untold, lease)

    async def _need_rest(self, session: SessionRecord) -> None:
        """Refuse while the target waits for an answer: what it asked about must not change before it comes."""
        asked = any(call.name == REQUEST_INFO for call in session.client_calls)
        questions = await self._store.approvals.of_session(session.owner, session.session_id)
        if asked or any(question.waits for question in questions):
            raise ConflictError("The conversation waits for an answer; give it first.", code="answer_needed")


async def check_first(items: Sequence[Mapping[str, Any]]) -> None:
    """Refuse items with which no conversation can begin."""
    _need_calls(await _read(items), {})


async def _read(items: Sequence[Mapping[str, Any]]) -> Items:
    return await run_weighed(items, _checked, items)


def _checked(items: Sequence[Mapping[str, Any]]) -> Items:
    bodies = [dict(item) for item in items]
    try:
        # Checked here, so that a store in memory takes nothing that another would refuse.
        form_of(bodies)
    except CodecError as error:
        raise InvalidRequestError(f"The items can't be kept: {error}.", param="items") from None
    return read_added(bodies, host_tools=())


def _need_calls(added: Items, known: Mapping[str, bool]) -> None:
    """Refuse a call that the conversation has already, and an output for a call that does not wait."""
    again = sorted(set(added.calls) & set(known))
    if again:
        raise InvalidRequestError(f"The conversation has a call {again[0]} of its own.", param="items")
    answered: set[str] = set()
    for output in added.outputs:
        if known.get(output.call_id, True) or output.call_id in answered:
            raise InvalidRequestError(f"No tool call waits for an output with call_id {output.call_id}.", param="items")
        answered.add(output.call_id)


def _refuse_workflow_answers(session: SessionRecord | None, added: Items) -> None:
    calls = () if session is None else session.client_calls
    asked = {call.call_id for call in calls if call.name == REQUEST_INFO}
    if any(output.call_id in asked for output in added.outputs):
        raise InvalidRequestError("What a workflow asks is answered with a response.", param="items")
