"""Arguments of the wrong kind are told in words, and nothing of the operator's is called to find out."""

from typing import Any

import pytest
from agent_framework import Agent, Message

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ChannelConfigurationError, InMemoryStateStore
from frontdesk.auth.any_auth import AnyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
from frontdesk.runners.base import InProcessTaskRunner
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent


async def echo(text: str) -> str:
    return text


def _findings(target: Any = echo, channels: Any = None, **options: Any) -> tuple[str, ...]:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(target, channels=[InvocationsChannel()] if channels is None else channels, **options)
    return caught.value.findings


class _Called(Exception):
    """The operator's code was called."""


def _plain(text: str) -> str:
    raise _Called


def _with_default(text: str = "") -> str:
    raise _Called


def _with_messages(messages: list[Message]) -> Message:
    raise _Called


def _annotated(text: object = None) -> "str":
    raise _Called


@pytest.mark.parametrize("function", [_plain, _with_default, _with_messages, _annotated, lambda text: text])
def test_a_function_that_is_not_async_is_told_and_not_called(function: Any) -> None:
    (finding,) = _findings(function)
    assert finding.startswith(f"target: {function.__name__}() is not async. Pass an `async def` function")


@pytest.mark.parametrize("kind", [EchoAgent, Agent])
def test_a_class_is_no_target(kind: type) -> None:
    assert _findings(kind) == (f"target: {kind.__name__} is a class. Pass an instance: {kind.__name__}(...)",)


@pytest.mark.parametrize(
    ("channels", "told"),
    [
        (
            InvocationsChannel(),
            "InvocationsChannel is one channel; put it into a list: channels=[InvocationsChannel(...)]",
        ),
        (
            InvocationsChannel,
            "InvocationsChannel is a class; give a list of instances: channels=[InvocationsChannel(...)]",
        ),
        ([InvocationsChannel], "InvocationsChannel is a class; give an instance: InvocationsChannel(...)"),
        ("invocations", "str is not a list of channels"),
        ({"invocations": InvocationsChannel()}, "dict is not a list of channels"),
        (7, "int is not a list of channels"),
    ],
)
def test_channels_are_a_list_of_channels(channels: Any, told: str) -> None:
    assert _findings(channels=channels) == (f"channels: {told}",)


def test_any_iterable_of_channels_will_do() -> None:
    host = AgentFrameworkHost(echo, channels=(channel for channel in [InvocationsChannel()]))  # type: ignore[arg-type]
    assert [channel.name for channel in host.channels] == ["invocations"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("store", InMemoryStateStore), ("runner", InProcessTaskRunner), ("linker", OneTimeCodeIdentityLinker)],
)
def test_a_class_is_no_part_of_a_host(name: str, kind: type) -> None:
    wrong: Any = {name: kind}
    assert _findings(**wrong) == (f"{name}: {kind.__name__} is a class; give an instance: {kind.__name__}(...)",)


def test_a_class_is_no_auth() -> None:
    kind: Any = ApiKeyAuth
    for make in (lambda: InvocationsChannel(auth=kind), lambda: AnyAuth([kind])):
        with pytest.raises(TypeError, match=r"auth: ApiKeyAuth is a class; give an instance: ApiKeyAuth\(\.\.\.\)"):
            make()


def test_an_agent_without_a_name_is_warned_of() -> None:
    for name in (None, "Concierge"):
        host = AgentFrameworkHost(Agent(ScriptedChatClient([]), name=name), channels=[InvocationsChannel()])
        told = [warning for warning in host.warnings if "the agent has no name" in warning]
        assert len(told) == (1 if name is None else 0)
