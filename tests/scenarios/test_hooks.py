"""The operator's hooks, as plain functions and as async ones."""

from dataclasses import dataclass
from typing import Any

import pytest
from agent_framework import AgentResponse, Content, Executor, WorkflowBuilder, WorkflowContext, handler

from frontdesk import ChannelIdentity, ChannelRequest, ChannelResponseContext, ChannelSession, ResponseTarget
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import ForbiddenError
from tests.scenarios.cast import PlainAgent, build_scripted, echo, spell
from tests.scenarios.desk import open_client
from tests.scenarios.test_cancel import MINE

KINDS = ["sync", "async"]


def of_kind(kind: str, hook: Any) -> Any:
    """The hook as it is, or as an async function."""
    if kind == "sync":
        return hook

    async def later(*arguments: Any, **keywords: Any) -> Any:
        return hook(*arguments, **keywords)

    return later


def changes(**what: Any) -> Any:
    """A run hook that changes some fields."""
    return lambda request, *, target, protocol_request: request.replace(**what)


@dataclass
class Trip:
    """The typed input of a workflow."""

    city: str
    days: int


class Planner(Executor):
    """Plans a trip."""

    @handler
    async def plan(self, trip: Trip, context: WorkflowContext[Any, str]) -> None:
        await context.yield_output(f"{trip.days} days in {trip.city}")


def _build_planning() -> WorkflowBuilder:
    planner = Planner("planner")
    return WorkflowBuilder(name="planning", start_executor=planner, output_from=[planner])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_hook_adapts_the_input_to_a_typed_workflow(kind: str) -> None:
    def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        return request.replace(input=Trip(**request.input))

    async with open_client(_build_planning(), InvocationsChannel(run_hook=of_kind(kind, hook))) as desk:
        body = {"input": {"city": "Rome", "days": 3}}
        assert (await desk.post(body)).json()["outputs"] == ["3 days in Rome"]
        assert "3 days in Rome" in (await desk.post({**body, "stream": True})).text
        wrong = await desk.post({"input": {"city": "Rome"}})
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "hook_failed")


async def test_without_a_hook_the_wrong_input_is_named() -> None:
    async with open_client(_build_planning()) as desk:
        response = await desk.ask("Rome")
        assert (response.status_code, response.json()["error"]["param"]) == (400, "input")
        assert "Trip" in response.json()["error"]["message"]
        assert desk.untouched()


async def test_a_run_hook_sees_the_target_and_the_http_request() -> None:
    seen: list[Any] = []

    def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        seen.append((request.channel, request.identity, target, protocol_request.headers["x-shop"]))
        return request

    async with open_client(echo, InvocationsChannel(name="door", run_hook=hook)) as desk:
        await desk.ask(headers={"x-shop": "7"})
        assert seen == [("door", ChannelIdentity(channel="door", native_id="anonymous"), echo, "7")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "what", [{"background": True}, {"response_target": ResponseTarget.none()}], ids=["flag", "none"]
)
async def test_a_run_hook_moves_a_request_to_the_background(kind: str, stream: bool, what: dict[str, Any]) -> None:
    async with open_client(spell, InvocationsChannel(run_hook=of_kind(kind, changes(**what)))) as desk:
        response = await desk.ask("hi", stream=stream, headers=MINE)
        if stream and "background" in what:
            assert (response.status_code, response.text.count("event: update")) == (200, 2)
        else:
            assert (response.status_code, response.json()["status"]) == (202, "queued")
        assert (await desk.wait_for_end("mine"))["text"] == "hi"


async def test_a_run_hook_speaks_for_somebody_else() -> None:
    def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        user = protocol_request.headers["x-user"]
        return request.replace(identity=ChannelIdentity(channel="crm", native_id=user))

    async with open_client(PlainAgent(), InvocationsChannel(run_hook=hook)) as desk:
        for expected in ("1 messages", "3 messages"):
            for user in ("ann", "ben"):
                answer = await desk.ask("hi", session_id="s", headers={"x-user": user})
                assert answer.json()["text"] == expected
        owners = {one.owner for one in desk.sessions()}
        assert len(owners) == 2
        stored = [message for messages in desk.ledger.kept_messages.values() for message in messages]
        stamps = [message.additional_properties["hosting"] for message in stored]
        assert {stamp["identity"]["native_id"] for stamp in stamps if "identity" in stamp} == {"ann", "ben"}


