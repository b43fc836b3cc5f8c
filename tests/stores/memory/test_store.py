"""The in-memory store keeps the contract, and keeps itself small."""

import asyncio
from typing import Any

import pytest

from frontdesk.errors import FilesFullError
from frontdesk.models.file import FileLimits
from frontdesk.models.session import ForkPoint, SessionName
from frontdesk.stores.memory import store as sweeper
from frontdesk.stores.memory.store import InMemoryStateStore, MemorySweep
from frontdesk_testing import FakeClock, StoreContract
from frontdesk_testing.store_samples import (
    NOW,
    OWNER,
    build_identity,
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
    link,
    question,
    run,
    session,
    texts,
)

LIMIT = 10
MANY = 1000


class TestInMemoryStateStore(StoreContract):
    @pytest.fixture
    def store(self) -> InMemoryStateStore:
        return InMemoryStateStore()


async def test_files_are_bounded_and_go_when_they_are_old() -> None:
    clock = FakeClock(NOW)
    limits = FileLimits(max_file_bytes=10, max_owner_bytes=15)
    store = InMemoryStateStore(limit=LIMIT, clock=clock, file_limits=limits)
    file = await store.files.put(OWNER, bytes(10), media_type="image/png")
    with pytest.raises(FilesFullError):
        await store.files.put(OWNER, bytes(9), media_type="image/png")
    assert await store.files.put(OWNER, bytes(10), media_type="image/png") == file
    for number in range(MANY):
        await store.files.put(f"owner {number}", b"cat", media_type="image/png")
    assert len(list(store.files.kept.items())) == LIMIT
    clock.advance(2 * 86_400)
    MemorySweep(store, None, clock).once()
    assert list(store.files.kept.items()) == []


@pytest.fixture
def small() -> InMemoryStateStore:
    return InMemoryStateStore(limit=LIMIT)


def size(store: InMemoryStateStore) -> int:
    """How many things lie in all the drawers, at whatever depth."""
    drawers = (
        store.sessions,
        store.identities,
        store.runs,
        store.approvals,
        store.inbox,
        store.outbox,
        store.conversations,
    )
    return sum(_size(value) for drawer in drawers for value in vars(drawer).values())


def _size(value: Any) -> int:
    inner = getattr(value, "_items", value)
    if isinstance(inner, dict):
        return len(inner) + sum(_size(one) for one in inner.values())
    if isinstance(inner, (list, set)):
        return len(inner)
    return len(inner.messages) if hasattr(inner, "messages") and isinstance(inner.messages, list) else 0


async def live(store: InMemoryStateStore, number: int) -> None:
    """Everything that one person can leave behind."""
    owner, ses, who = f"owner_{number}", f"ses_{number}", identity(str(number))
    await store.identities.remember(build_identity(who, owner))
    for name in (
        build_name(ses, owner=owner),
        SessionName(owner=owner, kind="tracked"),
        SessionName(owner=owner, kind="named", conversation_id=ses),
        SessionName(owner="", kind="tracked", channel="telegram", conversation_id=ses),
    ):
        await store.sessions.reserve(name, ses)
    await keep_session(store, session(ses, owner=owner), build_messages("one", "two"))
    await keep_session(
        store, session(f"{ses}_b", owner=owner, parent=ForkPoint(session_id=ses, messages=1)), build_messages("x")
    )
    await store.sessions.claim(f"{ses}_never_saved")
    async with store.transaction() as transaction:
        transaction.name_session(SessionName(owner=owner, kind="tracked"), f"{ses}_rotated")
        transaction.see(build_last_seen(who, key=owner))
        transaction.add_link(link(who, key=owner))
        transaction.save_run(run(f"run_{number}", owner=owner))
        transaction.add_events([event(n, f"run_{number}", owner=owner) for n in (1, 2)])
        transaction.add_approval(question(f"apr_{number}", owner=owner))
        transaction.accept(inbox_item(f"evt_{number}", chat=owner))
        transaction.add_delivery(delivery(f"del_{number}", place=owner, status="accepted", ended_at=NOW))
        transaction.save_conversation(conversation(f"conv_{number}", owner=owner))
        transaction.add_items(OWNER, [conversation_item(n, f"conv_{number}") for n in "ab"])
    item = await store.inbox.next("telegram", owner)
    assert item is not None
    async with store.transaction() as transaction:
        transaction.finish(item)


async def test_it_stops_growing(small: InMemoryStateStore) -> None:
    for number in range(MANY):
        await live(small, number)
    full = size(small)
    for number in range(MANY, 2 * MANY):
        await live(small, number)
    assert size(small) == full
    assert full < 125 * LIMIT


