"""What an operator can set, and what is told about mistakes."""

from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.telegram.client import UPLOAD_SECONDS
from frontdesk.interfaces.chat import PushTerms
from frontdesk.secret import Secret
from frontdesk_testing import EchoAgent
from tests.scenarios.stores import new_store

TOKEN = "4839574812:AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK"
SECRET = "a-secret-of-the-webhook"


def build_channel(**settings: Any) -> TelegramChannel:
    tokens: dict[str, Any] = {"bot_token": TOKEN, "secret_token": SECRET}
    return TelegramChannel(**{**tokens, **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bot_token": Secret(TOKEN)},
        {"secret_token": ""},
        {"public_url": "https://desk.example.com"},
        {"public_url": "https://desk.example.com:8443/below"},
        {"public_url": "http://127.0.0.1:8000", "api_url": "http://127.0.0.1:8081"},
        {"transport": "polling", "secret_token": ""},
        {"transport": "polling", "secret_token": "", "remove_webhook": True, "poll_seconds": 50},
        {"max_messages": 1, "stop_button": "", "link_previews": True},
    ],
)
def test_good_settings(settings: dict[str, Any]) -> None:
    assert build_channel(**settings).findings() == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"bot_token": ""}, "bot_token must be the token"),
        ({"bot_token": "not a token"}, "bot_token must be the token"),
        ({"secret_token": "short"}, "secret_token must have 16"),
        ({"secret_token": "long enough, but with spaces"}, "secret_token must have 16"),
        ({"public_url": "http://desk.example.com"}, "public_url must be https"),
        ({"public_url": "https://desk.example.com:8080"}, "public_url must be https"),
        ({"public_url": "https://desk.example.com:port"}, "public_url must be https"),
        ({"api_url": "ftp://x"}, "api_url must begin"),
        ({"max_connections": 0}, "max_connections must be"),
        ({"max_connections": 101}, "max_connections must be"),
        ({"max_messages": 0}, "max_messages must be"),
        ({"call_timeout": 0}, "call_timeout must be positive"),
        ({"remove_webhook": True}, "remove_webhook has no effect"),
        ({"transport": "polling"}, "secret_token has no effect"),
        ({"transport": "polling", "secret_token": "", "poll_seconds": 51}, "poll_seconds must be 50"),
        ({"transport": "pigeon"}, "transport must be"),
    ],
)
def test_a_mistake_is_told(settings: dict[str, Any], told: str) -> None:
    assert any(finding.startswith(told) for finding in build_channel(**settings).findings())


def test_a_webhook_that_nobody_registers_is_a_warning() -> None:
    assert "public_url" in build_channel().warnings()[0]
    assert build_channel(public_url="https://desk.example.com").warnings() == []
    assert build_channel(transport="polling", secret_token="").warnings() == []


@pytest.mark.parametrize(
    ("transport", "mode", "warned"),
    [("polling", "ephemeral", True), ("polling", "long_running", False), ("webhook", "ephemeral", False)],
)
def test_polling_in_a_process_that_ends_between_requests_is_a_warning(transport: str, mode: Any, warned: bool) -> None:
    channel = build_channel(transport=transport, secret_token=SECRET if transport == "webhook" else "")
    host = AgentFrameworkHost(
        EchoAgent(), channels=[channel], store=new_store(), runtime_mode=mode, allow_in_process_runner=True
    )
    warning = "channel 'telegram': events are fetched only while this process runs"
    assert any(line.startswith(warning) for line in host.warnings) == warned


def test_the_rates_are_within_those_of_the_platform() -> None:
    terms = build_channel().push_terms
    assert (terms.per_second or 99) <= 30
    assert (terms.per_destination or 99) <= 1
    assert (terms.per_group or 99) <= 20 / 60
    assert terms.timeout > UPLOAD_SECONDS
    assert build_channel(push_terms=PushTerms(per_second=5.0)).push_terms.per_second == 5.0


def test_no_secret_is_shown() -> None:
    shown = repr(vars(build_channel()))
    assert TOKEN not in shown
    assert SECRET not in shown
