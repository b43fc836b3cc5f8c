"""Chat channels take typed settings. A wrong name is an error, and wrong values are findings."""

# A type checker that did not find the misspelt settings below would report the comments that ignore them.
# pyright: reportUnnecessaryTypeIgnoreComment=error

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from frontdesk import AgentFrameworkHost, ChannelConfigurationError
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.telegram.config import TelegramConfig, TelegramSettings
from frontdesk.channels.web import WebChatChannel
from frontdesk.channels.web.config import WebChatConfig, WebChatSettings
from frontdesk.chat import ChatChannel, ChatConfig, ChatSettings
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import PushTerms
from frontdesk.interfaces.policies import (
    AccessPolicy,
    AccessSettings,
    ChatPolicy,
    ChatPolicySettings,
    HookPolicy,
    HookSettings,
)
from frontdesk_testing import EchoAgent
from frontdesk_testing.messages.channel import MessageChannel
from frontdesk_testing.messages.config import MessageConfig, MessageSettings
from tests.chat.postbox.channel import PostboxChannel

PAIRS: list[tuple[type, type, set[str]]] = [
    (AccessPolicy, AccessSettings, set()),
    (HookPolicy, HookSettings, set()),
    (ChatPolicy, ChatPolicySettings, set()),
    (ChatConfig, ChatSettings, set()),
    (TelegramConfig, TelegramSettings, {"bot_token", "secret_token"}),
    (MessageConfig, MessageSettings, {"platform_url", "token", "secret"}),
    (WebChatConfig, WebChatSettings, set()),
]


@pytest.mark.parametrize(("config", "settings", "arguments"), PAIRS)
def test_the_typed_settings_are_the_fields_of_the_config(config: type, settings: type, arguments: set[str]) -> None:
    hints = get_type_hints(config)
    assert get_type_hints(settings) == {
        field.name: hints[field.name] for field in fields(config) if field.name not in arguments
    }


@pytest.mark.parametrize(
    ("channel", "config"),
    [(TelegramChannel, TelegramConfig), (MessageChannel, MessageConfig), (WebChatChannel, WebChatConfig)],
)
def test_the_signature_shows_every_setting(channel: type, config: type) -> None:
    shown = inspect.signature(channel).parameters
    assert {field.name for field in fields(config)} <= set(shown)
    assert all(one.kind is one.KEYWORD_ONLY for one in shown.values())


@pytest.mark.parametrize("policy", [AccessPolicy, HookPolicy, ChatPolicy])
def test_a_channel_has_the_settings_of_every_policy_with_the_same_defaults(policy: type) -> None:
    given = policy()
    assert {field.name: getattr(Channel, field.name) for field in fields(policy)} == {
        field.name: getattr(given, field.name) for field in fields(policy)
    }


MISSPELT: list[Callable[[], Any]] = [
    lambda: TelegramChannel(bot_token="1:x", acept_in_group="all"),  # pyright: ignore[reportCallIssue]
    lambda: MessageChannel(platform_url="", token="", acept_in_group="all"),  # pyright: ignore[reportCallIssue]
    lambda: WebChatChannel(acept_in_group="all"),  # pyright: ignore[reportCallIssue]
    lambda: PostboxChannel(url="", token="", secret="", acept_in_group="all"),  # pyright: ignore[reportCallIssue]
]


@pytest.mark.parametrize("make", MISSPELT)
def test_a_misspelt_setting_is_a_type_error(make: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'acept_in_group'"):
        make()


def test_wrong_settings_of_a_channel_without_a_config_are_findings() -> None:
    settings: dict[str, Any] = {"greet_groups": "yes", "accept_in_group": "some", "poll_seconds": 0.0}
    channel = PostboxChannel(url="https://postbox.example", token="t", secret="s", allowlist=None, **settings)
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(EchoAgent(), channels=[channel])
    for finding in (
        "greet_groups must be True or False",
        "accept_in_group must be 'mention_only',",
        "poll_seconds must",
    ):
        assert finding in str(caught.value)


@pytest.mark.parametrize("name", ["conversation_scope", "accept_in_group", "cancel_by", "on_busy", "live"])
def test_unknown_choices_of_the_chat_policy_are_findings(name: str) -> None:
    wrong: dict[str, Any] = {name: "other"}
    assert [finding for finding in ChatPolicy(**wrong).findings() if finding.startswith(f"{name} must be '")]


def test_the_pace_of_sending_is_a_setting() -> None:
    terms = PushTerms(at_once=3)
    settings: dict[str, Any] = {"url": "https://postbox.example", "token": "t", "secret": "s"}
    assert PostboxChannel(**settings, push_terms=terms).push_terms is terms
    assert PostboxChannel(**settings).push_terms is PostboxChannel.push_terms
    assert TelegramChannel(bot_token="1:x").push_terms is TelegramChannel.push_terms


def test_settings_beside_a_config_take_effect() -> None:
    class Configured(PostboxChannel):
        def __init__(self) -> None:
            ChatChannel.__init__(self, ChatConfig(on_busy="interrupt"), name="p", path="/p", cancel_by="anyone")

    channel = Configured()
    assert (channel.on_busy, channel.cancel_by, channel.chat_config.cancel_by) == ("interrupt", "anyone", "anyone")