async def test_what_was_deleted_takes_no_room(small: InMemoryStateStore) -> None:
    before = size(small)
    for number in range(LIMIT // 2):
        async with small.transaction() as transaction:
            transaction.save_run(run(f"run_{number}"))
            transaction.add_events([event(1, f"run_{number}")])
            transaction.save_conversation(conversation(f"conv_{number}"))
            transaction.add_items(OWNER, [conversation_item("a", f"conv_{number}")])
            transaction.add_link(link(identity(str(number)), key=f"owner_{number}"))
        async with small.transaction() as transaction:
            transaction.delete_run(OWNER, f"run_{number}")
            transaction.delete_conversation(OWNER, f"conv_{number}")
            transaction.remove_link(f"owner_{number}", identity(str(number)))
    assert size(small) == before


async def test_what_comes_too_late_takes_no_room(small: InMemoryStateStore) -> None:
    before = size(small)
    async with small.transaction() as transaction:
        transaction.add_events([event(1, "run_deleted")])
        transaction.add_items(OWNER, [conversation_item("a", "conv_deleted")])
        transaction.append_history("ses_dropped", build_messages("late"))
    assert size(small) == before


async def test_a_person_who_comes_every_day_is_not_forgotten_for_a_thousand_strangers(
    small: InMemoryStateStore,
) -> None:
    name = SessionName(owner=OWNER, kind="tracked")
    await small.identities.remember(build_identity(identity("me")))
    await small.sessions.reserve(name, "ses_me")
    await keep_session(small, session("ses_me"), build_messages("first"))
    for number in range(MANY):
        stranger = SessionName(owner=f"stranger_{number}", kind="tracked")
        await small.identities.remember(build_identity(identity(str(number)), f"stranger_{number}"))
        await small.sessions.reserve(stranger, f"ses_{number}")
        await keep_session(small, session(f"ses_{number}", owner=f"stranger_{number}"))
        assert await small.identities.find(identity("me")) is not None
        record = await small.sessions.find(name)
        assert record is not None
        await keep_session(small, record)
    assert texts(await small.sessions.history(OWNER, "ses_me")) == ["first"]


async def test_the_longest_untouched_go_first(small: InMemoryStateStore) -> None:
    for number in range(LIMIT + 3):
        async with small.transaction() as transaction:
            transaction.save_run(run(f"run_{number}"))
            transaction.save_run(run("run_0"))
    kept = [number for number in range(LIMIT + 3) if await small.runs.get(OWNER, f"run_{number}")]
    assert kept == [0, *range(4, LIMIT + 3)]


async def test_a_delivery_that_waits_is_never_dropped(small: InMemoryStateStore) -> None:
    for number in range(3 * LIMIT):
        async with small.transaction() as transaction:
            transaction.add_delivery(delivery(f"del_{number:02}"))
            transaction.add_delivery(delivery(f"old_{number:02}", status="accepted", ended_at=NOW))
    waiting = [one.delivery_id for one in await small.outbox.open(("telegram", "1"), limit=100)]
    assert waiting == [f"del_{number:02}" for number in range(3 * LIMIT)]
    ended = [one.delivery_id for one in await small.outbox.find(status="accepted")]
    assert ended == [f"old_{number:02}" for number in range(3 * LIMIT - 1, 2 * LIMIT - 1, -1)]


async def test_a_dropped_question_is_not_pending(small: InMemoryStateStore) -> None:
    for number in range(3 * LIMIT):
        async with small.transaction() as transaction:
            transaction.add_approval(question(f"apr_{number}"))
    pending = [one.approval_id for one in await small.approvals.pending(OWNER)]
    assert pending == [f"apr_{number}" for number in range(2 * LIMIT, 3 * LIMIT)]


async def test_a_conversation_that_goes_on_was_dropped_before_those_that_nobody_uses(
    small: InMemoryStateStore,
) -> None:
    for number in range(3 * LIMIT):
        async with small.transaction() as transaction:
            transaction.save_conversation(conversation(f"conv_{number}"))
            transaction.add_items(OWNER, [conversation_item(f"item_{number}", "conv_0")])
    assert len(await small.conversations.items(OWNER, "conv_0", limit=1000)) == 3 * LIMIT
    assert await small.conversations.get(OWNER, "conv_1") is None


YEAR = 365 * 86400


async def test_sessions_and_conversations_that_nobody_uses_were_kept_for_ever() -> None:
    clock = FakeClock(NOW)
    store = InMemoryStateStore(clock=clock)
    empty = size(store)
    names = {"ses_1": "mine", "ses_2": "other"}
    for session_id, name in names.items():
        await store.sessions.reserve(build_name(name), session_id)
        await keep_session(store, session(session_id, key=name), build_messages("one"))
        async with store.transaction() as transaction:
            transaction.add_approval(question(f"apr_{session_id}", session_id=session_id))
            transaction.save_checkpoint(session_id, "chk", b"x")
            transaction.save_conversation(conversation(f"conv_{session_id}"))
            transaction.add_items(OWNER, [conversation_item("a", f"conv_{session_id}")])
    clock.advance(YEAR)
    assert store._sweep.once() == 0
    await keep_session(store, session("ses_2", key="other", updated_at=clock.now()), build_messages("two"))
    async with store.transaction() as transaction:
        transaction.add_items(OWNER, [conversation_item("b", "conv_ses_2")])
    clock.advance(1)
    assert store._sweep.once() == 2
    assert await store.sessions.find(build_name("mine")) is None
    assert await store.approvals.get(OWNER, "apr_ses_1") is None
    assert await store.checkpoints.get("ses_1", "chk") is None
    assert await store.conversations.get(OWNER, "conv_ses_1") is None
    assert texts(await store.sessions.history(OWNER, "ses_2")) == ["one", "two"]
    assert await store.approvals.get(OWNER, "apr_ses_2") is not None
    assert len(await store.conversations.items(OWNER, "conv_ses_2")) == 2
    clock.advance(YEAR)
    assert store._sweep.once() == 2
    assert size(store) == empty


async def test_an_idle_session_stays_while_a_turn_runs_or_another_builds_on_it() -> None:
    clock = FakeClock(NOW)
    store = InMemoryStateStore(clock=clock, idle_seconds=100)
    await keep_session(store, session("root"), build_messages("shared"))
    await keep_session(store, session("branch", parent=ForkPoint(session_id="root", messages=1)), build_messages("b"))
    lease = await store.sessions.claim("branch")
    clock.advance(101)
    assert store._sweep.once() == 0
    store.sessions.release(lease)
    assert store._sweep.once() == 2


async def test_without_a_time_nothing_is_dropped_for_being_idle() -> None:
    clock = FakeClock(NOW)
    store = InMemoryStateStore(clock=clock, idle_seconds=None)
    await keep_session(store, session(), build_messages("one"))
    clock.advance(100 * YEAR)
    assert store._sweep.once() == 0
    assert await store.sessions.get(OWNER, "ses_1") is not None


async def test_a_grant_of_a_clock_that_was_set_back_came_to_life_again() -> None:
    clock = FakeClock(NOW)
    store = InMemoryStateStore(clock=clock, idle_seconds=None)
    async with store.transaction() as transaction:
        transaction.add_grant(grant("good", expires_at=NOW + 60).replace(begun_at=NOW))
        transaction.add_grant(grant("ahead", expires_at=NOW + 86_460).replace(begun_at=NOW + 86_400))
        transaction.add_grant(grant("ended", expires_at=NOW))
    store._sweep.once()
    assert [await store.identities.grant(one) is not None for one in ("good", "ahead", "ended")] == [True, False, False]


async def test_the_sweep_runs_while_the_store_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper, "SWEEP_INTERVAL_SECONDS", 0.0)
    clock = FakeClock(NOW)
    store = InMemoryStateStore(clock=clock)
    await keep_session(store, session(), build_messages("one"))
    clock.advance(2 * YEAR)
    swept, plain = asyncio.Event(), store._sweep.once

    def once() -> int:
        swept.set()
        return plain()

    monkeypatch.setattr(store._sweep, "once", once)
    await store.open()
    async with asyncio.timeout(60):
        await swept.wait()
    await store.close()
    assert await store.sessions.get(OWNER, "ses_1") is None


