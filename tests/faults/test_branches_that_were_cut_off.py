"""A run on a branch leaves all of itself in its session, or nothing, whatever ends its process and whenever."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import ChatMiddleware

from frontdesk.delivery.proactive import WORK_GOES_ON
from frontdesk.errors import StoreUnavailableError
from frontdesk.models.run import BackgroundRun
from frontdesk.models.session import SessionName
from frontdesk.stores.memory.store import InMemoryStateStore, MemoryTransaction
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.scenarios.cast import build_scripted
from tests.scenarios.delivery.chats import OWNER, Chats, Holding, open_chats
from tests.scenarios.desk import until

MakeStore = Callable[[], Any]


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Return what opens the same store for each of two hosts."""
    memory = InMemoryStateStore()
    return lambda: memory if request.param == "memory" else SqliteStateStore(tmp_path / "frontdesk.db")


async def failure_of(chats: Chats) -> None:
    """Wait until it is written that the run has failed."""

    async def has_failed() -> bool:
        told = [one for one in await chats.host.deliveries.list(channel="a") if one.payload == WORK_GOES_ON]
        run = await chats.store.runs.get(OWNER, told[0].run_id)
        return run is not None and run.status == "failed"

    await until(has_failed)


async def cut_off(store: Any, **options: Any) -> None:
    """Stop a host while a run works on a branch, and after something was said meanwhile."""
    agent = Holding()
    async with open_chats(agent, store=store, shutdown_grace_seconds=0, **options) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        await chats.b.say("hello")
        await chats.b.hears("hello")
        assert await chats.list_said() == ["hello", "hello"]


async def test_a_run_that_was_cut_off_leaves_its_question_once(make_store: MakeStore) -> None:
    await cut_off(make_store())
    async with open_chats(Holding(), store=make_store()) as chats:
        await failure_of(chats)
        assert await chats.list_said() == ["hello", "hello", "count"]
        assert (await chats.read_tracked())[-1].additional_properties["hosting"]["status"] == "failed"


async def test_a_run_that_was_cut_off_is_told_of_in_the_session_that_it_began_in(make_store: MakeStore) -> None:
    agent = Holding()
    async with open_chats(agent, store=make_store(), shutdown_grace_seconds=0) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        before = await chats.store.sessions.reserve(SessionName(owner=OWNER, kind="tracked"), "another")
        await chats.host.reset_session(OWNER)
    async with open_chats(Holding(), store=make_store()) as chats:
        await failure_of(chats)
        assert await chats.list_said() == []
        assert [one.text for one in await chats.store.sessions.history(OWNER, before)] == ["count"]


async def test_a_run_that_begins_again_has_a_new_branch(make_store: MakeStore) -> None:
    began = asyncio.Event()

    class Waits(ChatMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            if context.messages[-1].text == "count":
                began.set()
                await asyncio.Event().wait()
            await call_next()

    def repeat(messages: Any) -> Any:
        heard.append([one.text for one in messages])
        return [f"re: {messages[-1].text}"]

    heard: list[list[str]] = []
    first = build_scripted(repeat, middleware=[Waits()])
    async with open_chats(first, store=make_store(), shutdown_grace_seconds=0, on_interrupt="restart") as chats:
        await chats.a.say("count")
        await began.wait()
        await chats.b.say("hello")
        await chats.b.hears("re: hello")
    async with open_chats(build_scripted(repeat), store=make_store(), on_interrupt="restart") as chats:
        await chats.b.hears("re: count")
        assert heard[-1] == ["hello", "re: hello", "count"]
        assert await chats.list_said() == ["hello", "re: hello", "count", "re: count"]


class FailsOnce(InMemoryStateStore):
    """Is away when the end of a run is written for the first time."""

    failures = 0

    def transaction(self) -> Any:
        return _FailsOnce(self)


class _FailsOnce(MemoryTransaction):
    ends = False

    def end_job(self, job: BackgroundRun) -> None:
        self.ends = True
        super().end_job(job)

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        store: Any = self._store
        if kind is None and self.ends and not store.failures:
            store.failures += 1
            raise StoreUnavailableError
        await super().__aexit__(kind, error, trace)


async def test_an_end_that_could_not_be_written_left_nothing_behind() -> None:
    store, agent = FailsOnce(), Holding()
    async with open_chats(agent, store=store) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        await chats.b.say("hello")
        await chats.b.hears("hello")
        agent.release("count")
        await failure_of(chats)
        assert store.failures == 1
        # The answer that was not written is not sent either, and the question is there once.
        assert await chats.list_said() == ["hello", "hello", "count"]
        assert chats.b.texts() == ["hello"]
        # Nothing holds the session.
        await chats.b.say("and now?")
        await chats.b.hears("hello", "and now?")


async def test_a_person_talked_on_one_host_while_their_run_went_on_on_another(postgres: str) -> None:
    agent, one_store, other_store = Holding(), PostgresStateStore(postgres), PostgresStateStore(postgres)
    async with open_chats(agent, store=one_store) as one, open_chats(agent, store=other_store) as other:

        async def said(*texts: str) -> bool:
            return await other.list_said() == list(texts)

        await one.a.say("count")
        await agent.begins("count")
        await other.b.say("hello")
        await until(lambda: said("hello", "hello"))
        agent.release("count")
        await until(lambda: said("hello", "hello", "count", "count"))
        sent = await other.host.deliveries.list(channel="b")
        assert sorted(row.payload for row in sent) == ["count", "hello"]
