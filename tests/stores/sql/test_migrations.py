"""A store of any earlier version opens and keeps what it has; one of a later version is left alone."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from frontdesk.errors import StoreError
from frontdesk.models.approval import Resumption
from frontdesk.models.channel_storage import SealedValue
from frontdesk.models.conversation import ConversationAlias
from frontdesk.models.delivery import Attempt
from frontdesk.models.file import StoredFile, compute_file_id
from frontdesk.models.identity import Caller, PushGroup, Reach
from frontdesk.models.operations import TaskRecord
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import RunFilter
from frontdesk.models.session import SessionName
from frontdesk.serialization.codec import encode
from frontdesk.stores.sql.migrations import schema
from frontdesk.stores.sql.migrations.schema import STEPS, VERSION, NewerStoreError
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing.store_samples import (
    NOW,
    OWNER,
    VALUE_PLACE,
    audit_line,
    build_identity,
    build_last_seen,
    build_messages,
    build_name,
    build_place,
    conversation,
    conversation_item,
    delivery,
    event,
    grant,
    identity,
    inbox_item,
    job,
    keep_session,
    link,
    live_answer,
    question,
    run,
    session,
    texts,
    vote,
)
from tests.stores.sql.bases import Base

GOLDEN: dict[str, dict[str, list[dict[str, Any]]]] = json.loads(
    Path(__file__).with_name("golden_rows.json").read_text("utf-8")
)
"""For each version, rows of the tables that came with it, as it has written them."""
BLOBS = {
    "current_name",
    "data",
    "first_name",
    "handles",
    "history",
    "next_name",
    "push_group",
    "reason",
    "receipt",
    "reference",
    "replaces",
    "title",
}
ALSO_BLOBS = {("deliveries", "error"), ("tasks", "error"), ("files", "media_type"), ("files", "name")}
QUEUED = delivery(
    "del_2",
    answer_id="ans_1",
    conversation_id="chat",
    status="dead",
    attempts=3,
    queued_at=NOW,
    ended_at=NOW,
    fence=6,
    number=4,
    error="blocked",
    history=(Attempt(at=NOW, code="blocked"),),
)
SETTLED = delivery(
    "del_3",
    answer_id="ans_2",
    conversation_id="chat",
    attempts=1,
    fence=2,
    number=5,
    action="settle",
    replaces='{"id":"msg_1"}',
)
LOST = live_answer("run_9", place="chat", state="lost", handles=("msg_1", "msg_2"), fence=2)
LIVE_ANSWERS = 17
"""The version since which a delivery can change a message."""
OUR_IDS = 18
"""The version since which approvals have ids of the host's."""
RESUMED = Resumption(approval_id="apr_4", owner=OWNER)
CONTROL_EVENTS = 16
"""The version since which an event tells its kind, and whether it was cancelled."""
SESSION_TITLES = 19
"""The version since which sessions have titles."""
WITH_FILES = 20
"""The version since which large data of records lies in files."""
OUTCOMES = 21
"""The version since which a run that has ended tells its outcome beside its record."""
RUN_CHAINS = 27
"""The version since which the runs of a chain are found by their first run."""
NUMBERED = {"approvals", "history", "inbox", "items"}
TASK = TaskRecord(
    task_id="task_1", name="mail", payload={"to": "ann"}, due_at=NOW, attempts=2, fence=5, error="OSError"
)


def fill(base: Base, version: int) -> None:
    """Puts the rows of a version and of those before it into its tables."""
    base.transact([statement for number in range(1, version + 1) for statement in golden(str(number))])


def golden(version: str) -> Iterator[tuple[str, Sequence[Any]]]:
    for table, rows in GOLDEN.get(version, {}).items():
        for row in rows:
            given = {name: value for name, value in row.items() if not (name == "number" and table in NUMBERED)}
            blobs = {name for name in given if name in BLOBS or (table, name) in ALSO_BLOBS}
            values = [value.encode() if name in blobs else value for name, value in given.items()]
            marks = ", ".join("?" for _ in given)
            yield f"INSERT INTO {table} ({', '.join(given)}) VALUES ({marks})", values


