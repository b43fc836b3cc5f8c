"""A context provider knows the request that it works for, while it works for it and no longer."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from agent_framework import Agent, Content, ContextProvider, tool

from tests.scenarios.cast import ScriptedClient, call
from tests.scenarios.desk import open_desk, until
from tests.scenarios.test_cancel import MINE

_bound: ContextVar[dict[str, Any] | None] = ContextVar("bound", default=None)


class Recording(ContextProvider):
    """Notes what it is told; `present` is what it knows at the moment."""

    def __init__(self) -> None:
        super().__init__("recording")
        self.told: list[dict[str, Any]] = []
        self.present: list[str] = []
        self.known_in_run: list[str | None] = []

    @contextmanager
    def bind_request_context(self, **told: Any) -> Iterator[None]:
        token = _bound.set(told)
        self.told.append(told)
        self.present.append(told["response_id"])
        try:
            yield
        finally:
            self.present.remove(told["response_id"])
            _bound.reset(token)

    async def before_run(self, **_: Any) -> None:
        bound = _bound.get()
        self.known_in_run.append(None if bound is None else bound["response_id"])


class RecordingLater(Recording):
    """The same, with an async context manager."""

    @asynccontextmanager
    async def bind_request_context(self, **told: Any) -> AsyncIterator[None]:
        with super().bind_request_context(**told):
            await asyncio.sleep(0)
            yield


@pytest.fixture(params=[Recording, RecordingLater])
def provider(request: pytest.FixtureRequest) -> Recording:
    return request.param()


def _agent(provider: Recording, script: Any, **options: Any) -> Agent:
    return Agent(ScriptedClient(script), name="Bound", context_providers=[provider], **options)


@pytest.mark.parametrize("stream", [False, True])
async def test_it_knows_the_ids_during_the_run_and_forgets_them_after(provider: Recording, stream: bool) -> None:
    async with open_desk(_agent(provider, lambda _: ["a", "b"])) as desk:
        for name in ("one", "two"):
            await desk.ask(stream=stream, session_id="s", headers={"x-agent-invocation-id": name})
        assert provider.known_in_run == ["one", "two"]
        assert provider.present == []
        assert _bound.get() is None
        first, second = provider.told
        assert (first["response_id"], first["previous_response_id"]) == ("one", None)
        assert first["isolation"] == second["isolation"]
        (session,) = desk.sessions()
        assert first["isolation"].user_key == session.owner
        assert first["isolation"].chat_key == session.session_id


@pytest.mark.parametrize("stream", [False, True])
async def test_it_forgets_them_after_a_failure(provider: Recording, stream: bool) -> None:
    def fail(_: Any) -> Any:
        raise RuntimeError("no")

    async with open_desk(_agent(provider, fail)) as desk:
        response = await desk.ask(stream=stream)
        assert "target_failed" in response.text
        assert len(provider.told) == 1
        assert provider.present == []


class _Held:
    def __init__(self) -> None:
        self.began = asyncio.Event()

    def agent(self, provider: Recording) -> Agent:
        @tool(approval_mode="never_require")
        async def hold() -> str:
            """Holds."""
            self.began.set()
            await asyncio.Event().wait()
            return ""

        return _agent(provider, lambda _: [Content.from_text("so "), call("hold")], tools=[hold])


@pytest.mark.parametrize("stream", [False, True])
async def test_it_forgets_them_after_a_cancel(provider: Recording, stream: bool) -> None:
    held = _Held()
    async with open_desk(held.agent(provider)) as desk:
        asked = asyncio.create_task(desk.ask(stream=stream, headers=MINE))
        await held.began.wait()
        assert provider.present == ["mine"]
        await desk.cancel("mine")
        await asked
        assert provider.present == []


async def test_it_forgets_them_after_an_abandoned_stream(provider: Recording) -> None:
    held = _Held()
    async with open_desk(held.agent(provider)) as desk:
        async with desk.streaming(headers=MINE) as (_, events):
            assert (await anext(events)).name == "started"
            await held.began.wait()
            assert provider.present == ["mine"]
        await until(lambda: not desk.active)
        assert provider.present == []
        assert (await desk.get("mine")).json()["status"] == "cancelled"


async def test_two_at_once_are_told_their_own(provider: Recording) -> None:
    async with open_desk(_agent(provider, lambda _: ["a"])) as desk:
        names = [f"run-{number}" for number in range(10)]
        asked = (desk.ask(stream=True, headers={"x-agent-invocation-id": name}) for name in names)
        await asyncio.gather(*asked)
        assert sorted(told["response_id"] for told in provider.told) == sorted(names)
        assert sorted(str(name) for name in provider.known_in_run) == sorted(names)
        assert provider.present == []
