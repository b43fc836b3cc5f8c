"""A context provider knows the request that it works for, while it works for it and no longer."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    Content,
    ContextProvider,
    Message,
    WorkflowBuilder,
    WorkflowExecutor,
    tool,
)

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, ChannelRequest, ChannelSession
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.cast import ScriptedClient, call
from tests.scenarios.desk import open_client, until
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
    async with open_client(_agent(provider, lambda _: ["a", "b"])) as desk:
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

    async with open_client(_agent(provider, fail)) as desk:
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
    async with open_client(held.agent(provider)) as desk:
        asked = asyncio.create_task(desk.ask(stream=stream, headers=MINE))
        await held.began.wait()
        assert provider.present == ["mine"]
        await desk.cancel("mine")
        await asked
        assert provider.present == []


async def test_it_forgets_them_after_an_abandoned_stream(provider: Recording) -> None:
    held = _Held()
    async with open_client(held.agent(provider)) as desk:
        async with desk.open_stream(headers=MINE) as (_, events):
            assert (await anext(events)).name == "started"
            await held.began.wait()
            assert provider.present == ["mine"]
        await until(lambda: not desk.active)
        assert provider.present == []
        assert (await desk.get("mine")).json()["status"] == "cancelled"


async def test_two_at_once_are_told_their_own(provider: Recording) -> None:
    async with open_client(_agent(provider, lambda _: ["a"])) as desk:
        names = [f"run-{number}" for number in range(10)]
        asked = (desk.ask(stream=True, headers={"x-agent-invocation-id": name}) for name in names)
        await asyncio.gather(*asked)
        assert sorted(told["response_id"] for told in provider.told) == sorted(names)
        assert sorted(str(name) for name in provider.known_in_run) == sorted(names)
        assert provider.present == []


def _workflow(provider: Recording, *, as_agent: bool, nested: bool) -> Any:
    def build() -> Any:
        agent = _agent(provider, lambda _: ["a"])
        workflow = WorkflowBuilder(name="outer", start_executor=AgentExecutor(agent, id="inner")).build()
        if nested:
            inside = WorkflowExecutor(workflow, id="within")
            workflow = WorkflowBuilder(name="around", start_executor=inside).build()
        return workflow.as_agent() if as_agent else workflow

    return build


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("as_agent", "nested"), [(False, False), (False, True), (True, False)])
async def test_an_agent_inside_a_workflow_was_never_told(
    provider: Recording, stream: bool, as_agent: bool, nested: bool
) -> None:
    said: Any = "hello" if as_agent else None
    fits = InvocationsChannel(run_hook=lambda request, **_: request.replace(input=said or [Message("user", ["hello"])]))
    async with open_client(_workflow(provider, as_agent=as_agent, nested=nested), fits) as desk:
        answer = await desk.ask(stream=stream, session_id="s", headers=MINE)
        assert answer.status_code == 200, answer.text
        assert [told["response_id"] for told in provider.told] == ["mine"]
        assert provider.known_in_run == ["mine"]
        assert provider.present == []


class Named(Recording):
    """Takes the attributes, and nothing of what it has no use for."""

    @contextmanager
    def bind_request_context(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, response_id: str, attributes: Any
    ) -> Iterator[None]:
        self.told.append({"response_id": response_id, "attributes": dict(attributes)})
        yield


async def test_a_provider_was_not_told_the_attributes_of_a_request() -> None:
    provider = Named()
    channels = [ResponsesChannel(), InvocationsChannel(extra_fields="attributes")]
    async with open_client(_agent(provider, lambda _: ["a"]), channels=channels) as desk:
        answer = await desk.client.post("/responses", json={"input": "hello", "shop": "7"})
        assert answer.status_code == 200, answer.text
        await desk.ask(shop="8")
    assert [told["attributes"] for told in provider.told] == [{"shop": "7"}, {"shop": "8"}]


class Wants(Recording):
    """Asks for something that nobody tells."""

    @contextmanager
    def bind_request_context(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, response_id: str, tenant: str
    ) -> Iterator[None]:
        yield


@pytest.mark.parametrize("inside", [False, True])
def test_a_provider_that_can_not_be_told_was_an_error_of_each_request(inside: bool) -> None:
    target = _workflow(Wants(), as_agent=False, nested=False) if inside else _agent(Wants(), lambda _: ["a"])
    with pytest.raises(ChannelConfigurationError, match=r"bind_request_context.*of Wants can't be called.*tenant"):
        AgentFrameworkHost(target, channels=[InvocationsChannel()])


async def test_what_a_hook_says_of_the_session_reaches_the_provider() -> None:
    def golden(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(session=ChannelSession(key="visit", attributes={"plan": "gold"}))

    recording = Recording()
    agent = Agent(ScriptedClient(lambda _: ["ok"]), name="Concierge", context_providers=[recording])
    async with open_client(agent, InvocationsChannel(run_hook=golden)) as desk:
        assert (await desk.ask()).json()["session_id"] == "visit"
    async with open_client(agent) as desk:
        await desk.ask()
    assert [told["session_attributes"] for told in recording.told] == [{"plan": "gold"}, {}]
