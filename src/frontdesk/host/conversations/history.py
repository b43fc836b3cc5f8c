"""Rebuilds the history of a session from the items of its conversation."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from agent_framework import Message

from frontdesk.abc.store import HostStateStore
from frontdesk.data.conversation import ConversationItem
from frontdesk.data.session import ClientCall
from frontdesk.kit.aio.large import run_weighed
from frontdesk.kit.framework.messages import stamped
from frontdesk.kit.openai.items import to_messages

_PAGE = 500


async def pages(store: HostStateStore, owner: str, conversation_id: str) -> AsyncGenerator[Sequence[ConversationItem]]:
    """Read all items of a conversation, oldest first, a page at a time."""
    after = 0
    # Until a page is empty: one is shorter where a record could not be read and was set aside.
    while page := await store.conversations.items(owner, conversation_id, after=after, limit=_PAGE):
        yield page
        after = page[-1].number
        if len(page) == _PAGE:
            # A store in memory never waits.
            await asyncio.sleep(0)


async def rebuild_history(
    store: HostStateStore, owner: str, conversation_id: str
) -> tuple[Sequence[Message], tuple[ClientCall, ...]]:
    """Return the history that the items of a conversation make, and the calls that wait for an output."""
    bodies = [item.body async for page in pages(store, owner, conversation_id) for item in page]
    return await run_weighed(bodies, _read, bodies, conversation_id)


def _read(
    bodies: Sequence[Mapping[str, Any]], conversation_id: str
) -> tuple[Sequence[Message], tuple[ClientCall, ...]]:
    messages, calls = to_messages(bodies)
    hosting = {"conversation_id": conversation_id}
    waiting = tuple(ClientCall(call_id=call_id, name=name) for call_id, name in calls.items())
    return [stamped(message, hosting) for message in messages], waiting
