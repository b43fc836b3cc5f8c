"""What has expired is dropped, in small pieces; what waits for somebody is not."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.models.operations import Expiry, TaskRecord
from frontdesk.models.session import ForkPoint
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk.stores.sql.sweeper import BATCH_ROWS
from frontdesk.stores.sql.writes import Do, Op
from frontdesk_testing import FakeClock, serving
from frontdesk_testing.store_samples import (
    NOW,
    OWNER,
    build_last_seen,
    build_messages,
    build_name,
    conversation,
    conversation_item,
    delivery,
    event,
    grant,
    identity,
    inbox_item,
    keep_session,
    question,
    run,
    session,
)
from tests.scenarios.cast import echo
from tests.stores.sql.bases import Base

NEVER = Expiry(
    continuations=None,
    runs=None,
    grants=None,
    last_seen=None,
    approvals=None,
    pending_approvals=None,
    inbox=None,
    deliveries=None,
    tasks=None,
    sessions=None,
    conversations=None,
    identities=None,
    set_aside=None,
    files=None,
)
KINDS = {
    "continuations": ("runs", "run_background"),
    "runs": ("runs", "run_request"),
    "last_seen": ("last_seen", OWNER),
    "approvals": ("approvals", "apr_decided"),
    "inbox": ("inbox", "evt_done"),
    "deliveries": ("deliveries", "del_dead"),
    "tasks": ("tasks", "task_done"),
    "sessions": ("sessions", "ses_1"),
    "conversations": ("conversations", "conv_1"),
    "set_aside": ("set_aside", "run_torn"),
}
"""The record that each kind of expiry drops."""
COLUMNS = {
    "runs": "run_id",
    "last_seen": "isolation_key",
    "approvals": "approval_id",
    "inbox": "event_id",
    "deliveries": "delivery_id",
    "sessions": "session_id",
    "grants": "grant_id",
    "tasks": "task_id",
    "conversations": "conversation_id",
    "set_aside": "name",
}


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


@asynccontextmanager
async def quiet(base: Base, **settings: Any) -> AsyncIterator[SqlStateStore]:
    """A store that is swept only when it is told to."""
    async with base.open(**settings) as store:
        await store._sweep.stop()
        yield store


async def keep_all(store: SqlStateStore) -> None:
    """For each kind, one that comes to its end now and one that waits."""
    await store.sessions.reserve(build_name(), "ses_1")
    await keep_session(store, session(key="mine"), build_messages("one"))
    await keep_session(store, session("ses_asked"), build_messages("asked"))
    async with store.transaction() as transaction:
        transaction.save_checkpoint("ses_1", "chk_1", b"data")
        transaction.see(build_last_seen(identity()))
        transaction.add_grant(grant(expires_at=NOW + 10))
        transaction.save_run(run("run_request", finished_at=NOW))
        transaction.save_run(run("run_background", finished_at=NOW, background=True))
        transaction.save_run(run("run_going", status="running"))
        transaction.save_run(run("run_queued", status="queued", background=True))
        transaction.add_events([event(1, "run_background"), event(2, "run_background"), event(1, "run_queued")])
        transaction.add_approval(question("apr_decided", session_id="ses_asked"))
        transaction.add_approval(question("apr_waits", session_id="ses_asked"))
        transaction.accept(inbox_item("evt_done"))
        transaction.accept(inbox_item("evt_waits"))
        transaction.add_delivery(delivery("del_dead", status="dead", ended_at=NOW))
        for status in ("pending", "sending", "unknown"):
            transaction.add_delivery(delivery(f"del_{status}", status=status))
    async with store.transaction() as transaction:
        transaction.decide_approval(OWNER, "apr_decided", "approved", at=NOW)
        transaction.finish(inbox_item("evt_done"))
    for task_id in ("task_done", "task_waits"):
        await store.tasks.schedule(TaskRecord(task_id=task_id, name="mail", payload={}, due_at=NOW))
    assert await store.tasks.cancel("task_done")
    async with store.transaction() as transaction:
        transaction.save_conversation(conversation())
        transaction.add_items(OWNER, [conversation_item("a"), conversation_item("b")])
    torn = "INSERT INTO set_aside (kind, name, at, error, data) VALUES ('runs', 'run_torn', ?, 'not JSON', ?)"
    await store._engine.write([Do(torn, (NOW, b"torn"))])


def list_kept(base: Base) -> dict[str, set[str]]:
    return {
        table: {name for (name,) in base.execute(f"SELECT {column} FROM {table}")} for table, column in COLUMNS.items()
    }


def counts(base: Base, *tables: str) -> list[int]:
    return [base.execute(f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables]


def minus(everything: dict[str, set[str]], table: str, name: str) -> dict[str, set[str]]:
    return {**everything, table: everything[table] - {name}}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_record_is_dropped_when_its_time_has_come_and_not_before(base: Base, kind: str) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(**{kind: 100.0}), clock=clock) as store:
        await keep_all(store)
        before = list_kept(base)
        assert KINDS[kind][1] in before[KINDS[kind][0]]
        for seconds, dropped in ((0, 0), (100, 0), (1, 1), (10**9, 0)):
            clock.advance(seconds)
            assert await store._sweep.once() == dropped
        assert list_kept(base) == minus(before, *KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
async def test_one_look_is_enough_where_there_is_little(base: Base, kind: str) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(**{kind: 100.0}), clock=clock) as store:
        await keep_all(store)
        before = list_kept(base)
        clock.advance(101)
        assert await store._sweep.look() == 1
        assert list_kept(base) == minus(before, *KINDS[kind])


async def test_a_grant_is_dropped_when_it_says_so(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(grants=900.0), clock=clock) as store:
        await keep_all(store)
        before = list_kept(base)
        for seconds, dropped in ((10, 0), (1, 1)):
            clock.advance(seconds)
            assert await store._sweep.once() == dropped
        assert list_kept(base) == minus(before, "grants", "gra_1")


async def test_no_grant_is_kept_longer_than_grants_are(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(grants=60.0), clock=clock) as store:
        async with store.transaction() as transaction:
            transaction.add_grant(grant(expires_at=NOW + 10**6))
        clock.advance(59)
        assert await store.identities.grant("gra_1") is not None
        clock.advance(2)
        assert await store.identities.grant("gra_1") is None
        assert await store._sweep.once() == 1


async def test_a_grant_of_a_clock_that_was_set_back_came_to_life_again(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(grants=60.0), clock=clock) as store:
        clock.jump(86_400)
        async with store.transaction() as transaction:
            transaction.add_grant(grant(expires_at=clock.now() + 60))
        clock.jump(-86_400)
        assert await store._sweep.once() == 1
        async with store.transaction() as transaction:
            transaction.add_grant(grant(expires_at=clock.now() + 60))
        # One that a clock only a little ahead has made stays.
        clock.jump(-60)
        assert await store._sweep.once() == 0


async def test_none_keeps_for_good_and_what_waits_stays_in_any_case(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER, clock=clock) as store:
        await keep_all(store)
        before = list_kept(base)
        clock.advance(10**9)
        assert await store._sweep.once() == 0
        assert list_kept(base) == before
    soon = NEVER.replace(**dict.fromkeys([*KINDS, "grants"], 0.0))
    async with quiet(base, expiry=soon, clock=clock) as store:
        await store._sweep.once()
        assert list_kept(base) == {
            "runs": {"run_going", "run_queued"},
            "last_seen": set(),
            "approvals": {"apr_waits"},
            "inbox": {"evt_waits"},
            "deliveries": {"del_pending", "del_sending", "del_unknown"},
            # There is a question in it that somebody may still answer.
            "sessions": {"ses_asked"},
            "grants": set(),
            "tasks": {"task_waits"},
            "conversations": set(),
            "set_aside": set(),
        }


async def test_parts_go_with_their_whole(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(continuations=1.0, sessions=1.0), clock=clock) as store:
        await keep_all(store)
        async with store.transaction() as transaction:
            transaction.name_session(build_name("other"), "ses_1")
            transaction.name_session(build_name("other"), "ses_asked")
            for session_id in ("ses_1", "ses_asked"):
                transaction.title_session(OWNER, session_id, "A title")
        tables = ("history", "names", "past_sessions", "checkpoints", "events", "session_titles")
        assert counts(base, *tables) == [2, 2, 1, 1, 3, 2]
        clock.advance(2)
        await store._sweep.once()
        assert counts(base, *tables) == [1, 1, 0, 0, 1, 1]
        assert counts(base, "leases") == [0 if base.kind == "sqlite" else 1]
        assert await store.sessions.find(build_name()) is None
        assert await store.sessions.reserve(build_name(), "ses_2") == "ses_2"


async def test_a_branch_lost_what_it_shared_with_a_session_that_expired(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(sessions=100.0), clock=clock) as store:
        await keep_session(store, session("root"), build_messages("shared"))
        await keep_session(store, session("b", parent=ForkPoint(session_id="root", messages=1)), build_messages("b"))
        branch = session("c", parent=ForkPoint(session_id="b", messages=2), updated_at=NOW + 90)
        await keep_session(store, branch, build_messages("c"))
        clock.advance(150)
        assert await store._sweep.once() == 0
        assert [one.text for one in await store.sessions.history(OWNER, "c")] == ["shared", "b", "c"]
        clock.advance(150)
        assert await store._sweep.once() == 3
        assert counts(base, "sessions", "history") == [0, 0]


async def test_a_session_in_which_a_turn_runs_stays(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(sessions=100.0), clock=clock) as store:
        await keep_session(store, session(), build_messages("one"))
        lease = await store.sessions.claim("ses_1")
        clock.advance(10**9)
        assert await store._sweep.once() == 0
        async with store.transaction() as transaction:
            transaction.save_session(session(turns=2), lease)
            transaction.append_history("ses_1", build_messages("two"))
        assert [one.text for one in await store.sessions.history(OWNER, "ses_1")] == ["one", "two"]
        store.sessions.release(lease)
        assert await store._sweep.once() == 1


class Counted:
    """Counts the transactions of a store, and lets others in between."""

    def __init__(self, store: SqlStateStore) -> None:
        self.sizes: list[int] = []
        self._plain: Any = store._engine.write
        self.between: Any = None
        vars(store._sweep)["_engine"] = self
        self.read = store._engine.read

    async def write(self, ops: Sequence[Op]) -> list[Any]:
        answers = await self._plain(ops)
        self.sizes.append(len(answers[0]))
        if self.between is not None:
            await self.between()
        return answers


async def test_more_than_a_lot_is_dropped_in_lots(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(runs=1.0, sessions=1.0), clock=clock) as store:
        names = [str(number) for number in range(2 * BATCH_ROWS + 7)]
        leases = [store.sessions.begin(OWNER, name) for name in names]
        async with store.transaction() as transaction:
            for name, lease in zip(names, leases, strict=True):
                transaction.save_run(run(name, finished_at=NOW))
                transaction.save_session(session(name), lease)
                transaction.append_history(name, build_messages("x"))
        for lease in leases:
            store.sessions.release(lease)
        clock.advance(10**6)
        counted = Counted(store)
        assert await store._sweep.once() == 2 * len(names)
        # The runs, the sessions and their messages.
        assert sorted(size for size in counted.sizes if size) == sorted([BATCH_ROWS, BATCH_ROWS, 7] * 3)
        assert counts(base, "runs", "sessions", "history") == [0, 0, 0]


async def test_a_long_history_is_dropped_in_small_pieces(base: Base) -> None:
    clock, many = FakeClock(NOW), 3 * BATCH_ROWS + 1
    expiry = NEVER.replace(continuations=1.0, sessions=1.0, conversations=1.0)
    async with quiet(base, expiry=expiry, clock=clock) as store:
        await keep_session(store, session(), build_messages("x"))
        async with store.transaction() as transaction:
            transaction.save_conversation(conversation())
            transaction.save_run(run(background=True, finished_at=NOW))
        statements: list[Op] = []
        for number in range(many):
            statements.append(Do("INSERT INTO history (session_id, data) VALUES ('ses_1', ?)", (b"x",)))
            statements.append(Do("INSERT INTO checkpoints VALUES ('ses_1', ?, ?)", (f"chk_{number}", b"x")))
            item = "INSERT INTO items (conversation_id, item_id, data) VALUES ('conv_1', ?, ?)"
            statements.append(Do(item, (f"item_{number}", b"x")))
            statements.append(Do("INSERT INTO events VALUES ('run_1', ?, ?, ?)", (OWNER, number, b"x")))
        await store._engine.write(statements)
        clock.advance(2)
        counted = Counted(store)
        assert await store._sweep.once() == 3
        assert max(counted.sizes) == BATCH_ROWS
        parts = ("history", "checkpoints", "items", "events", "sessions", "conversations", "runs")
        assert counts(base, *parts) == [0] * len(parts)


async def test_a_session_that_waits_for_an_answer_was_kept_for_ever(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(sessions=100.0, pending_approvals=1000.0), clock=clock) as store:
        for session_id in ("ses_1", "ses_2"):
            await keep_session(store, session(session_id), build_messages("one"))
        async with store.transaction() as transaction:
            transaction.add_approval(question("apr_1", session_id="ses_1"))
            transaction.add_approval(question("apr_2", session_id="ses_2"))
            transaction.decide_approval(OWNER, "apr_2", "approved", at=NOW)
        clock.advance(101)
        assert await store._sweep.once() == 1
        # The answered one went with its session; the other keeps its own for longer.
        assert await store.approvals.get(OWNER, "apr_1") is not None
        assert await store.approvals.get(OWNER, "apr_2") is None
        assert list_kept(base)["sessions"] == {"ses_1"}
        clock.advance(900)
        assert await store._sweep.once() == 1
        assert counts(base, "sessions", "approvals", "history") == [0, 0, 0]


async def test_conversations_were_kept_for_ever(base: Base) -> None:
    clock, year = FakeClock(NOW), 365 * 86400
    async with quiet(base, expiry=Expiry(), clock=clock) as store:
        async with store.transaction() as transaction:
            for name in ("left", "named", "added", "shortened"):
                transaction.save_conversation(conversation(name))
                transaction.add_items(OWNER, [conversation_item("a", name), conversation_item("b", name)])
        await keep_session(store, session(), build_messages("one"))
        clock.advance(year / 2)
        async with store.transaction() as transaction:
            transaction.save_conversation(conversation("named", topic="another"))
        async with store.transaction() as transaction:
            transaction.add_items(OWNER, [conversation_item("c", "added")])
        async with store.transaction() as transaction:
            transaction.delete_item(OWNER, "shortened", "a")
            # What is not theirs is not used by it.
            transaction.delete_item("stranger", "left", "a")
            transaction.add_items("stranger", [conversation_item("c", "left")])
        clock.advance(year / 2 + 1)
        await store._sweep.once()
        assert list_kept(base)["conversations"] == {"named", "added", "shortened"}
        assert list_kept(base)["sessions"] == set()
        assert counts(base, "items", "history") == [2 + 3 + 1, 0]
        clock.advance(year)
        await store._sweep.once()
        assert counts(base, "conversations", "items") == [0, 0]


async def test_a_conversation_of_an_earlier_version_gets_its_whole_time(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(conversations=100.0), clock=clock) as store:
        async with store.transaction() as transaction:
            transaction.save_conversation(conversation())
        base.execute("UPDATE conversations SET updated_at = NULL")
        clock.advance(10**6)
        assert await store._sweep.look() == 0
        clock.advance(100)
        assert await store._sweep.look() == 0
        clock.advance(1)
        assert await store._sweep.look() == 1


async def test_a_look_reads_a_page_however_large_the_table_is(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    from frontdesk.stores.sql import sweeper as sweep

    monkeypatch.setattr(sweep, "PAGE", 10)
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER.replace(sessions=100.0), clock=clock) as store:
        for number in range(35):
            old = number in (3, 17, 18, 34)
            record = session(f"ses_{number:02}", updated_at=NOW - 101 if old else NOW)
            await keep_session(store, record, build_messages("x"))
        reads: list[int] = []
        read = store._engine.read

        async def counted(sql: str, values: Sequence[Any] = ()) -> Any:
            rows = await read(sql, values)
            reads.append(len(rows))
            return rows

        monkeypatch.setattr(store._engine, "read", counted)
        dropped = [await store._sweep.look() for _ in range(6)]
        assert max(reads) == 10
        # A page with something old is followed by the next; one without ends the look.
        assert dropped == [3, 1, 0, 0, 0, 0]
        assert len(reads) == 3 + 2 + 4


async def test_a_nonce_is_dropped_when_it_has_expired(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=NEVER, clock=clock) as store:
        for number in range(BATCH_ROWS + 5):
            assert await store.nonces.use("hmac", str(number), now=NOW, expires_at=NOW + 10)
        assert await store.nonces.use("hmac", "late", now=NOW, expires_at=NOW + 20)
        clock.advance(10)
        assert await store._sweep.look() == 0
        clock.advance(1)
        assert await store._sweep.look() == BATCH_ROWS + 5
        assert base.execute("SELECT nonce FROM nonces") == [("late",)]


MANY = 10_000


async def test_requests_are_served_while_many_records_are_dropped(base: Base) -> None:
    clock = FakeClock(NOW)
    store = base.store(expiry=NEVER.replace(runs=1.0), clock=clock)
    host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], store=store, clock=clock)
    async with serving(host) as client:
        # Written past the store, because that it can write them too is not the question.
        numbers = (
            "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?) "
            "INSERT INTO runs (run_id, owner, kind, ended_at, data) SELECT 'run_' || x, 'old', 'request', ?, ? FROM n"
        )
        base.execute(numbers, (MANY, NOW, b"x" * 300))
        clock.advance(10)
        counted, answers = Counted(store), []

        async def ask() -> None:
            if len(counted.sizes) % 25 == 1:
                answers.append((await client.invoke("hello", session_id="mine"))["text"])

        counted.between = ask
        assert await store._sweep.once() == MANY
    # A request was answered between two transactions, again and again, and none was larger than the others.
    assert [size for size in counted.sizes if size] == [BATCH_ROWS] * (MANY // BATCH_ROWS)
    assert answers == ["you said hello"] * len(range(1, len(counted.sizes) + 1, 25))


async def test_the_sweep_begins_with_the_store_and_goes_on_after_a_failure(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frontdesk.errors import StoreError, StoreUnavailableError
    from frontdesk.stores.sql import sweeper as sweep

    monkeypatch.setattr(sweep, "SWEEP_INTERVAL_SECONDS", 0.0)
    clock = FakeClock(NOW)
    store = base.store(expiry=NEVER.replace(runs=1.0), clock=clock)
    plain, failures, looked = store._sweep.look, [StoreUnavailableError(), StoreError("refused")], asyncio.Event()

    async def once() -> int:
        if failures:
            raise failures.pop()
        looked.set()
        return await plain()

    monkeypatch.setattr(store._sweep, "look", once)
    await store.open()
    async with asyncio.timeout(60):
        await looked.wait()
    await store.close()
