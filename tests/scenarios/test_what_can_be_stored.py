"""What an agent leaves behind must have a JSON form; what has none is an error at the turn that made it."""

import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from agent_framework import AgentSession, ContextProvider, Message

from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.faults.loop_steps import count_steps
from tests.scenarios.cast import build_scripted
from tests.scenarios.desk import open_client


class _Leaves(ContextProvider):
    """Leaves a value in the session at its first turn."""

    def __init__(self, value: Any) -> None:
        super().__init__("leaves")
        self.value = value

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        if self.value is not None:
            state["left"], self.value = self.value, None


async def test_a_state_without_a_json_form_fails_the_turn_that_made_it() -> None:
    agent = build_scripted(lambda _: ["done"], context_providers=[_Leaves(object())])
    async with open_client(agent) as desk:
        failed = await desk.ask("one", session_id="mine")
        assert (failed.status_code, failed.json()["error"]["code"]) == (200, "not_storable")
        assert (await desk.ask("two", session_id="mine")).json()["text"] == "done"
        assert desk.list_texts("mine") == ["one", "two", "done"]
        assert desk.history("mine")[0].additional_properties["hosting"]["status"] == "failed"


async def test_a_state_that_has_one_is_there_at_the_next_turn() -> None:
    agent = build_scripted(lambda _: ["done"], context_providers=[_Leaves({"deep": [1, 2.5, None, "x"]})])
    async with open_client(agent) as desk:
        for _ in range(2):
            assert (await desk.ask("go", session_id="mine")).status_code == 200
        (session,) = desk.sessions()
        assert session.state["state"]["leaves"]["left"] == {"deep": [1, 2.5, None, "x"]}


class _Grows(ContextProvider):
    """Adds to the session's state at each turn."""

    def __init__(self, *sizes: int) -> None:
        super().__init__("grows")
        self._sizes = iter(sizes)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        state.setdefault("left", []).extend([{"number": 1}] * next(self._sizes))


async def test_a_state_that_grew_too_large_froze_everybody() -> None:
    agent = build_scripted(lambda _: ["done"], context_providers=[_Grows(1, 5_000, 400_000, 10)])
    async with open_client(agent) as desk:
        first = (await desk.ask("one", session_id="mine")).json()
        with count_steps() as steps:
            second = (await desk.ask("two", session_id="mine")).json()
            failed = await desk.ask("three", session_id="mine")
        assert steps.longest < 60_000
        assert (failed.status_code, failed.json()["error"]["code"]) == (200, "session_too_large")
        run_id = failed.json()["error"]["id"]
        assert desk.run(run_id).status == "failed"
        assert desk.run(run_id).input[0].text == "three"
        for earlier in (first, second):
            assert (await desk.get(earlier["id"])).json()["text"] == "done"
        # It goes on from where it was, with what it had then.
        assert (await desk.ask("four", session_id="mine")).json()["text"] == "done"
        (session,) = desk.sessions()
        assert len(session.state["state"]["grows"]["left"]) == 1 + 5_000 + 10
        assert desk.list_texts("mine") == ["one", "done", "two", "done", "three", "four", "done"]


async def test_a_large_state_was_written_and_read_on_the_event_loop(monkeypatch: Any) -> None:
    here, seen = threading.get_ident(), list[int]()
    to_dict, from_dict = AgentSession.to_dict, AgentSession.from_dict.__func__

    def written(session: Any) -> Any:
        seen.append(threading.get_ident())
        return to_dict(session)

    def read(kind: Any, data: Any) -> Any:
        seen.append(threading.get_ident())
        return from_dict(kind, data)

    monkeypatch.setattr(AgentSession, "to_dict", written)
    monkeypatch.setattr(AgentSession, "from_dict", classmethod(read))
    agent = build_scripted(lambda _: ["done"], context_providers=[_Grows(20_000, 1)])
    async with open_client(agent) as desk:
        for _ in range(2):
            assert (await desk.ask("go", session_id="mine")).status_code == 200
    assert len(seen) >= 3
    assert here not in seen


async def test_a_session_too_large_is_left_for_a_new_one() -> None:
    agent = build_scripted(lambda _: ["done"], context_providers=[_Grows(10, 1_000, 10)])
    async with open_client(agent, max_session_bytes=1_000) as desk:
        made = await desk.ask("one")
        key = made.json()["session_id"]
        assert (await desk.ask("two", session_id=key)).json()["error"]["code"] == "session_too_large"
        assert (await desk.ask("two")).status_code == 200


async def test_a_state_that_cannot_be_told_fails_its_turn_and_is_recorded() -> None:
    class Silent:
        def to_dict(self) -> Any:
            raise RuntimeError("no word")

    agent = build_scripted(lambda _: ["done"], context_providers=[_Leaves(Silent())])
    async with open_client(agent) as desk:
        failed = await desk.ask("one", session_id="mine")
        assert (failed.status_code, failed.json()["error"]["code"]) == (200, "not_storable")
        assert desk.list_texts("mine") == ["one"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_question_that_cannot_be_stored_ran_and_left_no_record(stream: bool) -> None:
    deep: Any = "deep"
    for _ in range(110):
        deep = [deep]

    def hook(request: Any, **_: Any) -> Any:
        message = Message("user", [request.input], additional_properties={"deep": deep})
        return request.replace(input=message, metadata={"good": 1, "bad": deep}, details={"bad": "\ud800"})

    store = SqliteStateStore(Path(tempfile.mkdtemp()) / "frontdesk.db")
    channel = InvocationsChannel(run_hook=hook)
    async with open_client(build_scripted(lambda _: ["done"]), channel, store=store) as desk:
        if stream:
            run_id = (await desk.events("one", session_id="mine"))[0].data["id"]
        else:
            failed = await desk.ask("one", session_id="mine")
            assert (failed.status_code, failed.json()["error"]["code"]) == (200, "not_storable")
            run_id = failed.json()["error"]["id"]
        kept = (await desk.get(run_id)).json()
        assert (kept["status"], kept["error"]["code"], kept["metadata"]) == ("failed", "not_storable", {"good": 1})
        record = await store.runs.get(desk.runs()[-1].owner, run_id)
        assert record is not None
        assert [message.text for message in record.input] == ["one"]
        assert desk.list_texts("mine") == ["one"]
