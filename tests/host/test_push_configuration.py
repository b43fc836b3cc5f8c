"""What can be known to be wrong with a channel that speaks first, before anything is said."""

from dataclasses import dataclass
from typing import Any

import pytest
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

from frontdesk import AgentFrameworkHost, Channel, ChannelConfigurationError, ChannelContribution, RetryPolicy
from frontdesk.interfaces.channel import ChannelPush, ChannelPushCodec
from frontdesk.interfaces.chat import PushesParts, PushTerms
from frontdesk.models.identity import ChannelIdentity
from frontdesk.serialization.codec import register_dataclass


class Pager(Channel, ChannelPush):
    name, path, requires_auth_when_public = "pager", "/pager", False

    def __init__(self, terms: PushTerms | None = None) -> None:
        self.push_terms = terms or PushTerms()

    def contribute(self, context: Any) -> ChannelContribution:
        return ChannelContribution()

    async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
        return None


class CodedPager(Pager, ChannelPushCodec):
    def encode_push(self, result: Any) -> Any:
        return str(result)

    def decode_push(self, payload: Any) -> Any:
        return payload


class CuttingPager(Pager, PushesParts):
    def parts(self, result: Any) -> list[str]:
        return ["one"]

    async def push_part(self, part: Any) -> str | None:
        return None


@dataclass
class Order:
    dish: str


@dataclass
class KnownOrder:
    dish: str


def build_cook(kind: type) -> Any:
    class Cook(Executor):
        @handler
        async def cook(self, text: str, context: WorkflowContext[str, kind]) -> None:  # type: ignore[valid-type]
            await context.yield_output(kind(text))

    return lambda: WorkflowBuilder(name="kitchen", start_executor=Cook(id="cook"), output_from="all").build()


async def echo(text: str) -> str:
    return text


def test_a_result_that_cannot_be_kept_until_it_is_sent_is_found_at_build() -> None:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(target=build_cook(Order), channels=[Pager()])
    (finding,) = caught.value.findings
    assert finding.startswith("channel 'pager': what the target puts out can't be kept until it is sent: ")
    assert "Order has no JSON form; give it one with frontdesk.serialization.codec.register_dataclass" in finding


@pytest.mark.parametrize("channel", [CodedPager, CuttingPager])
def test_a_channel_that_makes_its_own_payload_takes_any_result(channel: type[Pager]) -> None:
    assert AgentFrameworkHost(target=build_cook(Order), channels=[channel()])


def test_a_result_with_a_json_form_can_be_kept() -> None:
    register_dataclass(KnownOrder, "tests.host.KnownOrder")
    assert AgentFrameworkHost(target=build_cook(KnownOrder), channels=[Pager()])
    assert AgentFrameworkHost(target=build_cook(str), channels=[Pager()])
    assert AgentFrameworkHost(target=echo, channels=[Pager()])


def test_terms_that_make_no_sense_are_all_found() -> None:
    terms = PushTerms(
        at_once=0, failures=0, timeout=0, longest_age=-1, pause=0, per_second=0, per_destination=-1, per_group=0
    ).replace(retry=RetryPolicy(attempts=0))
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(target=echo, channels=[Pager(terms)])
    found = [one.removeprefix("channel 'pager': push_terms: ").split()[0] for one in caught.value.findings]
    assert sorted(found) == sorted(
        [
            "at_once",
            "failures",
            "retry.attempts",
            "timeout",
            "longest_age",
            "pause",
            "per_second",
            "per_destination",
            "per_group",
        ]
    )