async def test_a_run_hook_joins_the_session_that_the_host_tracks_and_reset_rotates_it() -> None:
    hook = changes(session=ChannelSession(isolation_key="person"))
    async with open_client(PlainAgent(), InvocationsChannel(run_hook=hook)) as desk:
        first, second = [(await desk.ask()).json() for _ in range(2)]
        assert (first["text"], second["text"]) == ("1 messages", "3 messages")
        assert first["session_id"] == second["session_id"]
        new = await desk.host.reset_session("person")
        third = (await desk.ask()).json()
        assert (third["text"], third["session_id"]) == ("1 messages", new)
        old, fresh = desk.ledger.kept_messages.values()
        assert (len(old), len(fresh)) == (4, 2)
        assert {one.owner for one in desk.sessions()} == {"person"}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_hook_that_refuses_says_so_in_its_own_words(kind: str) -> None:
    def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        raise ForbiddenError("Not on Sundays.")

    async with open_client(echo, InvocationsChannel(run_hook=of_kind(kind, hook))) as desk:
        for body in ({}, {"stream": True}, {"background": True}):
            response = await desk.ask(**body)
            assert response.status_code == 403
            assert response.json()["error"] == {"code": "forbidden", "message": "Not on Sundays."}
        assert desk.untouched()


def _hide(result: Any, *, context: ChannelResponseContext) -> Any:
    assert (context.originating, context.is_echo, context.channel_name) == (True, False, "invocations")
    assert context.destination_identity.native_id == "anonymous"
    for message in result.result.messages:
        for content in message.contents:
            content.text = content.text.replace("secret", "******")
    return result


@pytest.mark.parametrize("kind", KINDS)
async def test_a_response_hook_changes_what_is_shown_and_not_what_is_stored(kind: str) -> None:
    async with open_client(echo, InvocationsChannel(response_hook=of_kind(kind, _hide))) as desk:
        whole = (await desk.ask("a secret", session_id="s")).json()
        assert whole["text"] == "you said a ******"
        assert (await desk.events("a secret", session_id="s"))[-1].data["text"] == "you said a ******"
        assert desk.list_texts("s") == ["a secret", "you said a secret"] * 2
        assert desk.run(whole["id"]).result.text == "you said a secret"


async def test_a_response_hook_is_asked_whenever_the_answer_is_fetched() -> None:
    async with open_client(echo, InvocationsChannel(response_hook=_hide)) as desk:
        run = (await desk.ask("a secret")).json()
        assert (await desk.get(run["id"])).json() == run
        assert (await desk.cancel(run["id"])).json() == run
        later = (await desk.ask("a secret", background=True)).json()
        assert (await desk.wait_for_end(later["id"]))["text"] == "you said a ******"


def _drop_and_redact(update: Any) -> Any:
    if update.text == "drop ":
        return None
    update.contents = [Content.from_text(update.text.replace("secret", "******"))]
    return update


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stream_hook_drops_and_redacts_up_to_the_last_event(kind: str) -> None:
    agent = build_scripted(lambda _: ["a ", "drop ", "secret"])
    channel = InvocationsChannel(stream_transform_hook=of_kind(kind, _drop_and_redact))
    async with open_client(agent, channel) as desk:
        response = await desk.ask("x", stream=True, session_id="s")
        assert "secret" not in response.text
        assert "drop" not in response.text
        events = await desk.events("x")
        assert [event.data["text"] for event in events if event.name == "update"] == ["a ", "******"]
        assert events[-1].data["text"] == "a ******"
        assert [event.number for event in events] == [0, 1, 2, 3]
        assert desk.list_texts("s")[-1].replace("  ", " ") == "a drop secret"


async def test_a_stream_hook_that_drops_everything_leaves_an_empty_answer() -> None:
    async with open_client(spell, InvocationsChannel(stream_transform_hook=lambda update: None)) as desk:
        started, last = await desk.events("hi", session_id="s")
        assert (started.name, last.name, last.data["text"], last.data["messages"]) == ("started", "completed", "", [])
        assert desk.list_texts("s") == ["hi", "hi"]


async def test_the_response_hook_has_the_last_word_on_a_transformed_stream() -> None:
    def sign(result: Any, *, context: ChannelResponseContext) -> Any:
        assert isinstance(result.result, AgentResponse)
        return result.replace(result=AgentResponse(messages=[*result.result.messages, *result.result.messages]))

    channel = InvocationsChannel(stream_transform_hook=lambda update: update, response_hook=sign)
    async with open_client(spell, channel) as desk:
        assert (await desk.events("hi"))[-1].data["text"] == "hihi"
