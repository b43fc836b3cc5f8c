"""Workflows as targets: each run has its own, as far as that can be had."""

import asyncio
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    AgentResponse,
    Executor,
    InMemoryCheckpointStorage,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowRunResult,
    executor,
    handler,
    response_handler,
    workflow,
)

from frontdesk.errors import ChannelConfigurationError, InvalidRequestError, TargetError, UnsupportedError
from frontdesk.history.staged import install_history
from frontdesk.models.delivery import Route
from frontdesk.models.request import ClientTool
from frontdesk.scripted import ScriptedChatClient
from frontdesk.targets.checkpoints import Checkpoints
from frontdesk.targets.detect import adapt
from frontdesk.targets.workflow import WorkflowTarget
from tests.sessions.admitted import Room
from tests.targets.turns import adapt_target, run, stream, turn_of


@dataclass
class Order:
    number: int


class Notebook(Executor):
    """Keeps what it heard, as executors may, and says all of it."""

    def __init__(self, name: str = "notebook") -> None:
        super().__init__(id=name)
        self.heard: list[str] = []

    @handler
    async def hear(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        self.heard.append(text)
        for _ in range(3):
            await asyncio.sleep(0)
        await ctx.yield_output(" ".join(self.heard))


class Talk(Executor):
    """Hears a conversation."""

    @handler
    async def hear(self, said: list[Message], ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(said[-1].text)


class Clerk(Executor):
    @handler
    async def take(self, order: Order, ctx: WorkflowContext[Never, Any]) -> None:
        await ctx.yield_output(f"order {order.number}")
        await ctx.yield_output(order)


class Gate(Executor):
    """Says a word, and then waits."""

    def __init__(self) -> None:
        super().__init__(id="gate")
        self.started = asyncio.Event()
        self.release = asyncio.Event()

    @handler
    async def wait(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output("first ")
        self.started.set()
        await self.release.wait()
        await ctx.yield_output(text)


class Ask(Executor):
    """Asks back."""

    def __init__(self, name: str = "ask") -> None:
        super().__init__(id=name)

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.request_info({"question": text}, str)

    @response_handler
    async def hear(self, original: dict, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(answer)


def builder(executor: Executor | None = None, name: str | None = "book") -> WorkflowBuilder:
    first = executor or Notebook()
    return WorkflowBuilder(name=name, start_executor=first, output_from=[first])


def build() -> Workflow:
    return builder().build()


def texts(result: WorkflowRunResult) -> list[Any]:
    return result.get_outputs()


class TestForms:
    @pytest.mark.parametrize("make", [build, builder, lambda: builder()], ids=["workflow", "builder", "lambda"])
    async def test_a_function_that_builds_one_is_called_for_each_run(self, make: Any) -> None:
        target = adapt_target(make)
        assert isinstance(target, WorkflowTarget)
        assert (target.findings, target.warnings) == ([], [])
        assert (target.info.name, target.info.kind) == ("book", "workflow")
        for text in ("one", "two"):
            async with turn_of(text) as turn:
                assert texts(await target.run(turn)) == [text]

    async def test_a_builder_is_copied_for_each_run(self) -> None:
        target = adapt_target(builder())
        assert target.warnings == []
        for text in ("one", "two"):
            async with turn_of(text) as turn:
                assert texts(await target.run(turn)) == [text]

    async def test_twenty_runs_of_one_builder_at_once_share_nothing(self) -> None:
        target = adapt_target(builder())

        async def ask(number: int) -> Any:
            async with turn_of(f"number {number}") as turn:
                if number % 2:
                    return texts(await target.run(turn))
                started = await target.stream(turn)
                async for _ in started:
                    pass
                return texts(await started.final())

        answers = await asyncio.gather(*(ask(number) for number in range(20)))
        assert answers == [[f"number {number}"] for number in range(20)]

    async def test_what_the_builder_is_used_for_elsewhere_does_not_show(self) -> None:
        notebook = Notebook()
        mine = builder(notebook)
        target = adapt_target(mine)
        await mine.build().run("elsewhere")
        assert notebook.heard == ["elsewhere"]
        async with turn_of("here") as turn:
            assert texts(await target.run(turn)) == ["here"]

    async def test_agents_in_a_builder_are_shared_because_their_clients_are_connections(self) -> None:
        client = ScriptedChatClient(lambda messages: f"heard {messages[-1].text}")
        client.connection = threading.Lock()  # type: ignore[attr-defined]
        executor = AgentExecutor(Agent(client, name="clerk"), id="clerk")
        target = adapt_target(WorkflowBuilder(name="book", start_executor=executor, output_from=[executor]))
        for text in ("one", "two"):
            async with turn_of(text) as turn:
                (answer,) = texts(await target.run(turn))
                assert answer.text == f"heard {text}"
        assert [len(messages) for messages in client.seen] == [1, 1]

    def test_a_builder_that_cannot_be_copied_is_said_so(self) -> None:
        notebook = Notebook()
        notebook.lock = threading.Lock()  # type: ignore[attr-defined]
        with pytest.raises(ChannelConfigurationError, match="function that creates the builder"):
            adapt_target(builder(notebook))

    def test_one_object_for_all_callers_is_refused_with_the_change_that_helps(self) -> None:
        """A bare workflow carried what one caller said to the next, and a warning was all that anybody heard of it."""
        same = builder(Talk("talk")).build()
        agent = same.as_agent()
        for target in (same, lambda: same):
            with pytest.raises(ChannelConfigurationError, match=r"target=build instead of target=build\(\)"):
                adapt_target(target)
        for target in (agent, lambda: agent, lambda: same.as_agent()):
            with pytest.raises(ChannelConfigurationError, match=r"target=lambda: build\(\)\.as_agent\(\)"):
                adapt_target(target)

    @pytest.mark.parametrize("as_agent", [False, True])
    def test_an_executor_that_all_builds_share_is_refused_by_name(self, as_agent: bool) -> None:
        talk = Talk("talk")
        forms: list[Any] = [lambda: builder(talk).build(), lambda: builder(talk)]
        one = builder(talk)
        forms.append(lambda: one)
        if as_agent:
            forms = [lambda: builder(talk).build().as_agent()]
        for make in forms:
            (finding,) = adapt_target(make).findings
            assert "executor talk is the same object" in finding

    def test_a_workflow_inside_that_all_builds_share_is_refused_by_name(self) -> None:
        inner = builder(Talk("inner"), "inner").build()
        agent = inner.as_agent()

        def nested() -> WorkflowBuilder:
            return builder(WorkflowExecutor(inner, id="outer"))

        def delegated() -> WorkflowBuilder:
            return builder(AgentExecutor(agent, id="outer"))

        for make in (nested, delegated):
            findings = adapt_target(make).findings
            assert findings[0].startswith("target: the workflow in executor outer is the same object")
            assert "executor outer/inner" in findings[1]

    async def test_a_workflow_as_an_agent_in_a_builder_is_copied_with_it(self) -> None:
        """Agents are shared between the copies of a builder, and this one keeps what was said in it."""

        class Counting(Talk):
            heard = 0

            @handler
            async def hear(self, said: list[Message], ctx: WorkflowContext[Never, str]) -> None:
                self.heard += 1
                await ctx.yield_output(f"{said[-1].text} {self.heard}")

        agent = builder(Counting("inner"), "inner").build().as_agent()
        target = adapt_target(builder(AgentExecutor(agent, id="outer")))
        assert target.findings == []
        for text in ("one", "two"):
            async with turn_of(text) as turn:
                (answer,) = texts(await target.run(turn))
                assert answer.text == f"{text} 1"

    def test_a_step_that_all_builds_share_makes_runs_wait_and_is_a_warning(self) -> None:
        @executor(id="step")
        async def step(text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(text)

        target = adapt_target(lambda: builder(step))
        assert target.findings == []
        (warning,) = target.warnings
        assert "executor step" in warning
        assert "wait for each other" in warning

    @pytest.mark.parametrize("make", [lambda: builder(name=None).build(), lambda: builder(name=None)])
    def test_a_workflow_needs_a_name(self, make: Any) -> None:
        (finding,) = adapt_target(make).findings
        assert "name=" in finding

    @pytest.mark.parametrize("returned", [None, "text", 7, object()])
    def test_a_function_that_builds_something_else_is_said_so(self, returned: Any) -> None:
        def make() -> Any:
            return returned

        with pytest.raises(ChannelConfigurationError, match=r"make\(\) returned"):
            adapt_target(make)

    def test_a_function_that_fails_is_said_so(self) -> None:
        def make() -> Any:
            raise RuntimeError("no such model")

        with pytest.raises(ChannelConfigurationError, match="no such model"):
            adapt_target(make)

    def test_a_function_that_needs_something_is_said_so(self) -> None:
        def answer(text: str) -> str:
            return text

        with pytest.raises(ChannelConfigurationError, match="answer"):
            adapt_target(answer)

    async def test_a_functional_workflow_is_one_too(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")

            @workflow(name="shout")
            async def shout(text: str) -> str:
                return text.upper()

            for target in (shout.build(), shout.build().as_agent(), lambda: shout.build().as_agent()):
                with pytest.raises(ChannelConfigurationError, match="build"):
                    adapt_target(target)
            for target in (shout, shout.build):
                found = adapt_target(target)
                assert (found.info.name, found.findings) == ("shout", [])
                async with turn_of("hello") as turn:
                    assert texts(await found.run(turn)) == ["HELLO"]


class TestPauses:
    @pytest.mark.parametrize("way", [run, stream])
    async def test_one_that_is_built_in_another_way_each_time_may_not_pause(self, way: Any) -> None:
        numbers = iter(range(100))

        def make() -> Workflow:
            return builder(Ask(f"ask {next(numbers)}")).build()

        assert "another one each time" in adapt_target(make).warnings[0]
        with pytest.raises(UnsupportedError, match="can't be paused"):
            await way(make)

    @pytest.mark.parametrize("way", [run, stream])
    async def test_the_checkpoint_of_a_pause_is_noted(self, way: Any) -> None:
        remaining = Room()
        result = await way(lambda: builder(Ask()), remaining=remaining, key="s")
        (asked,) = (result[1] if way is stream else result).get_request_info_events()
        assert asked.data == {"question": "hello"}

    async def test_a_question_is_staged_as_a_call(self) -> None:
        target = adapt_target(lambda: builder(Ask()))
        async with turn_of("hello") as turn:
            await target.prepare(turn)
            result = await target.run(turn)
            assert turn.checkpoint is not None
            assert turn.staged is not None
            (asked,) = turn.staged[-1].contents
        (event,) = result.get_request_info_events()
        assert (asked.type, asked.name, asked.call_id) == ("function_call", "request_info", event.request_id)


class TestStorages:
    def test_two_storages_are_one_too_many(self) -> None:
        def make() -> WorkflowBuilder:
            return WorkflowBuilder(name="ask", start_executor=Ask(), checkpoint_storage=InMemoryCheckpointStorage())

        for target in (make, make(), lambda: make().build()):
            (finding,) = adapt(target, install_history, Checkpoints.in_memory()).findings
            assert "leave one of them out" in finding
            assert adapt(target, install_history).findings == []

    async def test_the_storage_that_a_builder_brings_is_used(self) -> None:
        own = InMemoryCheckpointStorage()
        target = adapt_target(WorkflowBuilder(name="ask", start_executor=Ask(), checkpoint_storage=own))
        async with turn_of("hello") as turn:
            await target.prepare(turn)
            await target.run(turn)
            assert turn.checkpoint is not None
        assert turn.checkpoint.checkpoint_id in await own.list_checkpoint_ids(workflow_name="ask")

    async def test_one_that_gives_way_is_not_used_then(self, tmp_path: Path) -> None:
        own = InMemoryCheckpointStorage()
        given = Checkpoints.under(tmp_path, gives_way=True)
        built_with = WorkflowBuilder(name="ask", start_executor=Ask(), checkpoint_storage=own)
        target = adapt(built_with, install_history, given)
        assert target.findings == []
        async with turn_of("hello") as turn:
            await target.prepare(turn)
            await target.run(turn)
            assert turn.checkpoint is not None
        assert await own.list_checkpoint_ids(workflow_name="ask")
        assert await given.find(turn.checkpoint) is None

    async def test_a_checkpoint_that_no_pause_needs_may_be_lost_but_not_silently(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Full(InMemoryCheckpointStorage):
            async def save(self, checkpoint: WorkflowCheckpoint) -> str:
                raise OSError("disk full")

        target = adapt(build, install_history, Checkpoints.of(Full()))
        async with turn_of("hello") as turn:
            await target.prepare(turn)
            assert texts(await target.run(turn)) == ["hello"]
            assert turn.checkpoint is None
        assert "is unchanged" in caplog.text

    async def test_an_executor_that_cannot_say_its_state_fails_the_pause(self) -> None:
        class Secretive(Ask):
            async def on_checkpoint_save(self) -> dict[str, Any]:
                raise RuntimeError("no comment")

        with pytest.raises(TargetError, match="could not be saved"):
            await run(lambda: builder(Secretive()))

    async def test_executors_that_cannot_be_restored_start_anew_with_a_warning(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Forgetful(Notebook):
            async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
                raise RuntimeError("what was it?")

        remaining, target = Room(), adapt_target(lambda: builder(Forgetful()))
        for text in ("one", "two"):
            async with turn_of(text, remaining=remaining, key="s") as turn:
                await target.prepare(turn)
                result = await target.run(turn)
                assert texts(result) == [text]
                record = remaining.recorder.begin(turn)
                await remaining.recorder.record_completed(turn, record, result, Route(originating=True), ())
        assert "restored nothing" in caplog.text


class TestRuns:
    async def test_several_outputs_come_through_unchanged(self) -> None:
        order = Order(7)
        result = await run(lambda: builder(Clerk(id="clerk")), order)
        assert isinstance(result, WorkflowRunResult)
        assert texts(result) == ["order 7", order]
        updates, final = await stream(lambda: builder(Clerk(id="clerk")), order)
        assert [event.data for event in updates if event.type == "output"] == ["order 7", order]
        assert texts(final) == ["order 7", order]

    async def test_what_was_said_and_answered_is_staged(self) -> None:
        class ProactiveSender(Executor):
            @handler
            async def speak(self, text: str, ctx: WorkflowContext[Never, Any]) -> None:
                await ctx.yield_output("a text")
                await ctx.yield_output(Message("assistant", ["a message"]))
                await ctx.yield_output(AgentResponse(messages=[Message("assistant", ["a response"])]))
                await ctx.yield_output([Message("assistant", ["in a list"]), {"typed": 1}])
                await ctx.yield_output({"typed": 2})

        async with turn_of("hello") as turn:
            await adapt_target(lambda: builder(ProactiveSender(id="sender"))).run(turn)
            assert turn.staged is not None
            said = [message.text for message in turn.staged]
        assert said == ["hello", "a text", "a message", "a response", "in a list"]

    async def test_an_error_comes_through(self) -> None:
        class Broken(Executor):
            @handler
            async def fail(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
                raise RuntimeError("broken")

        for way in (run, stream):
            with pytest.raises(RuntimeError, match="broken"):
                await way(lambda: builder(Broken(id="broken")))

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"options": {"temperature": 1}}, "temperature"),
            ({"client_tools": (ClientTool(name="mine"),)}, "tools"),
            ({"said": {"typed": "input"}}, "input"),
            ({"said": None}, "input"),
        ],
        ids=["options", "tools", "typed input", "nothing"],
    )
    async def test_what_it_cannot_take_is_refused_by_name(self, fields: dict[str, Any], param: str) -> None:
        for way in (run, stream):
            with pytest.raises(InvalidRequestError) as caught:
                await way(build, **fields)
            assert caught.value.param == param

    async def test_typed_input_comes_through_a_hook_only(self) -> None:
        with pytest.raises(InvalidRequestError, match="Order"):
            await run(lambda: builder(Clerk(id="clerk")), "seven please")


async def test_the_input_types_of_a_workflow_are_known() -> None:
    target = WorkflowTarget(None, lambda: WorkflowBuilder(name="notes", start_executor=Notebook()).build())
    assert target.info.inputs == (str,)
