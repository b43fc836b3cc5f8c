"""Code as users of the design type it (AUDIT 273 to 276, 279 and 280)."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import frontdesk
from frontdesk import (
    AgentFrameworkHost,
    ChannelCommand,
    ChannelIdentity,
    ChannelRequest,
    ChannelResponseContext,
    ChannelSession,
    ContinuationToken,
    HostedRunResult,
    NotFoundError,
    ResponseTarget,
    ResponseTargetKind,
    RunRecord,
    apply_response_hook,
    apply_run_hook,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import HookError
from frontdesk.serialization.codec import decode, encode
from frontdesk.sessions.turns import Turns
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.internals import get_store
from tests.scenarios.cast import echo
from tests.scenarios.design.test_workflow import Order, builds
from tests.scenarios.desk import open_client, until
from tests.scenarios.messages.chat import open_chat

CHECKPOINT = "workflow.checkpoint_id"
ANN = ChannelIdentity("invocations", "ann")


def order_of(request: ChannelRequest, *, protocol_request: Any, **_: Any) -> ChannelRequest:
    order = Order("c-1", protocol_request["item"])
    named = protocol_request.get("resume_from_checkpoint")
    attributes = {**request.attributes, CHECKPOINT: named} if named else request.attributes
    return replace(request, input=order, session=ChannelSession(key="c-1"), attributes=attributes)


async def test_audit_273_a_checkpoint_in_the_attributes_was_ignored(tmp_path: Path) -> None:
    channel = InvocationsChannel(run_hook=order_of, extra_fields="attributes")
    async with serving(AgentFrameworkHost(builds(tmp_path), channels=[channel])) as client:

        async def order(item: str, **more: Any) -> Any:
            return (await client.http.post("/invocations", json={"item": item, **more})).json()

        first = await order("tea")
        assert (await order("cake"))["text"] == "c-1: tea, cake"
        again = await order("jam", resume_from_checkpoint=first["checkpoint_id"])
        assert again["text"] == "c-1: tea, jam"
        # A caller names no checkpoint in the attributes: only a hook does.
        assert (await order("milk", **{CHECKPOINT: first["checkpoint_id"]}))["text"] == "c-1: tea, jam, milk"
        missing = await order("salt", resume_from_checkpoint="none")
        assert missing["error"]["code"] == "not_found"


async def test_audit_273_two_checkpoints_and_no_text_are_errors() -> None:
    request = ChannelRequest(channel="c", input="a")

    def hook(**changes: Any) -> Any:
        return lambda request, **_: replace(request, **changes)

    named = await apply_run_hook(hook(attributes={CHECKPOINT: "a"}), request)
    assert named.checkpoint_id == "a"
    for changes in ({"attributes": {CHECKPOINT: "a"}, "checkpoint_id": "b"}, {"attributes": {CHECKPOINT: 1}}):
        with pytest.raises(HookError):
            await apply_run_hook(hook(**changes), request)


async def test_audit_274_none_of_a_mapping_was_refused() -> None:
    fields = ("options", "metadata", "attributes", "reference", "forwarded_props")

    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        nothing: dict[str, Any] = dict.fromkeys(fields)
        return replace(request, **nothing, client_tools=None, approvals=None)

    request = ChannelRequest(channel="c", input="a", options={"temperature": 1})
    changed = await apply_run_hook(hook, request)
    assert [getattr(changed, name) for name in fields] == [{}] * 5
    assert (changed.client_tools, changed.approvals) == ((), ())
    async with open_client(echo, InvocationsChannel(run_hook=hook)) as desk:
        assert (await desk.ask("hello")).json()["text"] == "you said hello"
        token = await desk.host.run_in_background(
            ChannelRequest(channel="invocations", input="count", options=None),  # pyright: ignore[reportArgumentType]
            identity=ANN,
        )
        assert await _wait_for_end(desk.host, token) == "you said count"


async def _wait_for_end(host: AgentFrameworkHost, token: ContinuationToken | str) -> str:
    async def done() -> bool:
        return (await host.get_continuation(token, identity=ANN)).status == "completed"

    await until(done)
    return (await host.get_continuation(token, identity=ANN)).result.text


def person(_: ChannelIdentity) -> str:
    return "person"


@pytest.mark.parametrize("is_async", [True, False])
async def test_audit_275_a_reset_that_is_not_awaited_did_nothing(is_async: bool) -> None:
    agent = EchoAgent()
    hosts: list[AgentFrameworkHost] = []

    async def anew(context: Any) -> None:
        hosts[0].reset_session("person")
        await context.reply("New session started")

    def anew_in_a_function(context: Any) -> None:
        hosts[0].reset_session("person")

    command = ChannelCommand("anew", "Begin anew", anew if is_async else anew_in_a_function)
    async with open_chat(agent, commands=[command], identity_resolver=person) as chat:
        hosts.append(chat.host)
        ann = await chat.platform.user("Ann")
        count = 0
        for text in ("one", "two", "/anew", "three"):
            await chat.platform.say(ann, text)
            count += is_async or text != "/anew"
            said = await chat.wait_for_answers(ann.chat_id, count)
        assert ("New session started" in said) is is_async
    heard = [[one.text for one in seen if one.role == "user"] for seen in agent.seen]
    assert heard == [["one"], ["one", "two"], ["three"]]


async def test_audit_275_a_reset_that_fails_is_an_error_of_the_command(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[AgentFrameworkHost] = []

    async def anew(context: Any) -> None:
        hosts[0].reset_session(context.request.metadata.get("nobody"))
        await context.reply("New session started")

    async def breaks(*_: Any) -> str:
        raise OSError("the disk is full")

    async def anew_on_a_full_disk(context: Any) -> None:
        monkeypatch.setattr(Turns, "rotate", breaks)
        hosts[0].reset_session("person")
        await context.reply("New session started")

    commands = [ChannelCommand("anew", "Begin anew", anew), ChannelCommand("full", "Fails", anew_on_a_full_disk)]
    async with open_chat(EchoAgent(), commands=commands) as chat:
        hosts.append(chat.host)
        ann = await chat.platform.user("Ann")
        await chat.platform.say(ann, "/anew")
        await chat.platform.say(ann, "/full")
        said = await chat.wait_for_answers(ann.chat_id, 2)
    assert said == ["The command failed."] * 2
    assert "New session started" not in said
    assert "the disk is full" in caplog.text


async def test_audit_275_a_reset_is_awaited_for_its_id(caplog: pytest.LogCaptureFixture) -> None:
    async with open_client(echo, InvocationsChannel()) as desk:
        session_id = await desk.host.reset_session("person")
        assert session_id.startswith("ses_")
        kept = get_store(desk.host)
        later = desk.host.reset_session("person")
        assert await later == await later != session_id
        assert kept is not None
        for wrong in (None, ""):
            with pytest.raises(ValueError, match="isolation_key"):
                desk.host.reset_session(wrong)  # pyright: ignore[reportArgumentType]
    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError, match="no running event loop"):
        _outside_of_a_loop(desk.host)


def _outside_of_a_loop(host: AgentFrameworkHost) -> None:
    import asyncio
    import threading

    errors: list[BaseException] = []

    def reset() -> None:
        try:
            host.reset_session("person")
        except RuntimeError as error:
            errors.append(error)

    assert asyncio.get_running_loop()
    thread = threading.Thread(target=reset)
    thread.start()
    thread.join()
    raise errors[0]


async def test_audit_276_a_token_that_was_kept_as_text() -> None:
    async with open_client(echo, InvocationsChannel()) as desk:
        request = ChannelRequest(channel="invocations", input="count")
        token = await desk.host.run_in_background(request, identity=ANN)
        assert token.token == token.run_id == str(token)
        assert ContinuationToken(token.token) == token == decode(encode(token))
        assert await _wait_for_end(desk.host, token.token) == "you said count"
        cancelled = await desk.host.cancel(token.token, identity=ANN)
        assert cancelled.status == "completed"
        for unknown in ("run_unknown", "", "\x00"):
            with pytest.raises(NotFoundError):
                await desk.host.get_continuation(unknown, identity=ANN)
        with pytest.raises(NotFoundError):
            await desk.host.get_continuation(token.token, identity=ChannelIdentity("invocations", "bob"))
        with pytest.raises(TypeError, match="ContinuationToken or its text"):
            await desk.host.get_continuation(7, identity=ANN)  # pyright: ignore[reportArgumentType]


def test_audit_279_a_session_is_named_by_conversation_id() -> None:
    session = ChannelSession(conversation_id="conv_1")
    old: Any = {"openai_conversation_id": "conv_1"}
    assert session == ChannelSession(**old) == decode(encode(session))
    assert session.openai_conversation_id == session.conversation_id == "conv_1"
    with pytest.raises(TypeError):
        ChannelSession(conversation="conv_1")  # pyright: ignore[reportCallIssue]


ALIASES = {
    "ChannelRunHook": "RunHook",
    "ChannelResponseHook": "ResponseHook",
    "ChannelStreamTransformHook": "StreamTransformHook",
    "InMemoryHostStateStore": "InMemoryStateStore",
}


@pytest.mark.parametrize("name", ALIASES)
def test_audit_280_a_name_of_the_design_is_ours(name: str) -> None:
    assert getattr(frontdesk, name) is getattr(frontdesk, ALIASES[name])


async def test_audit_280_the_other_names_of_the_design() -> None:
    from frontdesk import AuthorizationOutcome, CommandHandler, RuntimeMode

    assert AuthorizationOutcome == frontdesk.Allowed | frontdesk.LinkRequired | frontdesk.Denied
    assert RuntimeMode.__args__ == ("long_running", "ephemeral")
    assert CommandHandler is not None
    kinds = {"originating", "active", "channels", "identities", "all_linked", "none"}
    assert set(ResponseTargetKind) == kinds
    assert ResponseTarget.channel("a").kind == ResponseTargetKind.CHANNELS
    nowhere: Any = ResponseTargetKind.NONE
    assert ResponseTarget(kind=nowhere) == ResponseTarget.none == decode(encode(ResponseTarget(kind=nowhere)))

    request = ChannelRequest(channel="c", input="a")
    run = RunRecord(run_id="r", owner="o", channel="c", status="completed", created_at=0.0)
    result = HostedRunResult(result=["a"], run=run)
    context = ChannelResponseContext(
        request=request, channel_name="c", destination_identity=ANN, originating=True, is_echo=False
    )

    async def grow(result: Any, *, context: Any) -> Any:
        result.result.append(context.channel_name)
        return result

    assert (await apply_response_hook(grow, result, context=context)).result == ["a", "c"]
    assert result.result == ["a"]
    assert await apply_response_hook(None, result, context=context) is result
    assert await apply_run_hook(None, request) is request
