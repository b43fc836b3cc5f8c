"""What the design says of channels, tried on our code."""

import inspect
from typing import Any

import pytest
from agent_framework import Agent, ContextProvider, Message

import frontdesk
from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    Caller,
    ChannelCommand,
    ChannelConfigurationError,
    ChannelContribution,
    ChannelIdentity,
    ChannelRequest,
    FoundryHostedAgentHistoryProvider,
    HostedRunResult,
    HostedStreamResult,
    InMemoryStateStore,
    InvalidRequestError,
    RunRecord,
)
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.foundry.conventions import foundry_response_id
from frontdesk.history.foundry.reading import read
from frontdesk.history.foundry.writing import write
from frontdesk.interfaces.context import CommandState
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.internals import get_store
from tests.docs.differences.host import check_missing, check_refused, host_with
from tests.foundry.fake import FakeStorage, HttpStorage
from tests.foundry.test_history import _write
from tests.scenarios.messages.chat import open_chat

KEY = "the key of ann, long enough"
EMPTY = RunRecord(run_id="r", owner="o", channel="c", status="completed", created_at=0.0)


def a_class_to_subclass() -> None:
    class Plain:
        name = "plain"

        def contribute(self, context: Any) -> ChannelContribution:
            return ChannelContribution()

    plain: Any = Plain()
    check_refused(
        lambda: host_with(channels=[plain]),
        ChannelConfigurationError,
        r"make it one with `class Plain\(frontdesk.Channel",
    )


async def nobody_calls() -> None:
    host = host_with()
    context: Any = host._get_context("invocations")
    async with serving(host):
        request = ChannelRequest(channel="invocations", input="hi")
        with pytest.raises(TypeError, match="caller"):
            await context.run(request)
        caller = Caller(identity=ChannelIdentity("invocations", "ann"))
        assert (await context.run(request, caller)).result.text == "hi"
        with pytest.raises(InvalidRequestError, match="operation"):
            await context.run(request.replace(operation="task.begin"), caller)
        assert (await context.run(request.replace(operation="message.create"), caller)).result.text == "hi"


def other_names() -> None:
    check_missing("ToolDescriptor")
    assert frontdesk.ClientTool(name="look")


def a_record_of_the_session() -> None:
    result = HostedRunResult(result="x", run=EMPTY)
    assert not hasattr(result, "session")
    assert (result.run.session_id, result.run.session_key) == (None, None)


def one_word_for_handlers() -> None:
    make: Any = ChannelCommand
    check_refused(lambda: make("start", "Begin", handle=print), TypeError, "handle")
    assert make("start", "Begin", handler=print) == make("start", "Begin", print)


def check_awaited_state() -> None:
    assert all(inspect.iscoroutinefunction(vars(CommandState)[name]) for name in ("get", "set"))


def one_stream() -> None:
    assert not hasattr(HostedStreamResult, "raw_events")
    assert hasattr(HostedStreamResult, "__aiter__")


async def a_command_runs_a_request() -> None:
    heard: list[Any] = []

    async def with_text(context: Any) -> None:
        await context.run("a text")

    async def with_request(context: Any) -> None:
        heard.append(await context.run(context.request.replace(operation="message", input="a text")))
        await context.reply("done")

    commands = [ChannelCommand("text", "Run a text", with_text), ChannelCommand("ask", "Run a request", with_request)]
    async with open_chat(EchoAgent(), commands=commands) as chat:
        ann = await chat.platform.user("Ann")
        await chat.platform.say(ann, "/text")
        assert await chat.wait_for_answers(ann.chat_id) == ["The command failed."]
        await chat.platform.say(ann, "/ask")
        assert (await chat.wait_for_answers(ann.chat_id, 2))[1] == "done"
    assert heard[0].result.text == "a text"


async def a_number_of_the_list() -> None:
    async with open_chat(EchoAgent()) as chat:
        ann = await chat.platform.user("Ann")
        for count, text in enumerate(("one", "/new", "two", "/sessions"), 1):
            await chat.platform.say(ann, text)
            said = await chat.wait_for_answers(ann.chat_id, count)
        assert [line[0] for line in said[-1].splitlines()] == ["1", "2"]
        await chat.platform.say(ann, "/resume ses_1")
        assert (await chat.wait_for_answers(ann.chat_id, 5))[-1].startswith("I don't know that conversation.")
        await chat.platform.say(ann, "/resume 2")
        assert (await chat.wait_for_answers(ann.chat_id, 6))[-1].startswith("We go on where we were")


async def unknown_fields() -> None:
    seen: list[Any] = []

    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        seen.append(dict(request.attributes))
        return request

    body = {"message": "hi", "customer": 7}
    async with serving(host_with(channels=[InvocationsChannel(run_hook=hook)])) as client:
        answer = await client.http.post("/invocations", json=body)
        assert (answer.status_code, "customer" in answer.text) == (400, True)
    channel = InvocationsChannel(run_hook=hook, extra_fields="attributes")
    async with serving(host_with(channels=[channel])) as client:
        assert (await client.http.post("/invocations", json=body)).status_code == 200
    assert seen == [{"customer": 7}]


async def where_clients_look() -> None:
    for path in ("/public/responses", "/public"):
        async with serving(host_with(channels=[ResponsesChannel(path=path)])) as client:
            for place in ("/public/responses", "/public/v1/responses"):
                assert (await client.http.post(place, json={"input": "hi"})).status_code == 200
            assert (await client.http.get("/public/models")).status_code == 200