async def assert_all_is_read(store: SqlStateStore, version: int) -> None:
    mine = session(key="mine", turns=1, messages=2, state={"a": [1]})
    assert await store.sessions.find(build_name()) == await store.sessions.get(OWNER, "ses_1") == mine
    assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one", "two"]
    assert texts(await store.sessions.history(OWNER, "ses_2")) == ["one", "branch"]
    assert await store.identities.find(identity()) == build_identity(identity(name="Ann"))
    assert await store.identities.last_seen(OWNER) == build_last_seen(identity())
    assert list(await store.identities.links(OWNER)) == [link(identity())]
    assert encode(await store.runs.get(OWNER, "run_1")) == encode(
        run(background=True, finished_at=NOW, input=build_messages("hi"))
    )
    assert list(await store.runs.events(OWNER, "run_1")) == [event(1), event(2)]
    decided = question("apr_2", status="rejected", decided_at=NOW, reason="no")
    assert encode(list(await store.approvals.of_session(OWNER, "ses_1"))) == encode([question(), decided])
    taken = question("apr_3", session_id="ses_2", status="approved", decided_at=NOW, attempt="att_1", begun=False)
    assert encode(list(await store.approvals.of_session(OWNER, "ses_2"))) == encode([taken] if version >= 11 else [])
    ours = question(
        "apr_4",
        session_id="ses_4",
        target_request_id="q",
        requester=Caller(identity=identity()),
        resume=ChannelRequest(channel="telegram", operation="approval", conversation_id="chat"),
        schema_digest="s",
        expires_at=NOW + 60,
        request=question("q").request,
    )
    since = version >= OUR_IDS
    assert encode(list(await store.approvals.of_session(OWNER, "ses_4"))) == encode([ours] if since else [])
    assert encode(list(await store.approvals.asked_as(OWNER, "q"))) == encode([ours] if since else [])
    assert encode(list(await store.approvals.asked_as(OWNER, "apr_1"))) == encode([question()])
    assert list(await store.approvals.votes(OWNER, "apr_4")) == ([vote(approval_id="apr_4")] if since else [])
    assert list(await store.approvals.places(OWNER, "apr_4")) == ([build_place(approval_id="apr_4")] if since else [])
    lines = [line.replace(number=0) for line in await store.audit.lines(subject="apr_4")]
    assert lines == ([audit_line(subject="apr_4")] if since else [])
    resumed = await store.inbox.next("telegram", "apr_4", kind="resume")
    assert (None if resumed is None else resumed.payload) == (RESUMED if since else None)
    assert await store.inbox.next("telegram", "chat") == inbox_item().replace(number=1)
    busy = [await store.inbox.next("telegram", "busy", kind=kind) for kind in ("turn", "control")]
    turn = inbox_item("evt_3", chat="busy").replace(number=3, fence=1, attempts=1, run_id="run_3", cancelled="ses_1")
    turn = turn.replace(not_before=NOW + 1, due_by=NOW + 5)
    control = inbox_item("evt_4", chat="busy", kind="control").replace(number=4, run_id="run_4")
    assert busy == ([turn, control] if version >= CONTROL_EVENTS else [None, None])
    assert await store.outbox.get("del_1") == delivery(attempts=1, error="e")
    assert await store.outbox.get("del_2") == (QUEUED if version >= 7 else None)
    assert await store.outbox.get("del_3") == (SETTLED if version >= LIVE_ANSWERS else None)
    assert list(await store.live.lost()) == ([LOST] if version >= LIVE_ANSWERS else [])
    assert await store.conversations.get(OWNER, "conv_1") == conversation(topic="t")
    items = await store.conversations.items(OWNER, "conv_1")
    assert [one.replace(number=0) for one in items] == [conversation_item("item_1")]
    assert await store.identities.grant("gra_1") == (grant(state="s") if version >= 2 else None)
    assert await store.tasks.get("task_1") == (TASK if version >= 8 else None)
    assert await store.checkpoints.get("ses_1", "chk_1") == (b'{"at": 1}' if version >= 3 else None)
    assert await store.background.get(OWNER, "run_3") == (job("run_3") if version >= 5 else None)
    linked = link(identity("2"), key="bob").replace(subject="s", claims={"a": [1]}, previous_key="b", via="lnk_3")
    assert await store.identities.linked_as("s") == (linked if version >= 6 else None)
    assert await store.identities.secret("linker", b"new") == (b"old" if version >= 6 else b"new")
    third = build_identity(identity("3"), "carol")
    assert await store.identities.find(identity("3")) == (third if version >= 13 else None)
    fourth = Reach(reference={"url": "u"}, group=PushGroup(conversation_id="g", reference={"thread": "7"}))
    assert await store.identities.reach(identity("4")) == (fourth if version >= 14 else Reach())
    past = await store.sessions.past(SessionName(owner=OWNER, kind="tracked"))
    assert [one.session_id for one in past] == (["ses_1"] if version >= 14 else [])
    titles = {"ses_1": "Holiday plans"} if version >= SESSION_TITLES else {}
    assert await store.sessions.titles(OWNER, ["ses_1"]) == titles
    if version >= 10:
        assert not await store.nonces.use("hmac", "0f", now=NOW, expires_at=NOW + 600)
    if version >= 15:
        led = await store.leaderships.claim("telegram", "poller", "host_new")
        assert led is not None
        assert led.fence > 3
        alias = await store.conversation_aliases.find("chat", "old")
        assert alias == ConversationAlias(name="old", first_name="old", current_name="new", next_name="new")
        assert await store.conversation_aliases.version("chat") == 1
        kept = await store.channel_values.get(VALUE_PLACE, now=NOW)
        assert kept == SealedValue(
            version="val_1", key_id="", data=b'{"v":1,"data":{"token":"t"}}', expires_at=NOW + 60
        )
    if version >= WITH_FILES:
        pictured = await store.runs.get(OWNER, "run_5")
        assert pictured is not None
        assert pictured.input == ["data:text/plain;base64,Z29sZA=="]
        file = StoredFile(file_id=compute_file_id(OWNER, b"gold"), media_type="text/plain", name="n", size=4)
        assert await store.files.get(OWNER, file.file_id) == (file, b"gold")
    failed = await store.ledger.rows("runs", by={"status": "failed"})
    ended = [row.columns["run_id"] for row in failed if row.record and row.record["status"] == "failed"]
    assert ended == (["run_6"] if version >= OUTCOMES else [])
    # Those of earlier versions are looked at too, as nothing beside the record tells how they ended.
    assert "run_1" in [row.columns["run_id"] for row in failed]
    chained = await store.runs.newest_of_chain("chained", "run_27")
    assert (None if chained is None else chained.run_id) == ("run_28" if version >= RUN_CHAINS else None)
    watching = await store.watchers.of_chain("chained", "run_27", now=NOW)
    assert [one.watcher_id for one in watching] == (["watch_27"] if version >= RUN_CHAINS else [])
    # Runs of earlier versions are listed too, and found by what is only in their records.
    for where in (RunFilter(), RunFilter(channel="web", status="completed")):
        listed = await store.runs.page(OWNER, where)
        assert "run_1" in [one.run_id for one in listed.runs]
    assert store.set_aside == 0


