"""Code that was written for the design of channel hosts runs, or the host says at build what to change."""

from dataclasses import asdict, fields, replace
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from frontdesk import (
    AgentFrameworkHost,
    Channel,
    ChannelCommand,
    ChannelConfigurationError,
    ChannelContribution,
    ChannelIdentity,
    ChannelRequest,
    InProcessTaskRunner,
    OneTimeCodeIdentityLinker,
    ResponseTarget,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import serving
from tests.scenarios.cast import echo


def _findings(channels: Any = None, **options: Any) -> tuple[str, ...]:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(echo, channels=channels or [InvocationsChannel()], **options)
    return caught.value.findings


def test_a_noun_could_not_be_copied_with_dataclasses() -> None:
    request = ChannelRequest(channel="chat", input="hello", metadata={"a": "b"})
    changed = replace(request, session_mode="required")
    assert changed == request.replace(session_mode="required")
    assert {one.name for one in fields(request)} >= {"channel", "input", "session_mode"}
    assert asdict(changed)["metadata"] == {"a": "b"}
    with pytest.raises(TypeError, match="sesion_mode"):
        replace(request, sesion_mode="required")  # pyright: ignore[reportCallIssue]


def test_a_noun_can_be_copied_with_copy_replace() -> None:
    request = ChannelRequest(channel="chat")
    # What `copy.replace` of Python 3.13 calls.
    assert request.__replace__(stream=True) == request.replace(stream=True)


def test_an_identity_and_a_command_took_no_arguments_by_place() -> None:
    assert ChannelIdentity("telegram", "42", {"name": "Ann"}) == ChannelIdentity(
        channel="telegram", native_id="42", attributes={"name": "Ann"}
    )

    async def start(context: Any) -> None: ...

    assert ChannelCommand("start", "Introduce the bot", start).handler is start


@pytest.mark.parametrize("kind", ["originating", "active", "all_linked", "none"])
def test_a_target_was_a_function_and_no_value(kind: Any) -> None:
    value = getattr(ResponseTarget, kind)
    assert value == ResponseTarget(kind=kind)
    assert value() == value
    assert ChannelRequest(channel="chat", response_target=value).response_target.kind == kind


def test_a_target_still_takes_an_echo_where_it_can_have_one() -> None:
    assert ResponseTarget.active(echo_input=True) == ResponseTarget(kind="active", echo_input=True)
    with pytest.raises(TypeError, match="echo_input"):
        ResponseTarget.none(echo_input=True)


async def test_a_target_of_the_wrong_type_was_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(response_target=ResponseTarget.channel)

    host = AgentFrameworkHost(echo, channels=[InvocationsChannel(run_hook=hook)])
    async with serving(host) as client:
        answer = await client.http.post("/invocations", json={"message": "hello"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "hook_failed")
    assert "it set response_target to" in caplog.text


async def test_a_session_mode_that_a_hook_misspelt_meant_auto() -> None:
    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return replace(request, session_mode="requierd")

    host = AgentFrameworkHost(echo, channels=[InvocationsChannel(run_hook=hook)])
    async with serving(host) as client:
        answer = await client.http.post("/invocations", json={"message": "hello"})
    assert answer.status_code == 422


def test_the_names_of_the_design_were_unknown() -> None:
    store, linker = InMemoryStateStore(), OneTimeCodeIdentityLinker()
    runner = InProcessTaskRunner(store)
    AgentFrameworkHost(
        echo,
        channels=[InvocationsChannel()],
        store=store,
        identity_linker=linker,
        durable_task_runner=runner,
        debug=False,
    )
    assert _findings(debug=True)[0].startswith("debug: the host shows no traceback")
    twice = _findings(linker=linker, identity_linker=linker, store=store, runner=runner, durable_task_runner=runner)
    assert [one.partition(":")[0] for one in twice] == ["identity_linker", "durable_task_runner"]


def test_a_name_that_nobody_knows_is_still_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'linkers'"):
        AgentFrameworkHost(echo, channels=[InvocationsChannel()], linkers=None)  # pyright: ignore[reportCallIssue]


class Plain:
    """A channel as the design shows it: a class with a name and `contribute`."""

    name = "plain"

    def contribute(self, context: Any) -> ChannelContribution:
        return ChannelContribution(routes=[Route("/plain", lambda _: PlainTextResponse("hello"))])


class Nameless(Channel):
    path = "/nameless"

    def contribute(self) -> ChannelContribution:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ChannelContribution()


def test_a_class_of_the_right_shape_was_not_told_what_it_lacks() -> None:
    assert _findings([Plain()]) == (
        "channels: Plain is not a Channel: make it one with `class Plain(frontdesk.Channel)`",
        'channels: Plain has no path; add one such as `path = "/mine"`, or `path = ""` for the root',
    )


def test_a_channel_without_a_name_was_an_attribute_error() -> None:
    assert _findings([Nameless()]) == (
        'channels: Nameless has no name; add one such as `name = "mine"`',
        "channels: Nameless.contribute must take the context: `def contribute(self, context)`",
    )


def test_a_hook_with_a_wrong_signature_was_found_by_the_first_caller() -> None:
    wrong: Any = {
        "run_hook": lambda request: request,
        "response_hook": lambda result, destination: result,
        "stream_transform_hook": lambda update, *, context: update,
    }
    found = _findings([InvocationsChannel(**wrong)])
    assert [one.split()[2] for one in found] == list(wrong)
    assert found[0] == (
        "channel 'invocations': run_hook (request) can't be called: it must take (request, *, target, protocol_request)"
    )


class Policy:
    def __call__(self, request: ChannelRequest, *, target: Any, protocol_request: Any, more: int = 0) -> ChannelRequest:
        return request


@pytest.mark.parametrize("hook", [lambda request, **_: request, Policy()], ids=["any keyword", "an object"])
def test_a_hook_with_a_signature_that_fits_is_taken(hook: Any) -> None:
    AgentFrameworkHost(echo, channels=[InvocationsChannel(run_hook=hook)])
