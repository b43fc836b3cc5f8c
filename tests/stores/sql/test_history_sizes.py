"""Histories and items of conversations are charged before they are parsed, from their stored sizes."""

from collections.abc import Sequence
from typing import Any

import pytest
from agent_framework import Content, Message

from frontdesk import InMemoryStateStore
from frontdesk.errors import TooManyRequestsError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.json_size import VALUE_BYTES
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.models.session import ForkPoint
from frontdesk.stores.sql import sessions
from frontdesk_testing.store_samples import NOW, OTHER, OWNER, keep_session, pictures, session
from tests.stores.sql.bases import Base

PARTS = 400
LEAST = 2 * PARTS * VALUE_BYTES
"""What a message of so many parts counts at least."""


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


def wide(parts: int = PARTS) -> Message:
    return Message("user", [Content.from_text("a") for _ in range(parts)])


class Charges:
    """Notes charges, and refuses them if told so."""

    def __init__(self, refuses: bool = False) -> None:
        self.sizes: list[int] = []
        self._refuses = refuses

    async def __call__(self, size: int) -> None:
        self.sizes.append(size)
        if self._refuses:
            raise TooManyRequestsError


class TestStores:
    @pytest.mark.parametrize("parts", [PARTS, 10 * PARTS])
    async def test_a_wide_history_was_parsed_before_it_was_counted(self, base: Base, parts: int) -> None:
        async with base.open() as store:
            for _ in range(3):
                await keep_session(store, session(), [wide(parts)])
            charges = Charges(refuses=True)
            for _ in range(2):
                with pytest.raises(TooManyRequestsError):
                    await store.sessions.history(OWNER, "ses_1", charge=charges)
            # Nothing of it was parsed.
            assert not store.sessions._histories._known
            assert charges.sizes == charges.sizes[:1] * 2
            assert 3 * parts * 2 * VALUE_BYTES < charges.sizes[0] < 3 * parts * 5 * VALUE_BYTES
            allowed = Charges()
            read = await store.sessions.history(OWNER, "ses_1", charge=allowed)
            assert [len(message.contents) for message in read] == [parts] * 3
            # Cached or not, each turn counts all of it.
            await store.sessions.history(OWNER, "ses_1", charge=allowed)
            assert allowed.sizes == charges.sizes

    async def test_a_branch_counts_what_it_shares_at_once(self, base: Base) -> None:
        async with base.open() as store:
            await keep_session(store, session(), [wide(10 * PARTS)])
            await keep_session(store, session("ses_2", parent=ForkPoint(session_id="ses_1", messages=1)), [wide()])
            charges = Charges()
            assert len(await store.sessions.history(OWNER, "ses_2", charge=charges)) == 2
            assert len(charges.sizes) == 1
            assert charges.sizes[0] > 11 * LEAST

    async def test_a_file_counts_for_each_message_that_has_it(self, base: Base) -> None:
        async with base.open() as store:
            for _ in range(20):
                await keep_session(store, session(), pictures("a"))
            charges = Charges()
            read = await store.sessions.history(OWNER, "ses_1", charge=charges)
            in_memory = sum(len(content.uri or "") for message in read for content in message.contents)
            assert in_memory > 20 * 20_000
            assert in_memory * 0.9 < charges.sizes[0] < in_memory * 1.5

    async def test_small_histories_are_read_with_the_same_queries_as_before(
        self, base: Base, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with base.open() as store:
            for number in range(20):
                await keep_session(store, session(), [Message("user", [f"message {number}"])])
            asked: list[str] = []
            read = store._engine.read

            async def noted(sql: str, values: Sequence[Any] = ()) -> Any:
                asked.append(sql)
                return await read(sql, values)

            monkeypatch.setattr(store._engine, "read", noted)
            charges = Charges()
            for _ in range(2):
                assert len(await store.sessions.history(OWNER, "ses_1", charge=charges)) == 20
            assert asked == [sessions._ALONE] * 2
            assert charges.sizes == []

    @pytest.mark.parametrize("count", [1, 8])
    async def test_the_items_of_a_conversation_are_counted_before_they_are_parsed(self, base: Base, count: int) -> None:
        async with base.open() as sql:
            for store in (sql, InMemoryStateStore()):
                await note_items(store, count)
                charges = Charges(refuses=True)
                with pytest.raises(TooManyRequestsError):
                    await store.conversations.items(OWNER, "conv_1", charge=charges)
                assert LEAST * count < charges.sizes[0] < 20 * LEAST * count
                assert len(await store.conversations.items(OWNER, "conv_1", charge=Charges())) == count
                assert await store.conversations.items(OTHER, "conv_1", charge=Charges()) in ([], ())

    async def test_the_store_in_memory_counts_too(self) -> None:
        store, charges = InMemoryStateStore(), Charges(refuses=True)
        await keep_session(store, session(), [wide()])
        for _ in range(2):
            with pytest.raises(TooManyRequestsError):
                await store.sessions.history(OWNER, "ses_1", charge=charges)
        assert LEAST < charges.sizes[0] == charges.sizes[1]


async def note_items(store: HostStateStore, count: int) -> None:
    conversation = Conversation(conversation_id="conv_1", owner=OWNER, created_at=NOW, session_id="ses_1")
    body = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}] * PARTS}
    items = [
        ConversationItem(item_id=f"msg_{number}", conversation_id="conv_1", created_at=NOW, body=body)
        for number in range(count)
    ]
    async with store.transaction() as transaction:
        transaction.save_conversation(conversation)
        transaction.add_items(OWNER, items)
