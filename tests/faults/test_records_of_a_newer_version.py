"""A host meets what a newer one wrote: it says so, changes nothing, and goes on with everything else."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.concurrency import timeouts
from frontdesk.stores.sql.inbox import SqlInbox
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import EchoAgent, HostClient, serving
from tests.faults.inbox.desk import run_host, wait_for_answers
from tests.scenarios.cast import ScriptedClient, echo
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform

Change = Callable[[dict[str, Any]], object]


def invent(record: dict[str, Any]) -> None:
    """What no process of this version knows."""
    record["data"] = {"$": "Invented", "was": json.dumps(record["data"])}


def restore(record: dict[str, Any]) -> None:
    if "was" in record["data"]:
        record["data"] = json.loads(record["data"]["was"])


class State:
    """A SQLite store, and what a newer host does to it."""

    def __init__(self, root: Path) -> None:
        self.path = root / "frontdesk.db"
        self.store = SqliteStateStore(self.path)

    def host(self, target: Any = echo) -> AgentFrameworkHost:
        self.store = SqliteStateStore(self.path)
        channels = [InvocationsChannel(), ResponsesChannel(), ConversationsChannel()]
        return AgentFrameworkHost(target, channels=channels, store=self.store)

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(sql, values).fetchall()

    def change(self, table: str, change: Change, where: str = "true") -> list[Any]:
        """Rewrite rows; return all rows of the table."""
        for number, data in self.execute(f"SELECT rowid, data FROM {table} WHERE {where}"):  # noqa: S608
            record = json.loads(data)
            change(record)
            self.execute(f"UPDATE {table} SET data = ? WHERE rowid = ?", (json.dumps(record).encode(), number))  # noqa: S608
        return self.rows(table)

    def rows(self, table: str) -> list[Any]:
        return self.execute(f"SELECT * FROM {table} ORDER BY rowid")  # noqa: S608

    def assert_nothing_was_set_aside(self) -> None:
        assert self.rows("set_aside") == []


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path)


async def check_refused(client: HostClient, message: str, **fields: Any) -> None:
    response = await client.http.post("/invocations", json={"message": message, **fields})
    assert response.status_code == 503, response.text
    assert response.json()["error"]["code"] == "newer_record"
    assert response.headers["retry-after"] == "5"


# A function hears no history, so that it does not matter to its turns.
@pytest.mark.parametrize(("table", "kind"), [("sessions", "function"), ("sessions", "agent"), ("history", "agent")])
async def test_a_turn_took_the_place_of_a_session_that_it_could_not_read(state: State, table: str, kind: str) -> None:
    def target() -> Any:
        return echo if kind == "function" else Agent(client=ScriptedClient(lambda _: ["hello"]), name="a")

    async with serving(state.host(target())) as client:
        await client.invoke("one", session_id="mine")
    before = state.change(table, invent)
    kept = {name: state.rows(name) for name in ("sessions", "history", "runs", "names")}
    async with serving(state.host(target())) as client:
        await check_refused(client, "two", session_id="mine")
        # The history is read before a stream begins.
        await check_refused(client, "two", session_id="mine", stream=True)
        assert (await client.invoke("other", session_id="yours"))["text"]
        assert state.store.unreadable == 1
        assert state.rows(table)[: len(before)] == before
        for name, rows in kept.items():
            assert state.rows(name)[: len(rows)] == rows, name
        # A newer version, or this one when it was brought up to date, goes on from where it was.
        state.change(table, restore)
        assert (await client.invoke("three", session_id="mine"))["text"]
    state.assert_nothing_was_set_aside()


async def test_fields_of_a_newer_version_were_gone_after_the_next_turn(state: State) -> None:
    async with serving(state.host()) as client:
        await client.invoke("one", session_id="mine")
    state.change("sessions", lambda record: record["data"].update(title="Trip", seen={"$": "Era"}))
    async with serving(state.host()) as client:
        assert (await client.invoke("two", session_id="mine"))["text"] == "you said two"
    ((data,),) = state.execute("SELECT data FROM sessions")
    session = json.loads(data)["data"]
    assert (session["title"], session["seen"], session["turns"]) == ("Trip", {"$": "Era"}, 2)
    state.assert_nothing_was_set_aside()


async def test_what_a_newer_version_wrote_looked_as_if_it_did_not_exist(state: State) -> None:
    async with serving(state.host()) as client:
        run = await client.invoke("one", session_id="mine")
        made = (await client.http.post("/conversations", json={"items": [_item("hi")]})).json()
        response = (await client.http.post("/responses", json={"input": "hi"})).json()
    for table in ("runs", "conversations"):
        state.change(table, invent)
    async with serving(state.host()) as client:
        paths = [
            f"/invocations/{run['id']}",
            f"/responses/{response['id']}",
            f"/conversations/{made['id']}",
            f"/conversations/{made['id']}/items",
        ]
        for path in paths:
            found = await client.http.get(path)
            assert (found.status_code, found.headers.get("retry-after")) == (503, "5"), path
        changed = await client.http.post(f"/conversations/{made['id']}", json={"metadata": {"a": "b"}})
        assert changed.status_code == 503
        assert (await client.http.delete(f"/conversations/{made['id']}")).status_code == 503
        chained = await client.http.post("/responses", json={"input": "hi", "previous_response_id": response["id"]})
        assert chained.status_code == 503
        assert (await client.http.get("/invocations/run_none")).status_code == 404
    state.assert_nothing_was_set_aside()


def _item(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


async def test_a_list_of_items_is_not_shown_with_a_hole_in_it(state: State) -> None:
    async with serving(state.host()) as client:
        items = [_item("one"), _item("two")]
        made = (await client.http.post("/conversations", json={"items": items})).json()
    state.change("items", invent, "number = 1")
    async with serving(state.host()) as client:
        assert (await client.http.get(f"/conversations/{made['id']}/items")).status_code == 503
        asked = await client.http.post("/responses", json={"input": "hi", "conversation": made["id"]})
        assert asked.status_code == 503


async def test_an_approval_was_used_up_for_a_turn_that_could_not_begin(state: State) -> None:
    paid: list[str] = []

    @tool(approval_mode="always_require")
    def pay(item: str) -> str:
        """Pays."""
        paid.append(item)
        return "paid"

    def agent() -> Agent:
        asked = [Content.from_function_call("call_1", "pay", arguments='{"item": "tea"}')]
        script = lambda messages: ["done"] if messages[-1].role == "tool" else asked  # noqa: E731
        return Agent(client=ScriptedClient(script), name="a", tools=[pay])

    async with serving(state.host(agent())) as client:
        run = await client.invoke("pay", session_id="mine")
        (question,) = run["approvals"]
    state.change("history", invent)
    answer = {"approval": {"id": question["id"], "approved": True}}
    async with serving(state.host(agent())) as client:
        assert (await client.http.post("/invocations", json=answer)).status_code == 503
        assert (paid, state.execute("SELECT status FROM approvals")) == ([], [("pending",)])
        state.change("history", restore)
        answered = await client.http.post("/invocations", json=answer)
        assert (answered.status_code, paid) == (200, ["tea"]), answered.text


async def test_a_background_run_failed_because_its_session_was_newer(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "LEFT_ALONE_SECONDS", 0.3)
    async with serving(state.host()) as client:
        await client.invoke("one", session_id="mine")
    state.change("sessions", invent)
    async with serving(state.host()) as client:
        run = await client.invoke("two", session_id="mine", background=True)
        other = await client.invoke("three", background=True)
        await until(lambda: state.store.unreadable == 1)

        async def status(run_id: str) -> str:
            return (await client.http.get(f"/invocations/{run_id}")).json()["status"]

        await until(lambda: _ended(state, other["id"]))
        assert (await status(run["id"]), await status(other["id"])) == ("queued", "completed")
        state.change("sessions", restore)
        # The pause before the next try grows with each one before it.
        await until(lambda: _ended(state, run["id"]), within=90)
        assert await status(run["id"]) == "completed"


def _ended(state: State, run_id: str) -> bool:
    return bool(state.execute("SELECT 1 FROM runs WHERE run_id = ? AND ended_at IS NOT NULL", (run_id,)))


async def test_an_event_that_could_not_be_read_was_thrown_away_and_those_behind_it_were_answered(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "LEFT_ALONE_SECONDS", 0.3)
    claims: list[str] = []
    claim = SqlInbox.claim_bundle

    async def counted(self: SqlInbox, channel: str, conversation_id: str, holder: str, **more: Any) -> Any:
        claims.append(conversation_id)
        return await claim(self, channel, conversation_id, holder, **more)

    monkeypatch.setattr(SqlInbox, "claim_bundle", counted)
    async with fork_platform(tmp_path / "log") as platform:
        await platform.set(retry_seconds=0.1)
        ann, bob = await platform.user("Ann"), await platform.user("Bob")
        held = HeldAgent()
        async with run_host(held, platform, store=SqliteStateStore(state.path)) as _:
            for text in ("hold", "second", "third"):
                await platform.wait_for_acknowledged(await platform.say(ann, text))
        before = state.change("inbox", invent, "number = 1")
        agent = EchoAgent()
        store = SqliteStateStore(state.path)
        async with run_host(agent, platform, store=store):
            await platform.say(bob, "hello")
            assert await wait_for_answers(platform, bob, 1) == ["hello"]
            await platform.wait_for_acknowledged(await platform.say(ann, "fourth"))
            await until(lambda: claims.count(ann.chat_id) >= 2)
            # Nobody has it, it was not tried, and nothing of its conversation went ahead of it.
            assert state.rows("inbox")[0][:3] == before[0][:3]
            assert state.execute("SELECT holder, attempts, done_at FROM inbox WHERE number = 1") == [("", 0, None)]
            assert [one[-1].text for one in agent.seen] == ["hello"]
            assert store.unreadable == 1
            state.change("inbox", restore, "number = 1")
            assert await wait_for_answers(platform, ann, 4) == ["hold", "second", "third", "fourth"]
        state.assert_nothing_was_set_aside()


class HeldAgent(EchoAgent):
    """Never answers."""

    async def speak(self, words: list[str]) -> Any:
        await asyncio.Event().wait()
        yield


async def test_a_part_that_could_not_be_read_was_passed_by_those_behind_it(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "LEFT_ALONE_SECONDS", 0.3)
    async with fork_platform(tmp_path / "log") as platform:
        ann, bob = await platform.user("Ann"), await platform.user("Bob")
        await platform.fail("unavailable", method="send")
        async with run_host(EchoAgent(), platform, store=SqliteStateStore(state.path)):
            for text in ("first", "second"):
                await platform.say(ann, text)
            await until(lambda: len(state.rows("deliveries")) == 2)
        state.change("deliveries", invent, "number = (SELECT MIN(number) FROM deliveries)")
        await platform.recover()
        store = SqliteStateStore(state.path)
        async with run_host(EchoAgent(), platform, store=store):
            await platform.say(bob, "hello")
            assert await wait_for_answers(platform, bob, 1) == ["hello"]
            await until(lambda: store.unreadable == 1)
            assert await platform.answers(ann.chat_id) == []
            state.change("deliveries", restore)
            assert await wait_for_answers(platform, ann, 2) == ["first", "second"]
        state.assert_nothing_was_set_aside()
