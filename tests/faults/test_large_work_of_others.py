"""What one caller has much of: it is worked on away from the event loop, in turn, and a piece at a time."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate, Content

from frontdesk.channels.responses import channel, render
from frontdesk.errors import InvalidRequestError
from frontdesk.host.conversations import editor
from frontdesk.host.conversations.editor import ConversationEditor
from frontdesk.ids import RandomIds
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.models.run import RunEvent, RunRecord
from frontdesk.runs.background import followers
from frontdesk.runs.background.followers import PAGE_EVENTS, Followers, RunSignals
from frontdesk.sessions.job import encode_update
from frontdesk.sessions.turns import Turns
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql import records
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW, OWNER, run
from tests.scenarios.conversations.desk import AsyncGuest, list_heard, open_client
from tests.scenarios.responses.cast import parrot
from tests.stores.sql.bases import Base


def wide(parts: int) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}] * parts}


def note_threads(monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> list[bool]:
    """Note for each call of a function whether it was on the thread of the test, which has the event loop."""
    function: Callable[..., Any] = getattr(where, name)
    loop, on_loop = threading.get_ident(), list[bool]()

    def noted(*arguments: Any, **options: Any) -> Any:
        on_loop.append(threading.get_ident() == loop)
        return function(*arguments, **options)

    monkeypatch.setattr(where, name, noted)
    return on_loop


@pytest.mark.parametrize(("parts", "on_loop"), [(3, True), (3000, False)])
@pytest.mark.parametrize("store", [False, True])
async def test_a_small_turn_in_a_wide_conversation_stopped_everybody(
    monkeypatch: pytest.MonkeyPatch, parts: int, on_loop: bool, store: bool
) -> None:
    target = parrot()
    async with open_client(target, tapped=False) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[wide(parts)])
        told = note_threads(monkeypatch, editor, "to_messages")
        answer = await guest.ask("short", made.id, store=store)
        assert answer.output_text == "you said short"
        assert list_heard(target) == ["x" * parts, "short"]
        assert told == [on_loop]


async def loop_turns(work: Awaitable[Any]) -> int:
    """Count how often others could do something while a piece of work was done."""
    turns, loop, done = 0, asyncio.get_running_loop(), False

    def turn() -> None:
        nonlocal turns
        turns += 1
        if not done:
            loop.call_soon(turn)

    loop.call_soon(turn)
    await work
    done = True
    return turns


async def test_an_added_call_read_a_long_conversation_without_a_pause() -> None:
    store, ids = InMemoryStateStore(), RandomIds()
    conversation = Conversation(conversation_id="conv_1", owner=OWNER, created_at=NOW, session_id="ses_1")
    pages = 4
    async with store.transaction() as transaction:
        transaction.save_conversation(conversation)
        transaction.add_items(OWNER, [item(number) for number in range(pages * 500)])
    rebuild = partial(editor.rebuild_history, store)
    turns = Turns(store, ids, session_wait=10, cancel_grace=1, rebuild_history=rebuild)
    conversations = ConversationEditor(store, turns, ids, FakeClock(NOW))
    call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}", "id": "fc_1"}

    assert await loop_turns(conversations.add(conversation, [item(0, **call)], {})) >= pages

    with pytest.raises(InvalidRequestError, match="call_1"):
        await conversations.add(conversation, [item(0, **call)], {})


def item(number: int, **body: Any) -> ConversationItem:
    body = body or {**wide(1), "id": f"msg_{number}"}
    return ConversationItem(item_id=body["id"], conversation_id="conv_1", created_at=NOW, body=body)


async def test_a_page_of_many_items_was_decoded_on_the_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with Base("sqlite", str(tmp_path / "frontdesk.db")).open() as store:
        conversation = Conversation(conversation_id="conv_1", owner=OWNER, created_at=NOW, session_id="ses_1")
        # None of them is large: there are many.
        many = [item(0, **wide(100), id=f"msg_{number}") for number in range(50)]
        async with store.transaction() as transaction:
            transaction.save_conversation(conversation)
            transaction.add_items(OWNER, many)
        decoded = note_threads(monkeypatch, records, "decode")
        found = await store.conversations.items(OWNER, "conv_1", limit=500)
        assert [one.item_id for one in found] == [one.item_id for one in many]
        assert decoded == [False] * 50
        decoded.clear()
        assert len(await store.conversations.items(OWNER, "conv_1", limit=2)) == 2
        assert decoded == [True] * 2


def build_events(text: str, count: int) -> list[RunEvent]:
    data = encode_update(AgentResponseUpdate(contents=[Content.from_text(text)], role="assistant"))
    return [RunEvent(owner=OWNER, run_id="run_1", number=number + 1, data=data) for number in range(count)]


async def replay(events: Sequence[RunEvent]) -> int:
    """Read all updates of a run that has ended, as one who needs none of them; return the turns of the loop."""
    store = InMemoryStateStore()
    async with store.transaction() as transaction:
        transaction.save_run(run())
        transaction.add_events(events)
    read: list[Any] = []

    async def shown(ended: RunRecord) -> RunRecord:
        return ended

    async def follow() -> None:
        async with Followers(store, RunSignals(1.0)).stream(run(), shown) as stream:
            read.extend([update async for update in stream])

    turns = await loop_turns(follow())
    assert len(read) == len(events)
    return turns


async def test_a_long_run_was_read_again_without_a_pause() -> None:
    pages = 5
    assert await replay(build_events("word", pages * PAGE_EVENTS)) >= pages


@pytest.mark.parametrize(("text", "on_loop"), [("word", True), ("word" * 2000, False)])
async def test_large_updates_were_decoded_on_the_loop(
    monkeypatch: pytest.MonkeyPatch, text: str, on_loop: bool
) -> None:
    decoded = note_threads(monkeypatch, followers, "decode")
    await replay(build_events(text, 20))
    assert decoded == [on_loop] * 20


@pytest.mark.parametrize(("parts", "on_loop"), [(3, True), (3000, False)])
async def test_all_of_an_input_was_drawn_on_the_loop_for_one_item_of_it(
    monkeypatch: pytest.MonkeyPatch, parts: int, on_loop: bool
) -> None:
    async with open_client(parrot(), tapped=False) as desk:
        answer = await desk.post({"input": [wide(parts), wide(1), {"role": "user", "content": "last"}]})
        # Wherever it is drawn from.
        drawn = [
            note_threads(monkeypatch, where, "complete_item")
            for where in (channel, render)
            if hasattr(where, "complete_item")
        ]
        listed = await desk.http.get(f"/v1/responses/{answer.json()['id']}/input_items?limit=1")
        assert [one["content"] for one in listed.json()["data"]] == [[{"type": "input_text", "text": "last"}]]
        assert listed.json()["has_more"]
        assert [one for many in drawn for one in many] == [on_loop]
