"""Edits OpenAI conversations between their turns."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from agent_framework import Message

from frontdesk.clock import Clock
from frontdesk.concurrency.offload import run_weighed
from frontdesk.errors import CodecError, ConflictError, InvalidRequestError, NotFoundError
from frontdesk.framework.client_outputs import as_results, in_given_order
from frontdesk.framework.contents import stamp
from frontdesk.framework.workflow_requests import REQUEST_INFO
from frontdesk.ids import Ids
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.interfaces.store_sessions import Charge
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.models.session import ClientCall, Lease, SessionRecord
from frontdesk.openai.items import Items, read_added, to_messages
from frontdesk.serialization.codec import build_form
from frontdesk.sessions.items import find_conversation, prepare_items
from frontdesk.sessions.snapshot import rewrite
from frontdesk.sessions.turns import Turns

_PAGE_ROWS = 500


async def pages(
    store: HostStateStore, owner: str, conversation_id: str, charge: Charge | None = None
) -> AsyncGenerator[Sequence[ConversationItem]]:
    """Yield all items of a conversation in pages, oldest first. `charge` accounts for all of them before the first
    page."""
    after = 0
    # Until a page is empty: one is shorter where a record could not be read and was set aside.
    while page := await store.conversations.items(owner, conversation_id, after=after, limit=_PAGE_ROWS, charge=charge):
        yield page
        after, charge = page[-1].number, None
        if len(page) == _PAGE_ROWS:
            # A store in memory never waits.
            await asyncio.sleep(0)


async def rebuild_history(
    store: HostStateStore, owner: str, conversation_id: str, charge: Charge | None = None
) -> tuple[Sequence[Message], tuple[ClientCall, ...]]:
    """Return the history built from the items of a conversation, and the calls that wait for an output."""
    bodies = [item.body async for page in pages(store, owner, conversation_id, charge) for item in page]
    return await run_weighed(bodies, _read_bodies, bodies, conversation_id)


def _read_bodies(
    bodies: Sequence[Mapping[str, Any]], conversation_id: str
) -> tuple[Sequence[Message], tuple[ClientCall, ...]]:
    messages, calls = to_messages(bodies)
    hosting = {"conversation_id": conversation_id}
    waiting = tuple(ClientCall(call_id=call_id, name=name) for call_id, name in calls.items())
    return [stamp(message, hosting) for message in messages], waiting


class ConversationEditor:
    """Adds and removes items, never during a turn."""

    def __init__(self, store: HostStateStore, turns: Turns, ids: Ids, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._turns = turns
        self._clock = clock

    async def create(self, conversation: Conversation, items: Sequence[ConversationItem]) -> None:
        await check_first([item.body for item in items])
        items = await prepare_items(items)
        async with self._store.transaction() as transaction:
            transaction.save_conversation(conversation)
            transaction.add_items(conversation.owner, items)

    async def add(
        self, conversation: Conversation, items: Sequence[ConversationItem], hosting: Mapping[str, Any]
    ) -> None:
        """Append items. `hosting` is their origin."""
        added = await _read([item.body for item in items])
        items = await prepare_items(items)
        async with self._turns.hold(conversation.session_id) as lease:
            await find_conversation(self._store, conversation.owner, conversation.conversation_id)
            if added.calls or added.outputs:
                _require_calls(added, await self._calls(conversation))
            session = await self._store.sessions.get(conversation.owner, conversation.session_id)
            _refuse_workflow_answers(session, added)
            if session is not None:
                session = session.replace(state=await rewrite(session.state))
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
        unstamped = in_given_order(as_results(added.outputs), added.messages, added.outputs)
        messages = [stamp(message, hosting, self._ids.new("msg")) for message in unstamped]
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
        """Return the calls of a conversation, with True for those that have an output."""
        calls: dict[str, bool] = {}
        async for page in pages(self._store, conversation.owner, conversation.conversation_id):
            for item in page:
                kind, call_id = item.body.get("type"), item.body.get("call_id")
                if kind in ("function_call", "function_call_output") and isinstance(call_id, str):
                    calls[call_id] = kind == "function_call_output"
        return calls

    async def remove(self, conversation: Conversation, item_id: str) -> None:
        """Delete an item. From then on the target receives only the remaining ones."""
        owner, session_id = conversation.owner, conversation.session_id
        async with self._turns.hold(session_id) as lease:
            await find_conversation(self._store, owner, conversation.conversation_id)
            if await self._store.conversations.item(owner, conversation.conversation_id, item_id) is None:
                raise NotFoundError("Item not found.", param="item_id")
            session = await self._store.sessions.get(owner, session_id)
            if session is not None:
                await self._require_idle(session)
                session = session.replace(state=await rewrite(session.state))
            async with self._store.transaction() as transaction:
                transaction.delete_item(owner, conversation.conversation_id, item_id)
                if session is not None:
                    untold = session.replace(ignored=session.messages, updated_at=self._clock.now())
                    transaction.save_session(untold, lease)

    async def _require_idle(self, session: SessionRecord) -> None:
        """Reject edits while the target waits for an answer: the subject of its question must not change."""
        asked = any(call.name == REQUEST_INFO for call in session.client_calls)
        questions = await self._store.approvals.of_session(session.owner, session.session_id)
        if asked or any(question.waits for question in questions):
            raise ConflictError("The conversation has a pending question. Answer it first.", code="answer_needed")


async def check_first(items: Sequence[Mapping[str, Any]]) -> None:
    _require_calls(await _read(items), {})


async def _read(items: Sequence[Mapping[str, Any]]) -> Items:
    return await run_weighed(items, _check_items, items)


def _check_items(items: Sequence[Mapping[str, Any]]) -> Items:
    bodies = [dict(item) for item in items]
    try:
        # Checked here, so that a store in memory takes nothing that another would refuse.
        build_form(bodies)
    except CodecError as error:
        raise InvalidRequestError(f"The items can't be stored: {error}.", param="items") from None
    return read_added(bodies, host_tools=())


def _require_calls(added: Items, known: Mapping[str, bool]) -> None:
    """Reject a call that the conversation already has, and an output without a pending call."""
    again = sorted(set(added.calls) & set(known))
    if again:
        raise InvalidRequestError(f"The call id {again[0]} is already used in this conversation.", param="items")
    answered: set[str] = set()
    for output in added.outputs:
        if known.get(output.call_id, True) or output.call_id in answered:
            raise InvalidRequestError(f"No pending tool call has the call_id {output.call_id}.", param="items")
        answered.add(output.call_id)


def _refuse_workflow_answers(session: SessionRecord | None, added: Items) -> None:
    calls = () if session is None else session.client_calls
    asked = {call.call_id for call in calls if call.name == REQUEST_INFO}
    if any(output.call_id in asked for output in added.outputs):
        raise InvalidRequestError("Answer a workflow's question with a response.", param="items")
