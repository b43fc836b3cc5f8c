"""The way of a request, step by step, as a channel calls it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_framework import AgentResponse, Message

from frontdesk import (
    AgentFrameworkHost,
    Caller,
    Channel,
    ChannelContext,
    ChannelContribution,
    ChannelIdentity,
    ChannelRequest,
    ChannelSession,
    ResponseTarget,
)
from frontdesk.errors import (
    ForbiddenError,
    InvalidRequestError,
    LostRunError,
    NotFoundError,
    RunExistsError,
    SessionBusyError,
    TargetError,
)
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.stores.memory.store import InMemoryStateStore, MemoryTransaction
from tests.scenarios.asking import Clerk
from tests.scenarios.cast import echo, spell
from tests.scenarios.ledger import Ledger
from tests.scenarios.test_cancel import Slow


class Probe(Channel):
    """A door without a wire: it keeps what the host gives to a channel."""

    name = "probe"
    path = "/probe"
    context: ChannelContext

    def __init__(self, **hooks: Any) -> None:
        self.run_hook = hooks.get("run_hook")
        self.response_hook = hooks.get("response_hook")
        self.stream_transform_hook = hooks.get("stream_transform_hook")

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.context = context
        return ChannelContribution()


@asynccontextmanager
async def open_context(
    target: Any = echo, *, store: Any = None, probe: Probe | None = None, **options: Any
) -> AsyncIterator[Any]:
    """A started host, as its one channel sees it, and what was written."""
    probe = probe or Probe()
    ledger: Any = Ledger(store or InMemoryStateStore())
    host = AgentFrameworkHost(target, channels=[probe], store=ledger, **options)
    async with host.app.router.lifespan_context(host.app):
        yield probe.context, ledger


def caller(name: str = "ann") -> Caller:
    return Caller(identity=ChannelIdentity(channel="probe", native_id=name))


def request(text: Any = "hi", **fields: Any) -> ChannelRequest:
    return ChannelRequest(channel="probe", input=text, **fields)


def in_session(key: str, text: str | None = "hi", **fields: Any) -> ChannelRequest:
    return request(text, session=ChannelSession(key=key), **fields)


class Steps:
    """Writes down in which order the parts of the house are used."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def note(self, step: str, value: Any = None) -> Any:
        self.seen.append(step)
        return value

    def store(self) -> Any:
        steps = self

        class Noting(InMemoryStateStore):
            def transaction(self) -> Any:
                return steps.note("record", super().transaction())

        return Noting()

    def probe(self) -> Probe:
        return Probe(
            run_hook=lambda request, **_: self.note("hook", request),
            response_hook=lambda result, **_: self.note("deliver", result),
        )

    async def target(self, text: str) -> str:
        return self.note("run", text)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_steps_and_their_order(stream: bool) -> None:
    steps = Steps()
    resolver = lambda identity: steps.note("identify", "key")  # noqa: E731
    async with open_context(steps.target, store=steps.store(), probe=steps.probe(), identity_resolver=resolver) as (
        desk,
        _,
    ):
        if stream:
            async with await desk.stream(request(), caller()) as updates:
                assert [update.text async for update in updates] == ["hi"]
        else:
            await desk.run(request(), caller())
    assert steps.seen == ["identify", "hook", "run", "record", "deliver"]


@pytest.mark.parametrize("call", ["run", "stream", "submit"])
async def test_a_stranger_reaches_no_operator_code_and_leaves_nothing_behind(call: str) -> None:
    steps = Steps()
    resolver = lambda identity: steps.note("identify", None)  # noqa: E731
    async with open_context(steps.target, store=steps.store(), probe=steps.probe(), identity_resolver=resolver) as (
        desk,
        ledger,
    ):
        with pytest.raises(ForbiddenError):
            await getattr(desk, call)(request(), caller())
        assert set(steps.seen) == {"identify"}
        assert not ledger.writes


