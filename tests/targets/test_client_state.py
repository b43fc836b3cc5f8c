"""What a client sends with a request reaches tools and context providers, and the state goes back to it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_framework import ContextProvider, Message, tool

from frontdesk import SharedState, get_current_client_state, get_current_forwarded_props
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.state_updates import state_in
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.conversation import run_of_answer
from frontdesk.sessions.shared_state import MAX_STATE_BYTES
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.streaming.pieces import Piece, PieceAssembler, StatePiece
from tests.scenarios.responses.cast import agent, call
from tests.test_pipeline import caller, in_session, open_context


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> HostStateStore:
    return InMemoryStateStore() if request.param == "memory" else SqliteStateStore(tmp_path / "state.db")


class Watching(ContextProvider):
    """Writes down what it is bound to."""

    def __init__(self) -> None:
        super().__init__("watching")
        self.seen: list[Any] = []

    @contextmanager
    def bind_request_context(
        self, *, client_state: Any, forwarded_props: Any, shared_state: SharedState
    ) -> Generator[None]:
        self.seen.append((client_state, forwarded_props, shared_state.value))
        yield


@tool
def note(step: str) -> str:
    """Notes a step, in a thread of its own."""
    with SharedState.current().edit() as draft:
        draft.setdefault("steps", []).append(step)
    return f"{get_current_client_state()} {dict(get_current_forwarded_props())}"


def build_noting(*steps: str, **options: Any) -> Any:
    turns = [turn for step in steps for turn in ([call("note", step=step)], [f"noted {step}"])]
    return agent(*turns, tools=[note], **options)


async def read_stream(context: Any, asked: Any) -> tuple[list[Piece], Any]:
    async with await context.stream(asked.replace(stream=True), caller()) as stream:
        assembler = PieceAssembler(stream.run.run_id)
        async for update in stream:
            assembler.add(update)
        ended = stream.final()
        assembler.finish(ended.result)
    return assembler.take(), ended


def states(pieces: list[Piece]) -> list[Any]:
    return [
        piece.snapshot if not piece.delta else list(piece.delta) for piece in pieces if isinstance(piece, StatePiece)
    ]


async def test_a_stream_has_the_client_s_state_and_what_tools_change_in_it(store: HostStateStore) -> None:
    sent = {"steps": ["sent"], "title": "t" * 100}
    async with open_context(build_noting("one", "two", "three"), store=store) as (context, _):
        pieces, first = await read_stream(context, in_session("s", client_state=sent, forwarded_props={"a": 1}))
        assert states(pieces) == [sent, [{"op": "add", "path": "/steps/1", "value": "one"}]]
        result = next(piece for message in first.result.messages for piece in message.contents if piece.result)
        assert result.result == f"{sent} {{'a': 1}}"
        # The next run begins with what the session has stored.
        pieces, _ = await read_stream(context, in_session("s"))
        stored = {**sent, "steps": ["sent", "one"]}
        assert states(pieces) == [stored, [{"op": "add", "path": "/steps/2", "value": "two"}]]
        # A branch begins with the state after its run.
        branch = in_session("b", previous_run_id=first.run.run_id)
        pieces, _ = await read_stream(context, branch.replace(client_state=None))
        assert states(pieces)[:1] == [stored]


async def test_the_order_is_the_change_and_then_the_result_of_the_tool() -> None:
    async with open_context(build_noting("one")) as (context, _):
        pieces, _ = await read_stream(context, in_session("s"))
    kinds = [type(piece).__name__ for piece in pieces]
    assert kinds.index("CallPiece") < kinds.index("StatePiece") < kinds.index("ResultPiece")


async def test_a_run_without_a_stream_stores_the_state_too(store: HostStateStore) -> None:
    async with open_context(build_noting("one", "two"), store=store) as (context, _):
        await context.run(in_session("s"), caller())
        pieces, _ = await read_stream(context, in_session("s"))
        assert states(pieces)[0] == {"steps": ["one"]}


async def test_a_background_stream_has_the_changes_too(store: HostStateStore) -> None:
    async with open_context(build_noting("one"), store=store) as (context, _):
        asked = in_session("s", background=True, stream=True, client_state={"steps": [], "title": "t" * 100})
        async with await context.stream(asked, caller()) as queued:
            run_id = queued.run.run_id
        async with await context.runs.follow(caller(), run_id) as stream:
            changes = [state_in(update) async for update in stream]
        snapshot, change = [one for one in changes if one is not None]
        assert snapshot[0] == {"steps": [], "title": "t" * 100}
        assert change[1] == [{"op": "add", "path": "/steps/0", "value": "one"}]


async def test_providers_are_bound_to_the_state_and_the_properties() -> None:
    watching = Watching()
    async with open_context(build_noting("one", context_providers=[watching])) as (context, _):
        await context.run(in_session("s", client_state={"a": 1}, forwarded_props={"b": 2}), caller())
    assert watching.seen == [({"a": 1}, {"b": 2}, {"a": 1})]


async def test_a_state_that_is_too_large_is_refused_before_anything_is_written() -> None:
    async with open_context(build_noting("one")) as (context, _):
        with pytest.raises(InvalidRequestError, match="client state") as refused:
            await context.run(in_session("s", client_state="x" * MAX_STATE_BYTES), caller())
        assert refused.value.param == "client_state"
        assert (await context.sessions.transcript(caller(), key="s")).messages == ()


async def test_a_run_without_state_streams_and_stores_none() -> None:
    async with open_context(agent(["hi"])) as (context, _):
        pieces, ended = await read_stream(context, in_session("s"))
        assert states(pieces) == []
        assert ended.run.shared_state is None


async def test_the_ids_of_the_stream_are_those_of_the_transcript(store: HostStateStore) -> None:
    async with open_context(build_noting("one", "two"), store=store) as (context, _):
        runs, ids = [], []
        for _ in range(2):
            pieces, ended = await read_stream(context, in_session("s"))
            runs.append(ended.run.run_id)
            ids.append(list(dict.fromkeys(piece.message_id for piece in pieces if piece.message_id)))
        transcript = (await context.sessions.transcript(caller(), key="s")).messages
        assert [said.run_id for said in transcript] == [runs[0]] * 4 + [runs[1]] * 4
        assert [said.message.role for said in transcript] == ["user", "assistant", "tool", "assistant"] * 2
        assert [said.message_id for said in transcript[1:4]] == ids[0]
        assert [said.message_id for said in transcript[5:]] == ids[1]
        assert run_of_answer(ids[1][0]) == runs[1]


async def test_the_id_of_a_client_s_message_is_kept() -> None:
    async with open_context(agent(["hi"])) as (context, _):
        await context.run(in_session("s").replace(input=Message("user", ["hello"], message_id="theirs")), caller())
        asked, answered = (await context.sessions.transcript(caller(), key="s")).messages
        assert asked.message_id == "theirs"
        assert asked.run_id == answered.run_id
        assert run_of_answer(str(answered.message_id)) == answered.run_id