def one_socket() -> None:
    make: Any = ResponsesChannel
    for name in ("transports", "websocket_path"):
        check_refused(lambda name=name: make(**{name: "x"}), TypeError, name)
    host = host_with(channels=[ResponsesChannel()])
    sockets = [route for route in host.app.routes if type(route).__name__ == "WebSocketRoute"]
    assert {route.path for route in sockets} >= {"/responses", "/v1/responses"}  # pyright: ignore[reportAttributeAccessIssue]


def conversations_are_a_channel() -> None:
    make: Any = ResponsesChannel
    check_refused(lambda: make(expose_conversations=True), TypeError, "expose_conversations")
    assert host_with(channels=[ResponsesChannel(), ConversationsChannel()])


async def the_principal_is_who_calls() -> None:
    host = host_with(channels=[ResponsesChannel(auth=ApiKeyAuth({"ann": KEY}))])
    async with serving(host) as client:
        body = {"input": "hi", "safety_identifier": "bob", "user": "bob"}
        answer = await client.http.post("/responses", json=body, headers={"authorization": f"Bearer {KEY}"})
        assert answer.status_code == 200
    identities = get_store(host).identities
    assert await identities.find(ChannelIdentity("responses", "ann")) is not None
    assert await identities.find(ChannelIdentity("responses", "bob")) is None


def _foundry(**settings: Any) -> tuple[FoundryHostedAgentHistoryProvider, Any]:
    provider = FoundryHostedAgentHistoryProvider(storage=HttpStorage(FakeStorage()), **settings)
    client = ScriptedChatClient(lambda _: "hi")
    return provider, lambda **more: AgentFrameworkHost(
        Agent(client=client, name="A", context_providers=[provider]), channels=[ResponsesChannel()], **more
    )


def a_mirror_beside_a_shared_store() -> None:
    class Shared(InMemoryStateStore):
        lease_seconds = 30.0

    for store, given, loads in ((InMemoryStateStore(), None, True), (Shared(), None, False), (Shared(), True, True)):
        provider, host = _foundry(load_messages=given)
        host(store=store)
        assert provider.load_messages is loads


def questions_as_they_are() -> None:
    for convert in (read, write):
        assert "approval_storage" not in inspect.signature(convert).parameters


def by_role() -> None:
    turn = [Message("assistant", ["before"]), Message("user", ["now"]), Message("assistant", ["so"])]
    given, output = write(turn, foundry_response_id())
    assert [(item["type"], item["role"]) for item in given] == [("message", "assistant"), ("message", "user")]
    assert [(item["type"], item["role"]) for item in output] == [("message", "assistant")]


def _fake() -> FakeStorage:
    fake = FakeStorage()
    fake.calls["call-ada"] = "ada"
    return fake


async def two_fields_less() -> None:
    fake = _fake()
    await _write(FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake)), 1)
    (stored,) = fake.of("ada")
    assert stored.response["status"] == "completed"
    assert stored.response.keys().isdisjoint({"instructions", "background"})


async def failures_on_the_way() -> None:
    fake = _fake()
    fake.fails_with = 503
    provider = FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake))
    await _write(provider, 1)
    assert provider.failed_writes == 1
    fake.fails_with, fake.hangs = None, True
    provider = FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), timeout_seconds=0.02)
    await _write(provider, 1)
    assert provider.failed_writes == 1

    class Broken(HttpStorage):
        async def create(self, *_: Any, **__: Any) -> None:
            raise TypeError("a bug")

    with pytest.raises(TypeError, match="a bug"):
        await _write(FoundryHostedAgentHistoryProvider(storage=Broken(_fake())), 1)


async def check_trusted_platforms_only() -> None:
    seen: list[Any] = []

    class Recorder(ContextProvider):
        def __init__(self) -> None:
            super().__init__("recorder")

        async def before_run(self, **_: Any) -> None:
            keys = frontdesk.get_current_isolation_keys()
            seen.append(None if keys is None else keys.user_key)

    agent = Agent(client=ScriptedChatClient(lambda _: "hi"), name="A", context_providers=[Recorder()])
    async with serving(host_with(target=agent, channels=[InvocationsChannel()])) as client:
        headers = {frontdesk.ISOLATION_HEADER_USER: "mallory"}
        assert (await client.http.post("/invocations", json={"message": "hi"}, headers=headers)).status_code == 200
    assert seen != ["mallory"]
    assert len(seen) == 1


CHANNELS: dict[str, Any] = {
    "`Channel` is a protocol": a_class_to_subclass,
    "`context.run(request)`": nobody_calls,
    "`operation` is any text": nobody_calls,
    "`ToolDescriptor`": other_names,
    "`HostedRunResult.session`": a_record_of_the_session,
    "`ChannelCommand(handle=...)`": one_word_for_handlers,
    "`ChannelCommandContext.state`": check_awaited_state,
    "`HostedStreamResult.raw_events`": one_stream,
    "`ChannelCommandContext.run(...)`": a_command_runs_a_request,
    "`/resume`": a_number_of_the_list,
    "unknown fields of Invocations reach hooks": unknown_fields,
    '`ResponsesChannel(path="/public/responses")`': where_clients_look,
    "`transports=`, `websocket_path=`": one_socket,
    "`expose_conversations`": conversations_are_a_channel,
    "`safety_identifier` becomes the identity": the_principal_is_who_calls,
    "`FoundryHostedAgentHistoryProvider` always loads": a_mirror_beside_a_shared_store,
    "its conversion takes an `approval_storage`": questions_as_they_are,
    "it parts input from output by the type of items": by_role,
    "its record has `background` and `instructions`": two_fields_less,
    "it swallows `FoundryStorageError` alone": failures_on_the_way,
    "headers of a platform are read for every request": check_trusted_platforms_only,
}