async def test_identities_that_nobody_uses_were_kept_until_there_was_no_room() -> None:
    clock = FakeClock(NOW)
    store = InMemoryStateStore(clock=clock)
    empty = size(store)
    for name in ("stranger", "guest", "linked", "talks"):
        await store.identities.remember(build_identity(identity(name), name))
    async with store.transaction() as transaction:
        transaction.see(build_last_seen(identity("stranger"), key="stranger"))
        transaction.add_link(link(identity("linked"), key="linked"))
    await keep_session(store, session(owner="talks", updated_at=NOW + YEAR), build_messages("one"))
    assert store._sweep.once() == 0
    clock.advance(YEAR)
    assert store._sweep.once() == 0
    assert await store.identities.find(identity("guest")) is not None
    clock.advance(1)
    assert store._sweep.once() == 1
    assert await store.identities.find(identity("stranger")) is None
    assert await store.identities.last_seen("stranger") is None
    for name in ("guest", "linked", "talks"):
        assert await store.identities.find(identity(name)) is not None
    store.identities.unlink("linked", identity("linked"))
    clock.advance(1)
    store._sweep.once()
    clock.advance(YEAR + 2)
    # The session, and then all who are left.
    assert store._sweep.once() == 4
    assert size(store) == empty


async def test_whoever_made_thousands_of_records_made_those_of_others_go(small: InMemoryStateStore) -> None:
    await live(small, 1)
    for number in range(2 * MANY):
        async with small.transaction() as transaction:
            transaction.save_run(run(f"run_m{number}", owner="mallory"))
            transaction.add_approval(question(f"apr_m{number}", owner="mallory"))
            transaction.save_conversation(conversation(f"conv_m{number}", owner="mallory"))
        await small.files.put("mallory", str(number).encode(), media_type="text/plain")
        await small.sessions.reserve(build_name(f"ses_m{number}", owner="mallory"), f"ses_m{number}")
        await keep_session(small, session(f"ses_m{number}", owner="mallory"), build_messages("x"))
    assert await small.runs.get("owner_1", "run_1") is not None
    assert await small.approvals.get("owner_1", "apr_1") is not None
    assert await small.conversations.get("owner_1", "conv_1") is not None
    assert await small.sessions.find(build_name("ses_1", owner="owner_1")) is not None
