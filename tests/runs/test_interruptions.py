"""A background run whose process has ended: it fails, begins again or goes on, as it should, and never for ever."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler, tool

from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import RunStatus
from frontdesk.runs.background.worker import Next, after_interruption
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import GatedAgent
from frontdesk_testing.store_samples import job, run
from tests.scenarios.cast import build_scripted, call, echo
from tests.scenarios.desk import open_client, until
from tests.scenarios.test_cancel import MINE

# The status, what is known of the run, how many events it has shown, and what becomes of it.
CASES: list[tuple[RunStatus, dict[str, Any], int, Next]] = [
    ("queued", {}, 0, "run"),
    ("queued", {"cancelled": True}, 0, "cancel"),
    ("running", {}, 0, "fail"),
    ("running", {"cancelled": True, "on_interrupt": "restart"}, 0, "cancel"),
    ("running", {"on_interrupt": "restart"}, 0, "run"),
    ("running", {"on_interrupt": "restart"}, 1, "fail"),
    ("running", {"on_interrupt": "restart", "begun": True}, 0, "fail"),
    ("running", {"on_interrupt": "resume"}, 0, "fail"),
    ("completed", {}, 0, "nothing"),
    ("failed", {"cancelled": True}, 0, "nothing"),
]


@pytest.mark.parametrize(("status", "known", "events", "becomes"), CASES)
def test_what_becomes_of_it(status: RunStatus, known: dict[str, Any], events: int, becomes: Next) -> None:
    assert after_interruption(job(**known), run(status=status), events) == becomes


def test_one_that_was_deleted_is_nothing() -> None:
    assert after_interruption(job(), None, 0) == "nothing"


async def interrupt(target: Any, started: asyncio.Event, store: InMemoryStateStore, **options: Any) -> None:
    """Asks for something in the background, and stops the host in the middle of it."""
    stream = options.pop("stream", False)
    async with open_client(target, store=store, shutdown_grace_seconds=0, **options) as desk:
        if stream:
            async with desk.open_stream("one two", headers=MINE, background=True, session_id="s"):
                await started.wait()
                await until(lambda: store.runs.log)
        else:
            await desk.ask("one two", headers=MINE, background=True, session_id="s")
            await started.wait()
    assert desk.run("mine").status == "running"


@pytest.mark.parametrize("stream", [False, True])
async def test_it_fails_and_its_question_stays(stream: bool) -> None:
    agent, store = GatedAgent(), InMemoryStateStore()
    await interrupt(agent, agent.started, store, stream=stream)
    async with open_client(echo, store=store) as desk:
        ended = await desk.wait_for_end("mine")
        assert (ended["status"], ended["error"]["code"]) == ("failed", "interrupted")
        assert desk.list_texts("s") == ["one two"]
        assert desk.history("s")[0].additional_properties["hosting"]["status"] == "failed"
        assert (await desk.ask("more", session_id="s")).json()["text"] == "you said more"
        assert not store.background.jobs


async def test_it_begins_again_if_nothing_was_done_yet() -> None:
    began, store, said = asyncio.Event(), InMemoryStateStore(), []

    def slow(messages: Any) -> Any:
        said.append(messages[-1].text)
        began.set()
        return ["never" if len(said) == 1 else "said at last"]

    class Waits:
        """Holds a model that has not answered yet."""

        async def process(self, context: Any, call_next: Any) -> None:
            began.set()
            await asyncio.Event().wait()

    from agent_framework import ChatMiddleware

    class Held(ChatMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            await Waits().process(context, call_next)

    held = build_scripted(slow, middleware=[Held()])
    await interrupt(held, began, store, on_interrupt="restart")
    async with open_client(build_scripted([["said at last"]]), store=store, on_interrupt="restart") as desk:
        ended = await desk.wait_for_end("mine")
        assert (ended["status"], ended["text"]) == ("completed", "said at last")
        assert desk.list_texts("s") == ["one two", "said at last"]


async def test_a_tool_that_was_called_is_not_called_again() -> None:
    began, calls, store = asyncio.Event(), [], InMemoryStateStore()

    @tool(approval_mode="never_require")
    async def pay(item: str) -> str:
        """Pays."""
        calls.append(item)
        began.set()
        await asyncio.Event().wait()
        return "paid"

    def agent() -> Any:
        return build_scripted([[call("pay", item="tea")], ["done"]], tools=[pay])

    await interrupt(agent(), began, store, on_interrupt="restart")
    async with open_client(agent(), store=store, on_interrupt="restart") as desk:
        assert (await desk.wait_for_end("mine"))["error"]["code"] == "interrupted"
    assert calls == ["tea"]


async def test_what_was_said_is_not_said_again() -> None:
    agent, store = GatedAgent(), InMemoryStateStore()
    await interrupt(agent, agent.started, store, stream=True, on_interrupt="restart")
    async with open_client(echo, store=store, on_interrupt="restart") as desk:
        ended = await desk.wait_for_end("mine")
        assert (ended["status"], ended["error"]["code"]) == ("failed", "interrupted")
        assert len(await store.runs.events(desk.run("mine").owner, "mine")) == 1


async def test_a_hook_decides_for_one_request() -> None:
    agent, store = GatedAgent(), InMemoryStateStore()

    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(on_interrupt="restart")

    await interrupt(agent, agent.started, store, channel=InvocationsChannel(run_hook=hook))
    (kept,) = store.background.jobs.values()
    assert kept.on_interrupt == "restart"


class Step(Executor):
    """Says its name, waits at the gate if there is one, and hands on."""

    def __init__(self, name: str, gate: "Gate | None" = None) -> None:
        super().__init__(name)
        self.gate = gate

    @handler
    async def go(self, text: str, context: WorkflowContext[str, str]) -> None:
        if self.gate is not None:
            await self.gate.wait_once()
        await context.yield_output(f"{self.id} {text}. ")
        await context.send_message(text)


class Gate:
    """Holds a workflow half-way, the first time that it comes by."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.visits = 0

    async def wait_once(self) -> None:
        self.visits += 1
        if self.visits == 1:
            self.reached.set()
            await asyncio.Event().wait()

    def __deepcopy__(self, memo: Any) -> "Gate":
        return self


