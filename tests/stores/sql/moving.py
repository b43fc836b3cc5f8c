"""Places to move state between, and state to move."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from frontdesk.models.approval import claim_key
from frontdesk.models.delivery import Attempt
from frontdesk.models.file import compute_file_id
from frontdesk.models.identity import PushGroup
from frontdesk.models.link import Grant
from frontdesk.models.operations import TaskRecord
from frontdesk.models.session import ForkPoint, SessionName
from frontdesk.serialization.codec import encode
from frontdesk.stores.sql.migrations.schema import VERSION
from frontdesk.stores.sql.move.endpoints import MoveEndpoint, SqliteEnd, read_shapes
from frontdesk.stores.sql.move.postgres import PostgresEnd
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import (
    NOW,
    ODD_KEYS,
    OWNER,
    VALUE_PLACE,
    audit_line,
    build_identity,
    build_last_seen,
    build_messages,
    build_name,
    build_place,
    build_value,
    conversation,
    conversation_item,
    delivery,
    event,
    identity,
    inbox_item,
    job,
    keep_session,
    link,
    live_answer,
    move_conversation,
    pictures,
    question,
    run,
    session,
    terms,
    texts,
    vote,
    watcher,
)

SESSIONS = len(ODD_KEYS) + 3
TRIED = (Attempt(at=NOW, code="push_failed"),)
TASK = TaskRecord(task_id="task_1", name="mail", payload={"to": "ann\0"}, due_at=NOW + 5)
GRANT = Grant(grant_id="gra_1", identity=identity(), expires_at=NOW + 60, data={"code": "123"})


class Place:
    """Somewhere to keep state, and the ways to it."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._sqlite = where.endswith(".db")

    def store(self) -> SqlStateStore:
        clock = FakeClock(NOW)
        return (
            SqliteStateStore(self.where, clock=clock) if self._sqlite else PostgresStateStore(self.where, clock=clock)
        )

    def end(self) -> MoveEndpoint:
        return SqliteEnd(Path(self.where)) if self._sqlite else PostgresEnd(self.where)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if self._sqlite:
            with closing(sqlite3.connect(self.where, isolation_level=None)) as connection:
                return connection.execute(sql, values).fetchall()
        with psycopg.connect(self.where, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("?", "%s"), values)  # pyright: ignore[reportArgumentType]
            return cursor.fetchall() if cursor.description else []

    def schema(self) -> list[Any]:
        """All that the tables are made of."""
        if self._sqlite:
            return self.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
        columns = "SELECT table_name, column_name, data_type, is_nullable, identity_generation"
        return [
            *self.execute(f"{columns} FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"),
            *self.execute("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"),
        ]

    def numbers(self) -> dict[str, int]:
        """How many rows are in each table."""
        count = "SELECT COUNT(*) FROM"
        return {shape.name: self.execute(f"{count} {shape.name}")[0][0] for shape in read_shapes(VERSION)}

    @property
    def is_there(self) -> bool:
        """Whether there is a file, or a table."""
        return Path(self.where).exists() if self._sqlite else bool(self.schema())


