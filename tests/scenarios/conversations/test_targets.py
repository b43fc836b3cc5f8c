"""Conversations with targets of every kind, and on stores that forget."""

import json
import sqlite3
from pathlib import Path

import pytest
from openai import BadRequestError, ConflictError

from frontdesk import InMemoryStateStore
from frontdesk.host.conversations import editor
from frontdesk.models.operations import Expiry
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import FakeClock
from tests.scenarios.cast import PlainAgent, voices
from tests.scenarios.conversations.desk import AsyncGuest, build_counting, list_heard, open_client, texts, user
from tests.scenarios.pausing import Inn

YES = json.dumps({"accepted": True, "nights": 2})


async def test_an_agent_that_is_only_an_agent() -> None:
    target = PlainAgent()
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("one")])
        await guest.ask("two", made.id)
        items = await guest.items(made.id, order="asc")
        await guest.do("conversations.items.delete", items[1].id, conversation_id=made.id)
        await guest.ask("three", made.id)
        assert target.heard == [["one", "two"], ["one", "2 messages", "three"]]


async def test_a_workflow() -> None:
    async with open_client(voices) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")
        await guest.ask("Hello", made.id)
        await guest.ask("Bye", made.id)
        said = ["Hello", "HELLO 1", "hello", "Bye", "BYE 1", "bye"]
        assert texts(await guest.items(made.id, order="asc")) == said


async def test_a_workflow_that_asks_is_answered_with_a_response() -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")
        asked = (await guest.ask("anna", made.id)).output[-1]
        output = {"type": "function_call_output", "call_id": asked.call_id, "output": YES}
        with pytest.raises(BadRequestError, match="workflow's question with a response"):
            await guest.do("conversations.items.create", made.id, items=[output])
        with pytest.raises(ConflictError):
            await guest.do("conversations.items.delete", asked.id, conversation_id=made.id)
        await guest.ask([output], made.id)
        assert inn.ledger == ["attic 2"]
        items = await guest.items(made.id, order="asc")
        assert [one.type for one in items] == [
            "message",
            "message",
            "function_call",
            "function_call_output",
            *["message"] * 2,
        ]
        await guest.do("conversations.items.delete", items[0].id, conversation_id=made.id)
        assert (await guest.ask("who?", made.id)).output_text == "served anna"


async def test_a_conversation_outlives_a_session_that_the_store_dropped() -> None:
    target = build_counting()
    async with open_client(target, store=InMemoryStateStore(limit=1), tapped=False) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")
        await guest.ask("one", made.id)
        for _ in range(2):
            await guest.do("responses.create", model="m", input="another session")
        await guest.ask("two", made.id)
        assert list_heard(target) == ["one", "1 heard", "two"]
        await guest.ask("three", made.id)
        assert list_heard(target) == ["one", "1 heard", "two", "3 heard", "three"]


async def test_an_item_that_cannot_be_read_hid_those_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor, "_PAGE_ROWS", 2)
    target, store = build_counting(), SqliteStateStore(tmp_path / "frontdesk.db")
    async with open_client(target, store=store, tapped=False) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user(word) for word in ("one", "two", "three", "four")])
        (_, second, *_) = await guest.items(made.id, order="asc")
        with sqlite3.connect(tmp_path / "frontdesk.db") as database:
            database.execute("UPDATE items SET data = 'broken' WHERE item_id = ?", (second.id,))
        await guest.ask("five", made.id)
        assert list_heard(target) == ["one", "three", "four", "five"]
        assert store.set_aside == 1


async def test_a_conversation_outlives_a_session_that_expired(tmp_path: Path) -> None:
    clock, target = FakeClock(), build_counting()
    store = SqliteStateStore(tmp_path / "frontdesk.db", expiry=Expiry(sessions=60.0), clock=clock)
    async with open_client(target, store=store, host_settings={"clock": clock}, tapped=False) as desk:
        # It sweeps when it opens, and might still be at it.
        await store._sweep.stop()
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create")
        await guest.ask("one", made.id)
        clock.advance(3600.0)
        assert await store._sweep.once() == 1
        await guest.ask("two", made.id)
        assert list_heard(target) == ["one", "1 heard", "two"]
        assert texts(await guest.items(made.id, order="asc")) == ["one", "1 heard", "two", "3 heard"]