async def test_what_the_hook_changed_is_decided_about_again() -> None:
    def speak_for_eve(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(identity=ChannelIdentity(channel="crm", native_id="eve"))

    resolver = lambda identity: None if identity.native_id == "eve" else "key"  # noqa: E731
    async with open_context(probe=Probe(run_hook=speak_for_eve), identity_resolver=resolver) as (desk, ledger):
        with pytest.raises(ForbiddenError):
            await desk.run(request(), caller())
        assert not ledger.writes


WIRE = {
    "whose session it is": {"session": ChannelSession(isolation_key="somebody")},
    "somebody else as recipient": {
        "response_target": ResponseTarget.identity(ChannelIdentity(channel="probe", native_id="ben"))
    },
}


@pytest.mark.parametrize("fields", WIRE.values(), ids=WIRE)
async def test_the_wire_can_t_say(fields: dict[str, Any]) -> None:
    async with open_context() as (desk, ledger):
        with pytest.raises((InvalidRequestError, ForbiddenError)):
            await desk.run(request(**fields), caller())
        assert not ledger.writes


async def test_the_wire_can_t_say_who_is_calling() -> None:
    async with open_context() as (desk, ledger):
        claimed = in_session("s", identity=ChannelIdentity(channel="probe", native_id="ben"))
        await desk.run(claimed, caller("ann"))
        (message, _) = next(iter(ledger.kept_messages.values()))
        assert message.additional_properties["hosting"]["identity"]["native_id"] == "ann"


async def test_the_result_is_the_very_object_that_the_target_returned() -> None:
    answer: AgentResponse[Any] = AgentResponse(messages=[Message("assistant", ["hi"])], response_id="upstream")

    async def target(text: str) -> Any:
        return answer

    async with open_context(target) as (desk, ledger):
        hosted = await desk.run(request(), caller())
        assert hosted.result is answer
        assert (hosted.run.status, hosted.run.result) == ("completed", answer)
        assert ledger.kept_runs[hosted.run.owner, hosted.run.run_id] == hosted.run


async def test_a_failed_target_is_recorded_and_raised_without_its_words() -> None:
    async def target(text: str) -> str:
        raise RuntimeError("the secret")

    async with open_context(target) as (desk, ledger):
        with pytest.raises(TargetError) as caught:
            await desk.run(in_session("s"), caller())
        assert "secret" not in str(caught.value)
        assert isinstance(caught.value.__cause__, RuntimeError)
        (run,) = ledger.kept_runs.values()
        assert (run.run_id, run.status) == (caught.value.run_id, "failed")
        assert [message.text for message in ledger.kept_messages[run.session_id]] == ["hi"]


@pytest.mark.parametrize("read", [0, 1])
async def test_a_stream_that_is_left_early_is_recorded_as_cancelled_and_frees_its_session(read: int) -> None:
    async with open_context(spell, session_wait_seconds=0) as (desk, ledger):
        stream = await desk.stream(in_session("s", "abc"), caller())
        with pytest.raises(SessionBusyError):
            await desk.run(in_session("s"), caller())
        updates = aiter(stream)
        for _ in range(read):
            await anext(updates)
        await stream.aclose()
        (run,) = ledger.kept_runs.values()
        assert (run.status, run.run_id) == ("cancelled", stream.run.run_id)
        await stream.aclose()
        assert (await desk.run(in_session("s"), caller())).run.status == "completed"


async def test_a_stream_knows_its_result_when_it_has_ended() -> None:
    async with open_context(spell) as (desk, _), await desk.stream(request("abc"), caller()) as stream:
        assert stream.run.status == "running"
        assert [update.text async for update in stream] == ["a", "b", "c"]
        assert (stream.final().result.text, stream.final().run.status) == ("abc", "completed")


async def test_a_cancelled_caller_is_not_told_that_all_is_well() -> None:
    slow = Slow()
    async with open_context(slow.whole) as (desk, ledger):
        task = asyncio.create_task(desk.run(in_session("s"), caller()))
        await slow.began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        (run,) = ledger.kept_runs.values()
        assert run.status == "cancelled"


async def test_a_run_goes_on_from_another_and_branches_are_independent() -> None:
    async def count(messages: list[Message]) -> str:
        return f"{len(messages)}"

    async with open_context(count) as (desk, _):
        first = (await desk.run(request("one"), caller())).run
        texts = []
        for text in ("two", "other two"):
            hosted = await desk.run(request(text, previous_run_id=first.run_id), caller())
            texts.append((hosted.result.text, hosted.run.session_id == first.session_id))
        # The first goes on in the session, the second finds it moved on and leaves it where `first` ended.
        assert texts == [("3", True), ("3", False)]
        with pytest.raises(NotFoundError):
            await desk.run(request(previous_run_id=first.run_id), caller("ben"))


async def test_a_background_stream_keeps_its_events() -> None:
    async with open_context(spell) as (desk, _):
        run = await desk.submit(request("abc", stream=True), caller())
        assert run.status == "queued"
        for _ in ("live", "later"):
            async with await desk.runs.follow(caller(), run.run_id) as stream:
                assert [update.text async for update in stream] == ["a", "b", "c"]
        assert (await desk.runs.get(caller(), run.run_id)).status == "completed"
        await desk.run(request(), caller("ben"))
        with pytest.raises(NotFoundError):
            await desk.runs.follow(caller("ben"), run.run_id)


async def test_a_deleted_run_is_gone() -> None:
    async with open_context() as (desk, ledger):
        run = (await desk.run(request(), caller())).run
        await desk.runs.delete(caller(), run.run_id)
        assert not ledger.kept_runs
        for call in (desk.runs.get, desk.runs.cancel, desk.runs.delete):
            with pytest.raises(NotFoundError):
                await call(caller(), run.run_id)


async def test_nobody_changes_the_history_that_a_turn_is_given() -> None:
    async def spoil(messages: list[Message]) -> str:
        said = [message.text for message in messages]
        messages.clear()
        return " ".join(said)

    async with open_context(spoil) as (desk, ledger):
        for _ in range(3):
            hosted = await desk.run(in_session("s", "a"), caller())
        assert hosted.result.text == "a a a a a a a"
        assert len(ledger.kept_messages[hosted.run.session_id]) == 6


async def _build_answer(clerk: Clerk, context: Any, ledger: Any, **fields: Any) -> ChannelRequest:
    """A question that waits in session `s`, and the yes to it."""
    await context.run(in_session("s", "pay 5"), caller())
    (question,) = ledger.kept_approvals.values()
    yes = ApprovalAnswer(approval_id=question.approval_id, approved=True)
    return in_session("s", "", approvals=(yes,), **fields).replace(input=None)


async def test_a_run_id_that_was_taken_used_an_approval_up() -> None:
    clerk = Clerk("q")
    async with open_context(clerk.answer) as (context, ledger):
        answer = await _build_answer(clerk, context, ledger, run_id="run_x")
        clerk.began.clear()
        clerk.go_on.clear()
        other = asyncio.create_task(context.run(in_session("t", "wait", run_id="run_x"), caller()))
        await clerk.began.wait()
        with pytest.raises(RunExistsError):
            await context.run(answer, caller())
        assert [one.status for one in await context.approvals.pending(caller())] == ["pending"]
        clerk.go_on.set()
        await other
        await context.run(answer.replace(run_id="run_y"), caller())
        assert clerk.paid == [5]


async def test_of_two_answers_with_one_run_id_at_once_one_is_refused_and_uses_nothing_up() -> None:
    clerk = Clerk("q1", "q2")
    async with open_context(clerk.answer) as (context, _):
        answers: list[ChannelRequest] = []
        for key in ("s", "t"):
            await context.run(in_session(key, "pay 5"), caller())
            question = (await context.approvals.pending(caller()))[-1]
            yes = ApprovalAnswer(approval_id=question.approval_id, approved=True)
            answers.append(in_session(key, "", approvals=(yes,), run_id="run_x").replace(input=None))
        clerk.go_on.clear()
        runs = [asyncio.create_task(context.run(one, caller())) for one in answers]
        done, _ = await asyncio.wait(runs, return_when=asyncio.FIRST_COMPLETED)
        assert [type(one.exception()) for one in done] == [RunExistsError]
        clerk.go_on.set()
        await asyncio.wait(runs)
        assert len(await context.approvals.pending(caller())) == 1
        assert clerk.paid == [5]


async def test_a_background_run_that_another_took_over_used_an_approval_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clerk = Clerk("q")
    async with open_context(clerk.answer) as (context, ledger):
        answer = await _build_answer(clerk, context, ledger, background=True)
        tried = asyncio.Event()

        def lost(*_: Any) -> None:
            tried.set()
            raise LostRunError

        monkeypatch.setattr(MemoryTransaction, "save_job", lost)
        await context.run(answer, caller())
        await tried.wait()
        assert [one.status for one in await context.approvals.pending(caller())] == ["pending"]
        assert clerk.paid == []
