"""What a newer version wrote stays where it is, and is given to nobody by a process that can't read it."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from frontdesk.errors import UnreadableRecordError
from frontdesk.models.delivery import WaitingEvent
from frontdesk.models.operations import TaskRecord
from frontdesk.serialization.codec import decode
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing.store_samples import (
    NOW,
    OWNER,
    build_identity,
    build_messages,
    conversation,
    delivery,
    identity,
    inbox_item,
    job,
    keep_session,
    link,
    question,
    run,
    session,
)
from tests.stores.sql.bases import Base
from tests.stores.sql.test_broken_records import READS, set_aside, store_spoiled

Damage = Callable[[dict[str, Any]], object]
NEWER: dict[str, Damage] = {
    "version": lambda record: record.update(v=2),
    "tag": lambda record: record.update(data={"$": "Invented", "x": 1}),
    "registered": lambda record: record.update(data={"$": "user:not_here", "value": 1}),
    "field": lambda record: record.update(data={"$": "RunRecord", "run_id": 5}),
}
TASK = TaskRecord(task_id="task_1", name="mail", payload={"to": "ann"}, due_at=NOW)


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


def newer(data: bytes, damage: Damage) -> bytes:
    record = json.loads(data)
    damage(record)
    return json.dumps(record).encode()


def change(base: Base, table: str, damage: Damage, where: str = "true") -> bytes:
    """Make rows what a newer version would have written; return the first."""
    for (data,) in base.execute(f"SELECT data FROM {table} WHERE {where}"):
        base.execute(f"UPDATE {table} SET data = ? WHERE data = ?", (newer(bytes(data), damage), bytes(data)))
    return bytes(base.execute(f"SELECT data FROM {table} WHERE {where}")[0][0])


def rows(base: Base, table: str) -> list[Any]:
    return [tuple(row) for row in base.execute(f"SELECT * FROM {table}")]


@pytest.mark.parametrize(
    ("table", "what"), [*((table, "tag") for table in READS), *(("runs", what) for what in NEWER if what != "tag")]
)
async def test_an_older_version_set_aside_what_a_newer_one_wrote(
    base: Base, table: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    await store_spoiled(base, table, newer(b'{"v":1,"data":{}}', NEWER[what]))
    before = rows(base, table)
    async with base.open() as store:
        for _ in range(3):
            with pytest.raises(UnreadableRecordError) as caught:
                await READS[table](store)
            assert (caught.value.status, caught.value.retry_after) == (503, 5.0)
        assert (store.set_aside, set_aside(base), store.unreadable) == (0, [], 1)
    assert rows(base, table) == before
    # It is logged once, however often it is met.
    assert len([one for one in caplog.records if one.levelno == logging.WARNING and table in one.getMessage()]) == 1


async def test_a_field_of_a_newer_version_stays_when_a_turn_writes_its_session_again(base: Base) -> None:
    async with base.open() as store:
        await keep_session(store, session(), build_messages("one"))
    change(base, "sessions", lambda record: record["data"].update(title="Trip"))
    async with base.open() as store:
        known = await store.sessions.get(OWNER, "ses_1")
        assert known is not None
        await keep_session(store, known.replace(turns=1, messages=2), build_messages("two"))
        assert (store.set_aside, store.unreadable) == (0, 0)
    ((data,),) = base.execute("SELECT data FROM sessions")
    assert json.loads(bytes(data))["data"] | {"title": "Trip", "turns": 1} == json.loads(bytes(data))["data"]


async def test_whatever_is_read_and_written_as_a_whole_keeps_fields_of_a_newer_version(base: Base) -> None:
    async with base.open() as store:
        await store.identities.remember(build_identity(identity()))
        async with store.transaction() as transaction:
            transaction.save_run(run(status="queued", input=build_messages("hi")))
            transaction.save_conversation(conversation())
            transaction.add_link(link(identity()))
    tables = ("identities", "runs", "conversations", "links")
    for table in tables:
        change(base, table, lambda record: record["data"].update(added={"$": "Invented"}))
    async with base.open() as store:
        await rewrite_all(store)
        assert (store.set_aside, store.unreadable) == (0, 0)
    for table in tables:
        ((data,),) = base.execute(f"SELECT data FROM {table}")
        assert json.loads(bytes(data))["data"]["added"] == {"$": "Invented"}, table
        assert decode(bytes(data)).unknown_fields == '{"added":{"$":"Invented"}}'


async def rewrite_all(store: SqlStateStore) -> None:
    known = await store.runs.get(OWNER, "run_1")
    made = await store.conversations.get(OWNER, "conv_1")
    record = await store.identities.find(identity())
    tie = await store.identities.link(identity())
    assert known is not None
    assert made is not None
    assert record is not None
    assert tie is not None
    async with store.transaction() as transaction:
        transaction.save_run(known.replace(status="failed", finished_at=NOW))
        transaction.save_conversation(made.replace(metadata={"topic": "new"}))
        transaction.remember_identity(record.replace(version=record.version + 1), instead_of=record)
        transaction.add_link(tie.replace(claims={"a": 1}))


async def test_events_behind_one_that_a_newer_version_wrote_wait_for_it(base: Base) -> None:
    async with base.open() as store:
        for event_id in ("evt_1", "evt_2"):
            async with store.transaction() as transaction:
                transaction.accept(inbox_item(event_id))
    change(base, "inbox", NEWER["tag"], "event_id = 'evt_1'")
    columns = "event_id, holder, until, attempts, done_at, data"
    before = base.execute(f"SELECT {columns} FROM inbox ORDER BY number")
    async with base.open() as store:
        for _ in range(3):
            with pytest.raises(UnreadableRecordError):
                await store.inbox.claim("telegram", "chat", "host_old")
        # It is nobody's, as if it had not been tried, so that whoever can read it may take it up.
        assert base.execute(f"SELECT {columns} FROM inbox ORDER BY number") == before
        waits = await store.inbox.waiting("host_old")
        assert [(one.channel, one.conversation_id) for one in waits] == [("telegram", "chat")] * 2
        assert store.unreadable == 1


async def test_what_waits_is_seen_behind_many_that_can_not_be_read(base: Base) -> None:
    async with base.open() as store:
        for number in range(6):
            async with store.transaction() as transaction:
                transaction.accept(inbox_item(f"evt_{number}", chat=f"chat_{number}"))
    change(base, "inbox", NEWER["tag"], "event_id <> 'evt_5'")
    async with base.open() as store:
        seen, after = list[WaitingEvent](), 0
        while page := await store.inbox.waiting("host", after=after, limit=2):
            seen, after = [*seen, *page], page[-1].number
        assert seen[-1].conversation_id == "chat_5"
        item = await store.inbox.claim("telegram", "chat_5", "host")
        assert item is not None


async def test_a_long_name_of_an_event_that_can_not_be_read_finds_nothing(base: Base) -> None:
    async with base.open() as store, store.transaction() as transaction:
        transaction.accept(inbox_item("evt_1", chat="x" * 500))
    change(base, "inbox", NEWER["tag"])
    async with base.open() as store:
        ((channel, chat, number),) = await store.inbox.waiting("host")
        assert number > 0
        assert await store.inbox.claim(channel, chat, "host") is None


async def test_parts_behind_one_that_a_newer_version_wrote_wait_for_it(base: Base) -> None:
    async with base.open() as store:
        for number in range(3):
            async with store.transaction() as transaction:
                transaction.add_delivery(delivery(f"del_{number}"))
    change(base, "deliveries", NEWER["tag"], "delivery_id = 'del_1'")
    async with base.open() as store:
        first = await store.outbox.get("del_0")
        assert first is not None
        there = first.destination
        # Those before it go out.
        assert [one.delivery_id for one in await store.outbox.open(there)] == ["del_0"]
        async with store.transaction() as transaction:
            transaction.change_delivery(first.replace(status="accepted", ended_at=NOW))
        with pytest.raises(UnreadableRecordError):
            await store.outbox.open(there)
        # An operator sees the others, and how many there are.
        assert [one.delivery_id for one in await store.outbox.find()] == ["del_2", "del_0"]
        assert (store.unreadable, sum((await store.outbox.counts()).values())) == (1, 3)
        with pytest.raises(UnreadableRecordError):
            await store.outbox.get("del_1")


async def test_a_delivery_with_a_status_of_a_newer_version_was_sent(base: Base) -> None:
    async with base.open() as store, store.transaction() as transaction:
        transaction.add_delivery(delivery("del_0"))
        transaction.add_approval(question("apr_1"))
    base.execute("UPDATE deliveries SET status = 'paused'")
    base.execute("UPDATE approvals SET status = 'escalated'")
    async with base.open() as store:
        with pytest.raises(UnreadableRecordError, match="newer"):
            await store.outbox.open(delivery("del_0").destination)
        with pytest.raises(UnreadableRecordError):
            await store.approvals.get(OWNER, "apr_1")
        assert await store.outbox.find() == []


async def test_a_task_that_a_newer_version_wrote_is_left_to_it(base: Base) -> None:
    async with base.open() as store:
        await store.tasks.schedule(TASK)
        await store.tasks.schedule(TASK.replace(task_id="task_2"))
    change(base, "tasks", NEWER["registered"], "task_id = 'task_1'")
    columns = "status, due_at, attempts, holder, until, data"
    before = base.execute(f"SELECT {columns} FROM tasks WHERE task_id = 'task_1'")
    async with base.open() as store:
        for _ in range(2):
            due = await store.tasks.due(["mail"], NOW + 1, holder="host_old", limit=1)
            # One that can't be read takes no room from others.
            assert [one.task_id for one in due] in ([], ["task_2"])
        assert [one.task_id for one in due] == ["task_2"]
        assert await store.tasks.claim("task_1", "host_old", now=NOW) is None
        with pytest.raises(UnreadableRecordError):
            await store.tasks.get("task_1")
    assert base.execute(f"SELECT {columns} FROM tasks WHERE task_id = 'task_1'") == before


async def test_a_task_that_a_newer_version_scheduled_again_meanwhile_can_be_settled(base: Base) -> None:
    async with base.open() as store:
        await store.tasks.schedule(TASK)
        taken = await store.tasks.claim("task_1", "host_old", now=NOW)
        assert taken is not None
        change(base, "tasks", NEWER["registered"])
        assert await store.tasks.settle(taken, "succeeded", due_at=NOW, attempts=1) is None
    assert base.execute("SELECT status, holder FROM tasks") == [("succeeded", "")]


async def test_background_runs_that_a_newer_version_wrote_keep_none_from_the_others(base: Base) -> None:
    async with base.open() as store:
        for number in range(3):
            async with store.transaction() as transaction:
                transaction.queue_run(
                    run(f"run_{number}", status="queued", background=True),
                    job(f"run_{number}"),
                    most_waiting=9,
                    most_of_owner=9,
                )
    change(base, "background", NEWER["tag"], "run_id <> 'run_2'")
    columns = "run_id, holder, begun, cancelled, data"
    before = base.execute(f"SELECT {columns} FROM background WHERE run_id <> 'run_2' ORDER BY number")
    async with base.open() as store:
        # At the first look: where nobody else writes, there is no other.
        assert [one.key for one in await store.background.claim("host_old", limit=1)] == [(OWNER, "run_2")]
        fences = base.execute("SELECT fence FROM background ORDER BY number")
        # What it has met once it does not touch again.
        assert await store.background.claim("host_old", limit=9) == []
        assert base.execute("SELECT fence FROM background ORDER BY number") == fences
        known = await store.runs.get(OWNER, "run_0")
        assert known is not None
        assert known.status == "queued"
    assert base.execute(f"SELECT {columns} FROM background WHERE run_id <> 'run_2' ORDER BY number") == before


async def test_runs_that_are_left_to_others_are_not_claimed(base: Base) -> None:
    async with base.open() as store:
        async with store.transaction() as transaction:
            transaction.queue_run(run(status="queued", background=True), job("run_1"), most_waiting=9, most_of_owner=9)
        assert await store.background.claim("host", limit=9, skip=[(OWNER, "run_1"), (OWNER, "run_9")]) == []
        assert [one.key for one in await store.background.claim("host", limit=9, skip=[("x", "run_1")])] == [
            (OWNER, "run_1")
        ]


async def test_what_is_met_is_remembered_within_bounds(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.stores.sql.records._MAX_KNOWN", 2)
    monkeypatch.setattr("frontdesk.stores.sql.records._MAX_IGNORED", 2)
    async with base.open() as store:
        for number in range(5):
            await store.tasks.schedule(TASK.replace(task_id=f"task_{number}"))
    change(base, "tasks", NEWER["registered"])
    async with base.open() as store:
        for _ in range(2):
            await store.tasks.due(["mail"], NOW + 1, holder="h", limit=9)
        assert len(store._records._left) == 2
        assert len(store.tasks._left.condition()[1]) == 2
