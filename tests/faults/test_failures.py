"""The target, a hook or the store fails: the caller gets an error in the channel's shape and no secrets."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import AgentResponse, Content, Executor, Message, WorkflowBuilder, WorkflowContext, handler
from pydantic import BaseModel

from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import StoreError
from frontdesk.stores.memory.store import InMemoryStateStore
from tests.faults.test_bad_bodies import assert_refused
from tests.scenarios.cast import PlainAgent, ScriptedClient, build_scripted, echo, spell
from tests.scenarios.desk import InvocationsHost, open_client

SECRET = "password=hunter2"


def _raise(*_: Any, **__: Any) -> Any:
    raise RuntimeError(SECRET)


async def _fail(text: str) -> str:
    raise RuntimeError(SECRET)


async def _breaks_at_once(text: str) -> AsyncIterator[str]:
    raise RuntimeError(SECRET)
    yield


async def _breaks_later(text: str) -> AsyncIterator[str]:
    yield "so far "
    raise RuntimeError(SECRET)


class BrokenAgent(PlainAgent):
    """Fails before it has anything to give."""

    run = _raise


class AnswersNonsense(PlainAgent):
    """Answers with something that is no answer."""

    def run(self, messages: Any = None, *, stream: bool = False, **_: Any) -> Any:
        return 42 if stream else asyncio.sleep(0, 42)


class Broken(Executor):
    """A step that fails."""

    @handler
    async def fail(self, text: str, context: WorkflowContext[str, str]) -> None:
        raise RuntimeError(SECRET)


def _build_broken_workflow() -> WorkflowBuilder:
    broken = Broken("broken")
    return WorkflowBuilder(name="broken", start_executor=broken, output_from=[broken])


TARGETS: dict[str, Any] = {
    "function": lambda: _fail,
    "generator": lambda: _breaks_at_once,
    "generator after a piece": lambda: _breaks_later,
    "agent": lambda: build_scripted(_raise),
    "plain agent": BrokenAgent,
    "agent that answers nonsense": AnswersNonsense,
    "workflow": _build_broken_workflow,
}


def _found_in_log(caplog: pytest.LogCaptureFixture, run_id: str) -> bool:
    return any(run_id in record.getMessage() and record.exc_info for record in caplog.records)


@pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS)
async def test_a_target_failed(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with open_client(make()) as desk:
        response = await desk.ask("it", session_id="s")
        # No error of HTTP's: clients repeat those, and the target has run.
        assert (response.status_code, response.json()["status"]) == (200, "failed")
        assert response.headers["x-should-retry"] == "false"
        error = response.json()["error"]
        assert error["code"] == "target_failed"
        assert SECRET not in response.text
        assert "RuntimeError" not in response.text
        assert response.headers["x-agent-invocation-id"] == error["id"]
        assert _found_in_log(caplog, error["id"])
        await _check_failed_and_forgotten(desk, error["id"])


@pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS)
async def test_a_target_failed_in_a_stream(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with open_client(make()) as desk:
        response = await desk.ask("it", session_id="s", stream=True)
        assert SECRET not in response.text
        assert "RuntimeError" not in response.text
        run_id = response.headers["x-agent-invocation-id"]
        assert _found_in_log(caplog, run_id)
        assert response.status_code == 200
        assert "event: failed" in response.text
        await _check_failed_and_forgotten(desk, run_id)


async def _check_failed_and_forgotten(desk: InvocationsHost, run_id: str) -> None:
    """The run is kept as failed with its question, and the session is free."""
    run = (await desk.get(run_id)).json()
    assert (run["status"], run["error"]["code"], run["error"]["id"]) == ("failed", "target_failed", run_id)
    assert SECRET not in str(run)
    (question,) = desk.history("s")
    assert (question.text, question.additional_properties["hosting"]["status"]) == ("it", "failed")
    assert not desk.active
    assert (await desk.ask("again", session_id="s")).json()["error"]["code"] == "target_failed"


async def test_a_target_failed_after_its_stream_had_begun() -> None:
    async with open_client(_breaks_later) as desk:
        started, update, failed = await desk.events("it")
        assert (started.name, update.data["text"], failed.name) == ("started", "so far ", "failed")
        assert failed.data["error"]["code"] == "target_failed"
        assert failed.data["error"]["id"] == failed.data["id"] == started.data["id"]


HOOKS = {"raised": _raise, "returned nothing": lambda *_, **__: None, "returned words": lambda *_, **__: "x"}


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
@pytest.mark.parametrize("body", [{}, {"stream": True}, {"background": True}], ids=["json", "stream", "background"])
async def test_a_run_hook(hook: Any, body: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    async with open_client(echo, InvocationsChannel(run_hook=hook)) as desk:
        response = await desk.ask("it", session_id="s", **body)
        assert assert_refused(response, 422, "hook_failed")["param"] == "run_hook"
        assert SECRET not in response.text
        assert [record.exc_info for record in caplog.records if "run_hook" in record.getMessage()]
        assert desk.untouched()


async def test_a_response_hook_raised() -> None:
    async with open_client(spell, InvocationsChannel(response_hook=_raise)) as desk:
        response = await desk.ask("it", session_id="s")
        assert assert_refused(response, 422, "hook_failed")["param"] == "response_hook"
        last = (await desk.events("it", session_id="s"))[-1]
        assert (last.name, last.data["error"]["code"]) == ("failed", "hook_failed")
        assert SECRET not in response.text + str(last)
        # The agent did its work, and what it said is kept.
        assert desk.list_texts("s") == ["it", "it"] * 2
        assert not desk.active


async def test_a_stream_hook_raised() -> None:
    async with open_client(spell, InvocationsChannel(stream_transform_hook=_raise)) as desk:
        last = (await desk.events("it", session_id="s"))[-1]
        assert (last.name, last.data["error"]["code"]) == ("failed", "hook_failed")
        assert desk.run(last.data["id"]).status == "failed"
        assert desk.list_texts("s") == ["it"]
        assert not desk.active


class Weather(BaseModel):
    """What the model is asked for."""

    degrees: int


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_broke_its_promise_of_structure(stream: bool) -> None:
    agent = build_scripted(lambda _: ["it is warm"], default_options={"response_format": Weather})
    assert isinstance(agent.client, ScriptedClient)
    async with open_client(agent) as desk:
        response = await desk.ask("it", session_id="s", stream=stream)
        assert "target_failed" in response.text
        assert "it is warm" not in response.text or stream
        run = await desk.get(response.headers["x-agent-invocation-id"])
        assert (run.status_code, run.json()["status"]) == (200, "failed")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_target_said_what_json_can_t_say(stream: bool) -> None:
    async def half_a_pair(text: str) -> str:
        return "\ud83d"

    async with open_client(half_a_pair) as desk:
        response = await desk.ask("it", stream=stream)
        assert response.headers["content-type"].startswith(("application/json", "text/event-stream"))
        assert "event: completed" in response.text if stream else response.json()["text"] == "\ud83d"
        assert not desk.active


async def test_a_target_returned_objects_of_its_own() -> None:
    class Thing:
        def __repr__(self) -> str:
            return "a thing"

    async def things(text: str) -> AgentResponse[Any]:
        value: Any = [Thing()]
        content = Content.from_function_result("call-1", result={"a": Thing(), (1, 2): {3}})
        return AgentResponse(messages=[Message("assistant", [Content.from_text("here"), content])], value=value)

    async with open_client(things, InvocationsChannel(tool_calls="show")) as desk:
        for stream in (False, True):
            response = await desk.ask("it", stream=stream)
            assert response.status_code == 200
            assert "here" in response.text
        assert not desk.active


class RefusingStore(InMemoryStateStore):
    """A store that refuses every write while it is told to."""

    refusing = True

    def transaction(self) -> Any:
        if self.refusing:
            raise StoreError(SECRET)
        return super().transaction()


@pytest.mark.parametrize("stream", [False, True])
async def test_the_store_refused_the_end_of_a_run(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    store = RefusingStore()
    async with open_client(echo, store=store, session_wait_seconds=0) as desk:
        response = await desk.ask("it", session_id="s", stream=stream)
        assert "you said it" not in response.text or stream
        assert "event: completed" not in response.text
        assert SECRET not in response.text
        if stream:
            assert "event: failed" in response.text
        else:
            failed = response.json()
            assert (failed["status"], failed["error"]["code"]) == ("failed", "internal_error")
            # The target has run, and what became of that could not be written: whoever tries again runs it twice.
            assert response.headers["x-should-retry"] == "false"
        assert any(record.exc_info for record in caplog.records if record.levelno >= logging.ERROR)
        assert not desk.active
        store.refusing = False
        assert (await desk.ask("again", session_id="s")).status_code == 200
        assert desk.list_texts("s") == ["again", "you said again"]


async def test_the_store_refused_a_background_run() -> None:
    store = RefusingStore()
    async with open_client(echo, store=store, max_background_runs=1, max_background_runs_per_caller=1) as desk:
        for _ in range(3):
            response = await desk.ask("it", background=True, headers={"x-agent-invocation-id": "mine"})
            assert response.status_code >= 500
            assert response.json()["error"]["code"] != "too_many_requests"
        store.refusing = False
        assert (await desk.ask("it", background=True, headers={"x-agent-invocation-id": "mine"})).status_code == 202
        assert (await desk.wait_for_end("mine"))["status"] == "completed"
