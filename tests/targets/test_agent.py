"""Agents as targets: what their `run` takes is found out, not assumed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar, cast

import pytest
from agent_framework import (
    Agent,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    Content,
    ContextProvider,
    Message,
    ResponseStream,
    tool,
)
from msgspec import structs
from pydantic import BaseModel

from frontdesk.errors import ChannelConfigurationError, InvalidRequestError
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.identity import IsolationKeys
from frontdesk.models.request import ClientTool
from frontdesk.scripted import ScriptedChatClient
from frontdesk.targets.agent import AgentTarget
from frontdesk_testing import EchoAgent, FailingAgent, GatedAgent
from tests.sessions.admitted import Room
from tests.targets.turns import adapt_target, run, stream, turn_of


@tool(approval_mode="never_require")
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def update(text: str) -> AgentResponseUpdate:
    return AgentResponseUpdate(contents=[Content.from_text(text)], role="assistant")


async def speak(*words: str) -> AsyncIterator[AgentResponseUpdate]:
    for word in words:
        yield update(word)


class Shaped(EchoAgent):
    """An agent that returns for `stream=True` whatever a test wants."""

    def __init__(self, started: Any) -> None:
        super().__init__("shaped")
        self.started = started

    def run(self, messages: Any = None, *, stream: bool = False, session: AgentSession | None = None) -> Any:
        return self.started() if stream else super().run(messages, session=session)


class TestWhatItTakes:
    def test_what_an_agent_is_called_and_takes(self) -> None:
        assert adapt_target(EchoAgent("parrot")).info == TargetInfo(
            name="parrot", kind="agent", description="Says what it heard.", history="host"
        )
        info = adapt_target(Agent(ScriptedChatClient([]), name="clerk", description="Adds.", tools=[add])).info
        assert info == TargetInfo(
            name="clerk",
            kind="agent",
            description="Adds.",
            options=True,
            tools=True,
            tool_names=("add",),
            history="provider",
        )

    def test_an_agent_without_a_name_is_called_by_its_id(self) -> None:
        assert adapt_target(Agent(ScriptedChatClient([]), id="agent-7")).info.name == "agent-7"

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"options": {"temperature": 0.5}}, "temperature"),
            ({"client_tools": (ClientTool(name="mine"),)}, "tools"),
            ({"said": {"typed": "input"}}, "input"),
            ({"said": None}, "input"),
        ],
        ids=["options", "tools", "typed input", "nothing"],
    )
    async def test_what_it_cannot_take_is_refused_by_name(self, fields: dict[str, Any], param: str) -> None:
        agent = EchoAgent()
        for way in (run, stream):
            with pytest.raises(InvalidRequestError) as caught:
                await way(agent, **fields)
            assert caught.value.param == param
        assert agent.seen == []

    async def test_options_reach_an_agent_that_takes_them(self) -> None:
        client = ScriptedChatClient(["one", "two"])
        agent = Agent(client, name="clerk")
        await run(agent, options={"temperature": 0.5})
        await stream(agent, options={"temperature": 0.7})
        assert [options["temperature"] for options in client.options] == [0.5, 0.7]

    async def test_a_tool_of_the_clients_is_declared_and_never_run(self) -> None:
        call = Content.from_function_call("call_1", "mine", arguments='{"x": 1}')
        client = ScriptedChatClient([[call]])
        schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
        result = await run(
            Agent(client, name="clerk"), client_tools=(ClientTool(name="mine", description="Mine.", parameters=schema),)
        )
        (declared,) = client.options[0]["tools"]
        assert (declared.name, declared.description) == ("mine", "Mine.")
        assert declared.parameters() == schema
        assert [content.type for content in result.messages[-1].contents] == ["function_call"]

    @pytest.mark.parametrize("name", ["add", "Add", "ADD"])
    async def test_a_tool_of_the_clients_cannot_take_the_name_of_the_hosts(self, name: str) -> None:
        client = ScriptedChatClient([])
        with pytest.raises(InvalidRequestError) as caught:
            await run(Agent(client, name="clerk", tools=[add]), client_tools=(ClientTool(name=name),))
        assert caught.value.param == "tools"
        assert client.seen == []

    async def test_an_agent_that_takes_any_keyword_gets_the_session_and_no_more(self) -> None:
        got: dict[str, Any] = {}

        class Greedy(EchoAgent):
            def run(self, messages: Any = None, *, stream: bool = False, **kwargs: Any) -> Any:
                got.update(kwargs)
                return super().run(messages, stream=stream)

        await run(Greedy())
        assert set(got) == {"session"}
        with pytest.raises(InvalidRequestError):
            await run(Greedy(), options={"temperature": 1})

    async def test_an_agent_that_takes_no_session_gets_none(self) -> None:
        class Forgetful(EchoAgent):
            def run(self, messages: Any = None, *, stream: bool = False) -> Any:  # type: ignore[override]
                return super().run(messages, stream=stream)

        assert (await run(Forgetful())).text == "hello"
        assert (await stream(Forgetful()))[1].text == "hello"

    async def test_without_a_session_none_is_passed(self) -> None:
        got: list[Any] = []

        class Curious(EchoAgent):
            def run(self, messages: Any = None, *, stream: bool = False, session: AgentSession | None = None) -> Any:
                got.append(session)
                return super().run(messages, stream=stream)

        await run(Curious(), session_mode="disabled")
        assert got == [None]

    @pytest.mark.parametrize(
        "target",
        [object(), "agent", 7, None, EchoAgent, ScriptedChatClient([])],
        ids=["object", "text", "number", "none", "class", "client"],
    )
    def test_what_is_no_agent_is_said_so(self, target: Any) -> None:
        with pytest.raises(ChannelConfigurationError) as caught:
            adapt_target(target)
        assert caught.value.findings[0].startswith("target: ")

    def test_half_an_agent_is_none(self) -> None:
        class Half:
            id = name = description = "half"

            async def run(self, messages: Any = None) -> Any: ...

        with pytest.raises(ChannelConfigurationError, match="create_session"):
            adapt_target(Half())


class TestAnswers:
    async def test_the_result_is_the_agents_own(self) -> None:
        image = Content.from_uri("https://example.com/a.png", media_type="image/png")
        answer = AgentResponse(
            messages=[Message("assistant", [Content.from_text_reasoning(text="hm"), Content.from_text("yes"), image])],
            usage_details={"total_token_count": 7},
        )

        class Own(EchoAgent):
            def run(self, messages: Any = None, *, stream: bool = False, session: AgentSession | None = None) -> Any:
                return asyncio.sleep(0, answer)

        assert await run(Own()) is answer

    async def test_a_structured_answer_keeps_its_value(self) -> None:
        class Mood(BaseModel):
            mood: str

        options: Any = {"response_format": Mood}
        for way in ("run", "stream"):
            agent = Agent(ScriptedChatClient(['{"mood": "good"}']), name="x", default_options=options)
            result = await run(agent) if way == "run" else (await stream(agent))[1]
            assert result.value == Mood(mood="good")

    async def test_tools_run_and_are_seen_in_the_stream(self) -> None:
        call = Content.from_function_call("call_1", "add", arguments='{"a": 1, "b": 2}')
        agent = Agent(ScriptedChatClient([[call], "it is 3"]), name="x", tools=[add])
        updates, final = await stream(agent)
        kinds = [content.type for one in updates for content in one.contents]
        assert [kind for kind in kinds if kind != "text"] == ["function_call", "function_result"]
        assert final.text == "it is 3"

    @pytest.mark.parametrize(
        "started",
        [
            lambda: speak("a ", "b"),
            lambda: ResponseStream(speak("a ", "b"), finalizer=AgentResponse.from_updates),
            lambda: asyncio.sleep(0, speak("a ", "b")),
            lambda: asyncio.sleep(0, ResponseStream(speak("a ", "b"), finalizer=AgentResponse.from_updates)),
        ],
        ids=["generator", "stream", "coroutine of a generator", "coroutine of a stream"],
    )
    async def test_a_stream_comes_in_many_shapes(self, started: Any) -> None:
        updates, final = await stream(Shaped(started))
        assert [one.text for one in updates] == ["a ", "b"]
        assert final.text == "a b"

    async def test_an_error_comes_through(self) -> None:
        agent = FailingAgent(RuntimeError("broken"), after=1)
        with pytest.raises(RuntimeError, match="broken"):
            await run(agent)
        with pytest.raises(RuntimeError, match="broken"):
            await stream(agent)

    async def test_a_stream_that_is_left_early_ends_the_run(self) -> None:
        agent = GatedAgent()
        async with turn_of("one two") as turn:
            started = await adapt_target(agent).stream(turn)
            async for one in started:
                assert one.text == "one "
                break
            await started.close()
        await agent.cancelled.wait()
        assert agent.running == 0


class TestHistory:
    async def test_a_plain_agent_gets_the_stored_messages_from_the_host(self) -> None:
        remaining, agent = Room(), EchoAgent()
        await remaining.say("one", key="mine")
        async with turn_of("two", remaining=remaining, key="mine") as turn:
            await adapt_target(agent).run(turn)
            assert [message.text for message in agent.seen[0]] == ["one", "re: one", "two"]
            assert turn.staged is not None
            assert [message.text for message in turn.staged] == ["two", "two"]

    async def test_an_agent_of_the_frameworks_own_gets_them_once(self) -> None:
        remaining, client = Room(), ScriptedChatClient(["re: two"])
        await remaining.say("remember me", key="mine")
        target = adapt_target(Agent(client, name="clerk"))
        async with turn_of("two", remaining=remaining, key="mine") as turn:
            await target.run(turn)
            assert [message.text for message in client.seen[0]] == ["remember me", "re: remember me", "two"]
            assert turn.staged is not None
            assert [message.text for message in turn.staged] == ["two", "re: two"]
            assert turn.session is not None
            assert "remember me" not in str(turn.session.to_dict())

    async def test_a_service_that_stores_is_told_not_to(self) -> None:
        class Storing(ScriptedChatClient):
            STORES_BY_DEFAULT: ClassVar[bool] = True

        client = Storing(["one", "two"])
        agent = Agent(client, name="clerk")
        await run(agent)
        await stream(agent, options={"temperature": 1})
        assert [options["store"] for options in client.options] == [False, False]

    async def test_an_operator_who_wants_it_stored_is_heard(self) -> None:
        class Storing(ScriptedChatClient):
            STORES_BY_DEFAULT: ClassVar[bool] = True

        client, options = Storing(["one"]), {"store": True}
        await run(Agent(client, name="clerk", default_options=cast(Any, options)))
        assert client.options[0]["store"] is True

    async def test_a_service_that_stores_nothing_is_told_nothing(self) -> None:
        client = ScriptedChatClient(["one"])
        await run(Agent(client, name="clerk"))
        assert "store" not in client.options[0]


class Bound(ContextProvider):
    """A provider that wants to know the request; it writes down when it knows it."""

    def __init__(self, *, asynchronous: bool = False) -> None:
        super().__init__("bound")
        self.asynchronous = asynchronous
        self.log: list[Any] = []

    def bind_request_context(
        self, *, response_id: str, previous_response_id: str | None, isolation: IsolationKeys
    ) -> Any:
        known = (response_id, previous_response_id, isolation)
        return self._later(known) if self.asynchronous else self._now(known)

    @contextmanager
    def _now(self, known: Any) -> Iterator[None]:
        self.log.append(known)
        try:
            yield
        finally:
            self.log.append("forgotten")

    @asynccontextmanager
    async def _later(self, known: Any) -> AsyncIterator[None]:
        with self._now(known):
            yield


KNOWN = ("run_1", None, IsolationKeys(user_key="alice", chat_key="ses_1"))


async def test_the_keys_of_a_trusted_platform_are_handed_on_to_providers() -> None:
    provider, keys = Bound(), IsolationKeys(user_key="u-1", chat_key="c-1", call_id="i-1")
    agent = Agent(ScriptedChatClient(["hi"]), name="x", context_providers=[provider])
    async with turn_of() as turn:
        admitted = turn.admitted
        turn.admitted = structs.replace(admitted, caller=admitted.caller.replace(isolation=keys))
        await adapt_target(agent).run(turn)
    assert provider.log == [("run_1", None, keys), "forgotten"]


@pytest.mark.parametrize("asynchronous", [False, True])
class TestRequestContext:
    async def test_it_is_known_for_the_time_of_the_run(self, asynchronous: bool) -> None:
        for way in (run, stream):
            provider = Bound(asynchronous=asynchronous)
            await way(Agent(ScriptedChatClient(["hi"]), name="x", context_providers=[provider]))
            assert provider.log == [KNOWN, "forgotten"]

    async def test_it_is_forgotten_when_the_run_fails(self, asynchronous: bool) -> None:
        for way in (run, stream):
            provider = Bound(asynchronous=asynchronous)
            # With an empty script the client fails.
            with pytest.raises(AssertionError, match="script"):
                await way(Agent(ScriptedChatClient([]), name="x", context_providers=[provider]))
            assert provider.log == [KNOWN, "forgotten"]

    async def test_it_is_forgotten_when_a_stream_is_left_early_or_never_read(self, asynchronous: bool) -> None:
        for read in (True, False):
            provider = Bound(asynchronous=asynchronous)
            agent = Agent(ScriptedChatClient(["one two"]), name="x", context_providers=[provider])
            async with turn_of() as turn:
                started = await adapt_target(agent).stream(turn)
                if read:
                    async for _ in started:
                        break
                assert provider.log == [KNOWN]
                await started.close()
            assert provider.log == [KNOWN, "forgotten"]

    async def test_it_is_forgotten_when_a_stream_does_not_start(self, asynchronous: bool) -> None:
        provider = Bound(asynchronous=asynchronous)

        def broken() -> Any:
            raise RuntimeError("broken")

        agent = Shaped(broken)
        agent.context_providers = [provider]  # type: ignore[attr-defined]
        with pytest.raises(RuntimeError, match="broken"):
            await stream(agent)
        assert provider.log == [KNOWN, "forgotten"]


def test_a_history_of_the_agents_own_is_a_warning() -> None:
    (warning,) = AgentTarget(EchoAgent(), "own").warnings
    assert "history provider of its own" in warning


def test_a_target_has_no_findings() -> None:
    target = adapt_target(EchoAgent())
    assert isinstance(target, AgentTarget)
    assert (target.findings, target.warnings) == ([], [])
