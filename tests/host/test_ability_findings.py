"""Abilities that a component would lose without notice are found when the host is built."""

from collections.abc import Iterator
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, Channel, ChannelConfigurationError, ChannelContribution, ChannelPush
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.chat.abilities import chat_ability
from frontdesk.host.validation.abilities import ability_findings, auth_ability_findings, channel_ability_findings
from frontdesk.interfaces.abilities import auth_ability, channel_ability, linker_ability, store_ability
from frontdesk.interfaces.chat import PushesParts, ShowsTyping
from frontdesk.interfaces.context import SettlesAnswers
from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import EchoAgent
from tests.chat.postbox.channel import PostboxChannel
from tests.scenarios.cast import echo

ROOTS = (channel_ability, chat_ability, linker_ability, store_ability, auth_ability)
METHODS = sorted(
    {
        name
        for root in ROOTS
        for ability in root
        for name, value in vars(ability).items()
        if getattr(value, "__isabstractmethod__", False)
    }
)


class Mine(Channel):
    name, path, requires_auth_when_public = "mine", "/mine", False

    def contribute(self, context: Any) -> ChannelContribution:
        return ChannelContribution()


def with_methods(*names: str, base: type = Mine) -> Any:
    """Return an object of a class outside of the package with methods of these names."""
    return type("Custom", (base,), dict.fromkeys(names, lambda self, *_, **__: None))()


def findings_of(channel: Any, **settings: Any) -> tuple[str, ...]:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(echo, channels=[channel], **settings)
    return caught.value.findings


def postbox_with(name: str) -> Any:
    kind: Any = type("Custom", (PostboxChannel,), {name: lambda self, *_, **__: None})
    return kind(url="https://postbox.example", token="t", secret="s")


def slips(name: str) -> Iterator[str]:
    """Yield the name with a letter missing, or with two neighbors swapped."""
    for at in range(len(name)):
        yield name[:at] + name[at + 1 :]
        yield name[:at] + name[at : at + 2][::-1] + name[at + 2 :]


def test_an_ability_was_lost_without_notice_by_a_misspelt_method() -> None:
    custom = with_methods("pushs", "refuze", "settle_answer")
    hint = "Correct the name, or begin it with an underscore"
    assert sorted(findings_of(custom)) == [
        f"channel 'mine': Custom defines pushs: did you mean push of ChannelPush? {hint}",
        f"channel 'mine': Custom defines refuze: did you mean refuse of AnswersEvents? {hint}",
        f"channel 'mine': Custom defines settle_answer: did you mean settle_answers of SettlesAnswers? {hint}",
    ]


def test_a_method_without_its_base_class_was_an_ability() -> None:
    rule = "as a base class, or rename it"
    assert sorted(findings_of(with_methods("push", "parts", "push_part"))) == [
        "channel 'mine': Custom defines parts and push_part but does not derive from PushesParts: "
        f"add frontdesk.interfaces.chat.PushesParts {rule}",
        "channel 'mine': Custom defines push but does not derive from ChannelPush: "
        f"add frontdesk.interfaces.channel.ChannelPush {rule}",
    ]


@pytest.mark.parametrize("name", METHODS)
def test_each_slip_in_the_name_of_a_method_is_found(name: str) -> None:
    abilities = [ability for root in ROOTS for ability in root]
    assert len(ability_findings(with_methods(name, base=object), abilities)) == 1
    if len(name) >= 5:
        for slip in sorted(set(slips(name)) - set(METHODS) - {name}):
            if slip.startswith("_"):
                continue
            (finding,) = ability_findings(with_methods(slip, base=object), abilities)
            assert finding.startswith(f"Custom defines {slip}: did you mean "), slip
            # These are as close to `encode_push`.
            assert f" {name} of " in finding or slip in ("ecode_push", "edcode_push"), slip


@pytest.mark.parametrize("slip", ["polls", "remove_button", "handshak", "regster", "lisen"])
def test_slips_in_the_abilities_of_chats_are_found_in_chats_alone(slip: str) -> None:
    (finding,) = channel_ability_findings(postbox_with(slip))
    assert finding.startswith(f"Custom defines {slip}: did you mean ")
    assert channel_ability_findings(with_methods(slip)) == []


@pytest.mark.parametrize("name", ["fetched", "edits", "render_text"])
def test_a_name_like_that_of_a_method_that_the_class_has_is_its_own(name: str) -> None:
    assert channel_ability_findings(postbox_with(name)) == []


