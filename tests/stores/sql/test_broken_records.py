"""A record that can't be read is put aside with its data, and everything else goes on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.models.session import ForkPoint
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing import HostClient, serving
from frontdesk_testing.store_samples import (
    NOW,
    OTHER,
    OWNER,
    build_identity,
    build_last_seen,
    build_messages,
    build_name,
    conversation,
    conversation_item,
    delivery,
    grant,
    identity,
    inbox_item,
    keep_session,
    link,
    question,
    run,
    session,
    texts,
)
from tests.scenarios.cast import echo
from tests.stores.sql.bases import Base

BROKEN = b'{"v":1,"data":{"$":"Nothing'

READS: dict[str, Callable[[SqlStateStore], Awaitable[Any]]] = {
    "sessions": lambda store: store.sessions.get(OWNER, "ses_1"),
    "history": lambda store: store.sessions.history(OWNER, "ses_2"),
    "identities": lambda store: store.identities.find(identity()),
    "last_seen": lambda store: store.identities.last_seen(OWNER),
    "links": lambda store: store.identities.links(OWNER),
    "grants": lambda store: store.identities.grant("gra_1"),
    "runs": lambda store: store.runs.get(OWNER, "run_1"),
    "approvals": lambda store: store.approvals.get(OWNER, "apr_1"),
    "inbox": lambda store: store.inbox.next("telegram", "chat"),
    "deliveries": lambda store: store.outbox.get("del_1"),
    "conversations": lambda store: store.conversations.get(OWNER, "conv_1"),
    "items": lambda store: store.conversations.items(OWNER, "conv_1"),
}
"""How a record of each table is read."""


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


async def keep_one_of_each(store: SqlStateStore, *, asks: bool = True) -> None:
    await store.sessions.reserve(build_name(), "ses_1")
    await keep_session(store, session(key="mine"))
    await keep_session(store, session("ses_2"), build_messages("one"))
    await store.identities.remember(build_identity(identity()))
    async with store.transaction() as transaction:
        transaction.see(build_last_seen(identity()))
        transaction.add_link(link(identity()))
        transaction.add_grant(grant())
        transaction.save_run(run())
        if asks:
            transaction.add_approval(question())
        transaction.accept(inbox_item())
        transaction.add_delivery(delivery())
        transaction.save_conversation(conversation())
        transaction.add_items(OWNER, [conversation_item("item_1")])


def spoil(base: Base, table: str, data: bytes = BROKEN) -> None:
    only = " WHERE session_id <> 'ses_2'" if table == "sessions" else ""
    base.execute(f"UPDATE {table} SET data = ?{only}", (data,))


def set_aside(base: Base) -> list[tuple[str, bytes]]:
    return [(kind, bytes(data)) for kind, data in base.execute("SELECT kind, data FROM set_aside ORDER BY number")]


async def store_spoiled(base: Base, table: str, data: bytes = BROKEN) -> None:
    """A store with one record of each kind, in which those of a table are broken while nobody has it open."""
    async with base.open() as store:
        await keep_one_of_each(store)
    spoil(base, table, data)


@pytest.mark.parametrize("table", READS)
async def test_a_broken_record_is_put_aside_once(base: Base, table: str, caplog: pytest.LogCaptureFixture) -> None:
    await store_spoiled(base, table)
    async with base.open() as store:
        for _ in range(2):
            assert not await READS[table](store)
        assert (store.set_aside, set_aside(base)) == (1, [(table, BROKEN)])
        assert [one for one in caplog.records if one.levelno == logging.ERROR and table in one.getMessage()]
        assert not base.execute(f"SELECT data FROM {table} WHERE data = ?", (BROKEN,))
        for other, read in READS.items():
            assert other in (table, "history", "items") or await read(store), other
        # What is missing can be written again.
        await keep_one_of_each(store, asks=table == "approvals")
        assert await READS[table](store)


async def test_two_who_read_it_at_once_put_it_aside_once(base: Base) -> None:
    await store_spoiled(base, "runs")
    async with base.open() as store:
        assert await asyncio.gather(*(store.runs.get(OWNER, "run_1") for _ in range(20))) == [None] * 20
        assert store.set_aside == 1
    assert set_aside(base) == [("runs", BROKEN)]


async def test_a_good_record_that_took_the_place_of_a_broken_one_stays(base: Base) -> None:
    await store_spoiled(base, "runs")
    async with base.open() as store:
        rows = await store._engine.read("SELECT data FROM runs")
        async with store.transaction() as transaction:
            transaction.save_run(run(status="failed"))
        place = ("runs", ("run_id", "owner"), ("run_1", OWNER))
        assert await store._records.read("runs", place, rows[0][0]) is None
        assert await store.runs.get(OWNER, "run_1") == run(status="failed")
        assert (store.set_aside, set_aside(base)) == (0, [])


async def test_the_message_after_a_broken_one_was_not_seen(base: Base) -> None:
    # The number of the row that was put aside was given out again, and counted as read.
    async with base.open() as store:
        for text in ("one", "two"):
            await keep_session(store, session(), build_messages(text))
    base.execute("UPDATE history SET data = ? WHERE number = (SELECT MAX(number) FROM history)", (BROKEN,))
    async with base.open() as store:
        assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one"]
        await keep_session(store, session(), build_messages("three"))
        assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one", "three"]


async def test_a_large_history_with_a_broken_record_keeps_the_others(base: Base) -> None:
    async with base.open() as store:
        for text in ("one", "two", "three"):
            await keep_session(store, session(), build_messages(text * 20_000))
    base.execute("UPDATE history SET data = ? WHERE number = (SELECT MIN(number) + 1 FROM history)", (BROKEN,))
    async with base.open() as store:
        found = texts(await store.sessions.history(OWNER, "ses_1"))
        assert found == ["one" * 20_000, "three" * 20_000]
    assert set_aside(base) == [("history", BROKEN)]


async def test_a_broken_event_held_up_those_behind_it(base: Base) -> None:
    async with base.open() as store:
        for event_id in ("evt_1", "evt_2", "evt_3"):
            async with store.transaction() as transaction:
                transaction.accept(inbox_item(event_id))
    base.execute("UPDATE inbox SET data = ? WHERE event_id <> 'evt_3'", (BROKEN,))
    async with base.open() as store:
        assert {one.conversation_id for one in await store.inbox.waiting("host")} == {"chat"}
        item = await store.inbox.next("telegram", "chat")
        assert item is not None
        assert item.event_id == "evt_3"
        assert store.set_aside == 2


async def test_a_person_whose_key_was_broken_got_another_one_each_time(base: Base) -> None:
    await store_spoiled(base, "identities")
    async with base.open() as store:
        kept = await store.identities.remember(build_identity(identity(), OTHER))
        assert kept == build_identity(identity(), OTHER)
        assert await store.identities.remember(build_identity(identity(), "third")) == kept
        assert await store.identities.find(identity()) == kept


async def test_a_name_whose_session_is_broken_gets_a_new_one(base: Base) -> None:
    async with base.open() as store:
        await store.sessions.reserve(build_name(), "ses_1")
        await keep_session(store, session(key="mine", messages=1), build_messages("before"))
        await keep_session(
            store, session("branch", parent=ForkPoint(session_id="ses_1", messages=1)), build_messages("b")
        )
    base.execute("UPDATE sessions SET data = ? WHERE session_id = 'ses_1'", (BROKEN,))
    async with base.open() as store:
        assert await store.sessions.find(build_name()) is None
        # The messages of the broken one stay where they are; they must not turn up in the new one.
        assert await store.sessions.reserve(build_name(), "ses_new") == "ses_new"
        await keep_session(store, session("ses_new", key="mine"), build_messages("after"))
        assert texts(await store.sessions.history(OWNER, "ses_new")) == ["after"]
        assert texts(await store.sessions.history(OWNER, "branch"))[-1] == "b"


async def test_a_host_goes_on_with_a_named_session_that_is_broken(base: Base, caplog: pytest.LogCaptureFixture) -> None:
    def host() -> AgentFrameworkHost:
        return AgentFrameworkHost(echo, channels=[InvocationsChannel()], store=base.store())

    async def ask(client: HostClient, text: str) -> dict[str, Any]:
        return await client.invoke(text, session_id="mine")

    async with serving(host()) as client:
        first = await ask(client, "one")
    (broken,) = base.execute("SELECT session_id FROM sessions")
    spoil(base, "sessions")
    async with serving(host()) as client:
        again = [await ask(client, text) for text in ("two", "three")]
        assert first["text"] == "you said one"
        assert [one["text"] for one in again] == ["you said two", "you said three"]
    assert ("sessions", BROKEN) in set_aside(base)
    assert "record cannot be decoded, set aside: table=sessions" in caplog.text
    ((session_id, messages),) = base.execute(
        "SELECT s.session_id, COUNT(*) FROM sessions s JOIN history h ON h.session_id = s.session_id GROUP BY 1"
    )
    assert (session_id, messages) != broken
    assert base.execute("SELECT session_id, at FROM set_aside, names LIMIT 1")[0] == (session_id, NOW)