def steps(gate: Gate) -> Any:
    def build() -> Any:
        one, two, three = Step("one"), Step("two", gate), Step("three")
        builder = WorkflowBuilder(name="steps", start_executor=one, output_from=[one, two, three])
        return builder.add_edge(one, two).add_edge(two, three).build()

    return build


@pytest.mark.parametrize("stream", [False, True])
async def test_a_workflow_goes_on_from_its_checkpoint(stream: bool, tmp_path: Any) -> None:
    gate, store = Gate(), InMemoryStateStore()
    options = {"on_interrupt": "resume", "checkpoint_location": tmp_path / "points"}
    await interrupt(steps(gate), gate.reached, store, stream=stream, **options)
    async with open_client(steps(gate), store=store, **options) as desk:
        ended = await desk.wait_for_end("mine")
        assert ended["status"] == "completed", ended
        assert ended["outputs"] == ["one one two. ", "two one two. ", "three one two. "]
        assert gate.visits == 2
        assert desk.list_texts("s") == ["one two", *ended["outputs"]]
        if stream:
            read = [event async for event in _resume(desk)]
            assert [event["text"] for event in read] == ended["outputs"]


async def _resume(desk: Any) -> AsyncIterator[Any]:
    from tests.scenarios.desk import parse_events

    async with desk.client.stream("GET", "/invocations/mine?stream=true") as response:
        async for event in parse_events(response.aiter_lines()):
            if event.name == "update":
                yield event.data


async def test_only_a_workflow_can_resume() -> None:
    from frontdesk import AgentFrameworkHost, ChannelConfigurationError

    for value in ("resume", "hope"):
        with pytest.raises(ChannelConfigurationError, match="on_interrupt"):
            AgentFrameworkHost(echo, channels=[InvocationsChannel()], on_interrupt=value)  # pyright: ignore[reportArgumentType]