def test_a_slip_in_a_method_that_the_base_of_chats_has_is_found() -> None:
    (finding,) = channel_ability_findings(postbox_with("refuze"))
    assert finding.startswith("Custom defines refuze: did you mean refuse of AnswersEvents?")


def test_a_polling_method_without_its_base_class_is_found() -> None:
    (finding,) = channel_ability_findings(postbox_with("poll"))
    assert finding.startswith("Custom defines poll but does not derive from PollsEvents: ")


def test_a_leading_underscore_makes_a_method_the_channels_own() -> None:
    assert channel_ability_findings(with_methods("_push", "_refuze", "_parts")) == []


def test_a_method_of_an_object_counts_too() -> None:
    custom = Mine()
    vars(custom)["push"] = echo
    assert len(channel_ability_findings(custom)) == 1


def test_an_object_that_stands_for_another_one_does_not_lose_its_abilities_without_notice() -> None:
    inner = OneTimeCodeIdentityLinker()
    stands = type("Stands", (), {"__getattr__": lambda self, name: getattr(inner, name)})()
    (finding,) = ability_findings(stands, linker_ability)
    assert finding.startswith("Stands defines find_question but does not derive from SupportsLinkQuestions: ")


def test_a_method_that_cannot_be_called_as_declared_is_found() -> None:
    class Custom(Mine, SettlesAnswers, PushesParts, ShowsTyping):
        typing_interval = None

        async def settle_answers(self, item: Any) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]

        async def parts(self, result: Any) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]

        async def push_part(self, part: Any) -> None: ...

        async def show_typing(self, place: Any, *more: Any) -> None: ...

        def end_typing(self, place: Any, also: int = 0) -> Any: ...

    assert sorted(channel_ability_findings(Custom())) == [
        "parts must not be async: PushesParts declares `def parts`",
        "settle_answers must take the item, the answers and the waiting: "
        "`async def settle_answers(self, item, answers, waiting)`",
    ]


def test_an_attribute_that_an_ability_needs_is_missed() -> None:
    class Custom(Mine, ShowsTyping):
        async def show_typing(self, place: Any) -> None: ...

        async def end_typing(self, place: Any) -> None: ...

    finding = "Custom derives from ShowsTyping but sets no typing_interval: set it in the class or in __init__"
    assert findings_of(Custom()) == (f"channel 'mine': {finding}",)


def test_a_missing_method_is_an_error_of_the_class() -> None:
    class Custom(Mine, ChannelPush):
        async def pushs(self, identity: Any, result: Any) -> None: ...

    with pytest.raises(TypeError, match="Custom with abstract method push"):
        Custom()  # pyright: ignore[reportAbstractUsage]


def test_credentials_that_lose_an_ability_are_found() -> None:
    class Custom:
        name = "custom"
        body_header = b"x-hash"

        async def authenticate(self, headers: Any) -> None: ...

        async def authenticate_request(self, scope: Any, headers: Any) -> None: ...

        def use_nonce(self, nonces: Any, *, durable: bool) -> None: ...

    assert findings_of(InvocationsChannel(auth=[Custom()])) == tuple(
        f"channel 'invocations': auth: {finding}" for finding in auth_ability_findings(Custom())
    )
    assert [finding.split(":")[0] for finding in auth_ability_findings(Custom())] == [
        "Custom defines authenticate_request but is not a RequestAuth",
        "Custom defines body_header but does not derive from SignsBodies",
        "Custom defines use_nonce",
    ]


def test_linkers_and_stores_that_lose_an_ability_are_found() -> None:
    class Linker(OneTimeCodeIdentityLinker):
        def on_statup(self) -> None: ...

    class Store(InMemoryStateStore):
        def check_writable(self) -> None: ...

    assert [one.split(":")[:2] for one in findings_of(Mine(), linker=Linker(), store=Store())] == [
        ["linker", " Linker defines on_statup"],
        ["store", " Store defines check_writable but does not derive from ReportsWriteFailures"],
    ]


def test_channels_of_the_package_have_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    channels = [
        ChatCompletionsChannel(),
        ConversationsChannel(),
        InvocationsChannel(),
        ResponsesChannel(),
        WebChatChannel(),
        TelegramChannel(bot_token="1:" + "a" * 35, secret_token="s" * 16, allowlist=None),
    ]
    assert AgentFrameworkHost(EchoAgent(), channels=channels)
    # By the rules for classes of others, too.
    monkeypatch.setattr("frontdesk.host.validation.abilities._PACKAGE", "another")
    for channel in (*channels, PostboxChannel(url="https://postbox.example", token="t", secret="s")):
        assert channel_ability_findings(channel) == []