async def fill(place: Place) -> None:
    """Leaves a record of every kind behind."""
    store = place.store()
    await store.open()
    await keep_session(store, session("ses_1", state={"seen": 1}, messages=2), build_messages("one", "two"))
    await keep_session(
        store, session("ses_2", parent=ForkPoint(session_id="ses_1", messages=1), messages=2), build_messages("three")
    )
    for number, odd in enumerate(ODD_KEYS):
        await store.sessions.reserve(build_name(odd), f"ses_odd_{number}")
        await keep_session(store, session(f"ses_odd_{number}"), build_messages(odd))
    async with store.transaction() as transaction:
        transaction.name_session(SessionName(owner=OWNER, kind="tracked"), "ses_2")
        transaction.name_session(SessionName(owner=OWNER, kind="tracked"), "ses_1")
        transaction.title_session(OWNER, "ses_1", "one\0two")
        for native_id in ("1", "2"):
            transaction.remember_identity(build_identity(identity(native_id, language="de")))
            transaction.add_link(link(identity(native_id)))
        transaction.keep_reference(identity("1"), {"url": "u\0"})
        transaction.keep_group(identity("1"), PushGroup(conversation_id="g"))
        transaction.see(build_last_seen(identity("2")))
        transaction.add_link(
            link(identity("3")).replace(subject="s", previous_key="k", via="lnk_1", claims={"a": ["b"]})
        )
        transaction.add_grant(GRANT)
        transaction.save_run(run("run_1", background=True, finished_at=NOW))
        transaction.save_run(run("run_2"))
        transaction.add_watcher(watcher(), most_of_owner=9, most_of_chain=9)
        transaction.queue_run(
            run("run_3", status="queued", background=True), job("run_3"), most_waiting=9, most_of_owner=9
        )
        transaction.add_events([event(1), event(2)])
        for number in range(3):
            transaction.add_approval(question(f"apr_{number}"))
        transaction.decide_approval(OWNER, "apr_0", "rejected", at=NOW, reason="no\0\ud800")
        transaction.add_approval(question("apr_4", owner="key_other", rule=terms()))
        transaction.add_approval(question("apr_3", target_request_id="q\0", expires_at=NOW + 60))
        transaction.add_vote(vote(approval_id="apr_0", approved=False))
        transaction.add_place(build_place("msg\0", "apr_0"))
        transaction.add_audit(audit_line("rejected", "apr_0"))
        for number in range(3):
            transaction.accept(inbox_item(f"evt_{number}"))
        transaction.finish(inbox_item("evt_0"))
        transaction.add_delivery(delivery("del_1"))
        transaction.add_delivery(delivery("del_2", due_at=NOW + 5))
        transaction.change_delivery(
            delivery("del_2", status="accepted", receipt="r\0", attempts=2, ended_at=NOW, history=TRIED)
        )
        transaction.save_conversation(conversation(topic="rooms"))
        transaction.add_items(OWNER, [conversation_item("a"), conversation_item("b")])
        transaction.save_checkpoint("ses_1", "chk_1", b"paused\x00here")
    await keep_session(store, session("ses_pictured", messages=1), pictures("a"))
    await store.files.put(OWNER, b"\x00put", media_type="image/png", name="cat\0.png")
    await store.identities.secret("linker", b"\x00secret")
    await store.tasks.schedule(TASK)
    place.execute("INSERT INTO backfills (name, position, done) VALUES ('shades', '5', 1)")
    assert await store.nonces.use("hmac", "n\0", now=NOW, expires_at=NOW + 600)
    assert await store.leaderships.claim("chat", "poll\0er", "host") is not None
    assert await move_conversation(store, "old\0", "new\0")
    await store.channel_values.set(VALUE_PLACE, build_value(expires_at=NOW + 60))
    async with store.transaction() as transaction:
        transaction.save_live(live_answer(place="odd\0", state="open", handles=("h\0",)))
    place.execute("UPDATE runs SET data = ? WHERE run_id = 'run_2'", (b"torn",))
    assert await store.runs.get(OWNER, "run_2") is None
    await store.close()


async def picture(store: SqlStateStore) -> list[Any]:
    """Everything that can be read."""
    sessions = ["ses_1", "ses_2", *(f"ses_odd_{number}" for number in range(len(ODD_KEYS)))]
    return [
        [await store.sessions.get(OWNER, one) for one in sessions],
        [texts(await store.sessions.history(OWNER, one)) for one in sessions],
        [await store.sessions.find(build_name(odd)) for odd in ODD_KEYS],
        await store.sessions.find(SessionName(owner=OWNER, kind="tracked")),
        await store.sessions.past(SessionName(owner=OWNER, kind="tracked")),
        await store.sessions.titles(OWNER, sessions),
        await store.identities.find(identity("1")),
        await store.identities.reach(identity("1")),
        await store.identities.of_owner(OWNER),
        await store.identities.last_seen(OWNER),
        await store.identities.links(OWNER),
        await store.identities.linked_as("s"),
        await store.identities.all_links(),
        await store.identities.holders([claim_key("a", "b") or ""], channels=[identity("3").channel], limit=5),
        await store.identities.secret("linker", b"new"),
        await store.identities.grant("gra_1"),
        await store.runs.get(OWNER, "run_1"),
        await store.runs.events(OWNER, "run_1"),
        await store.background.get(OWNER, "run_3"),
        await store.approvals.of_session(OWNER, "ses_1"),
        await store.approvals.pending(OWNER),
        await store.approvals.asked_as(OWNER, "q\0"),
        await store.approvals.waiting_for(terms().keys),
        await store.approvals.votes(OWNER, "apr_0"),
        await store.approvals.places(OWNER, "apr_0"),
        await store.audit.lines(),
        await store.inbox.waiting("host"),
        await store.inbox.next("telegram", "chat"),
        [await store.outbox.get(one) for one in ("del_1", "del_2")],
        await store.outbox.find(),
        await store.tasks.get("task_1"),
        await store.conversations.get(OWNER, "conv_1"),
        await store.conversations.items(OWNER, "conv_1"),
        await store.checkpoints.get("ses_1", "chk_1"),
        await store.nonces.use("hmac", "n\0", now=NOW, expires_at=NOW + 600),
        await store.conversation_aliases.find("chat", "new\0"),
        await store.conversation_aliases.version("chat"),
        await store.channel_values.get(VALUE_PLACE, now=NOW),
        await store.live.get("run_1", "telegram", "odd\0"),
        encode(list(await store.sessions.history(OWNER, "ses_pictured"))),
        await store.files.get(OWNER, compute_file_id(OWNER, b"\x00put")),
        await store._engine.read("SELECT channel, name, fence FROM leaderships"),
    ]


async def read_picture(place: Place) -> list[Any]:
    store = place.store()
    await store.open()
    try:
        return await picture(store)
    finally:
        await store.close()