async def assert_it_works(store: SqlStateStore) -> None:
    await keep_session(store, session(), build_messages("three"))
    assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one", "two", "three"]
    async with store.transaction() as transaction:
        transaction.add_grant(grant("gra_new"))
        transaction.save_checkpoint("ses_1", "chk_new", b"new")
        transaction.add_items(OWNER, [conversation_item("item_2")])
    assert await store.identities.grant("gra_new") is not None
    assert await store.checkpoints.get("ses_1", "chk_new") == b"new"
    assert [one.item_id for one in await store.conversations.items(OWNER, "conv_1")] == ["item_1", "item_2"]


def test_every_table_has_a_golden_row() -> None:
    made = {statement.split()[2] for step in STEPS for statement in step if statement.startswith("CREATE TABLE")}
    # What is in these is not read again by another process than the one that wrote it.
    assert made - {"leases", "set_aside"} == {table for tables in GOLDEN.values() for table in tables}


@pytest.mark.parametrize("version", range(1, VERSION + 1))
async def test_a_store_of_an_earlier_version_is_brought_up_to_date(base: Base, version: int) -> None:
    base.build(version)
    fill(base, version)
    for _ in range(2):
        async with base.open() as store:
            await assert_all_is_read(store, version)
    assert base.version() == VERSION
    async with base.open() as store:
        await assert_it_works(store)


async def test_a_migrated_store_is_made_of_the_same_as_a_new_one(base: Base) -> None:
    base.build(1)
    async with base.open():
        pass
    grown = base.shape()
    base.clear()
    async with base.open():
        pass
    assert base.shape() == grown


async def test_a_newer_store_is_refused_and_left_as_it_is(base: Base) -> None:
    base.build(VERSION)
    fill(base, VERSION)
    base.execute("INSERT INTO frontdesk_schema (version) VALUES (?)", (VERSION + 1,))
    before = base.tables()
    store = base.store()
    with pytest.raises(
        NewerStoreError, match=f"version {VERSION + 1}, and this version of Frontdesk knows {VERSION} at"
    ):
        await store.open()
    await store.close()
    assert base.tables() == before


BROKEN = ("CREATE TABLE later (x TEXT)", "INSERT INTO later VALUES ('half')", "CREATE TABLE later (x TEXT)")


@pytest.mark.parametrize("version", range(VERSION + 1))
async def test_a_step_that_fails_half_way_leaves_the_earlier_version(
    base: Base, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version:
        base.build(version)
        fill(base, version)
    before = base.tables()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", (*STEPS, BROKEN))
        patch.setattr(schema, "VERSION", VERSION + 1)
        store = base.store()
        with pytest.raises(StoreError, match="can't be opened"):
            await store.open()
        await store.close()
    assert base.tables() == before
    async with base.open() as store:
        assert (await store.sessions.get(OWNER, "ses_1") is not None) is (version > 0)


async def test_hosts_that_open_an_empty_database_at_once_all_come_up(postgres: str) -> None:
    base = Base("postgres", postgres)
    stores = [base.store() for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    for number, store in enumerate(stores):
        await keep_session(store, session(f"ses_{number}"))
    assert all([await stores[0].sessions.get(OWNER, f"ses_{number}") for number in range(6)])
    await asyncio.gather(*(store.close() for store in stores))
    assert base.execute("SELECT version FROM frontdesk_schema ORDER BY 1") == [(n,) for n in range(1, VERSION + 1)]
