"""The base class of HTTP channels takes typed settings, reports wrong ones, and is loaded only when it is used."""

# A type checker that did not find the misspelt setting below would report the comment that ignores it.
# pyright: reportUnnecessaryTypeIgnoreComment=error

import inspect
import subprocess
import sys
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
from starlette.routing import Route

from frontdesk import AgentFrameworkHost, ChannelConfigurationError
from frontdesk.channels.chat_completions.config import ChatCompletionsConfig, ChatCompletionsSettings
from frontdesk.channels.conversations.config import ConversationsConfig, ConversationsSettings
from frontdesk.channels.invocations.config import InvocationsConfig, InvocationsSettings
from frontdesk.channels.responses.config import ResponsesConfig, ResponsesSettings
from frontdesk.http import HttpConfig, HttpSettings, StreamingConfig, StreamingSettings
from frontdesk.http.limits import HttpLimits
from frontdesk.outbound.media import FetchingConfig, FetchingSettings
from frontdesk_testing import EchoAgent, serving
from tests.contracts.plain_channel import PlainChannel

PAIRS = [
    (HttpConfig, HttpSettings),
    (StreamingConfig, StreamingSettings),
    (FetchingConfig, FetchingSettings),
    (ChatCompletionsConfig, ChatCompletionsSettings),
    (ConversationsConfig, ConversationsSettings),
    (InvocationsConfig, InvocationsSettings),
    (ResponsesConfig, ResponsesSettings),
]


@pytest.mark.parametrize(("config", "settings"), PAIRS)
def test_the_typed_settings_are_the_fields_of_the_config(config: type, settings: type) -> None:
    assert get_type_hints(settings) == {field.name: field.type for field in fields(config)}


def test_the_signature_shows_every_setting_with_its_default() -> None:
    shown = {name: one.default for name, one in inspect.signature(PlainChannel).parameters.items()}
    assert shown == {field.name: field.default for field in fields(HttpConfig)}


def test_an_unknown_setting_names_the_channel() -> None:
    with pytest.raises(TypeError, match=r"^PlainChannel\.__init__\(\) got an unexpected keyword .* 'max_body_byte'$"):
        PlainChannel(max_body_byte=1)  # pyright: ignore[reportCallIssue]


def test_all_wrong_settings_are_reported_at_once() -> None:
    settings: dict[str, Any] = {"allowlist": None, "require_link": "yes", "max_body_bytes": 0, "body_timeout": -1.0}
    channel = PlainChannel(**settings, allowed_origins=["https://a.example/"], limits=HttpLimits(max_callers=0))
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(EchoAgent(), channels=[channel])
    for finding in (
        "require_link must be",
        "max_body_bytes must be",
        "body_timeout must be",
        "allowed_origins: 'https:",
        "max_callers",
    ):
        assert finding in str(caught.value)


class Elsewhere(PlainChannel):
    def routes(self) -> list[Route]:
        return [*super().routes(), *self.unknown_paths("/more")]


async def test_an_unknown_path_is_answered_in_the_format_of_the_channel() -> None:
    async with serving(AgentFrameworkHost(EchoAgent(), channels=[Elsewhere()])) as client:
        answer = await client.http.delete("/plain/more/x")
    assert answer.status_code == 404
    assert answer.json() == {"error": {"code": "unknown_url", "message": "No route for /plain/more/x."}}


def test_importing_the_package_loads_no_channel() -> None:
    code = "import sys, frontdesk.http; print('frontdesk.http.channel' in sys.modules, hasattr(frontdesk.http, 'x'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
