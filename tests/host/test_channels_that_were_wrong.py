"""What is wrong with a channel of one's own is told when the host is built, and not by the first caller."""

from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, Channel, ChannelCommand, ChannelContribution, CommandLocale
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import ChannelConfigurationError
from frontdesk.interfaces.channel import ChannelPush
from tests.scenarios.cast import echo
from tests.scenarios.messages.chat import open_chat


def _findings(*channels: Any) -> tuple[str, ...]:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(echo, channels=list(channels))
    return caught.value.findings


class Mine(Channel):
    name, path, requires_auth_when_public = "mine", "/mine", False

    def __init__(self, contribution: Any = None, name: str = "mine") -> None:
        self.name, self.path = name, f"/{name}"
        self._contribution = contribution

    def contribute(self, context: Any) -> ChannelContribution:
        return self._contribution


class Async(Mine):
    async def contribute(self, context: Any) -> ChannelContribution:  # pyright: ignore
        return ChannelContribution()


class Deaf(Mine, ChannelPush):
    async def push(self, identity: Any) -> None: ...


class Misspelt(Mine):
    require_lnk = True
    names = ("a", "b")
    """Not a setting, and nothing like one."""

    @property
    def run_hok(self) -> None:
        """Not plain, and so not a setting."""


async def reply(context: Any) -> None: ...


def test_a_contribution_that_was_none_was_an_attribute_error() -> None:
    assert _findings(Mine(), Mine([], "other")) == (
        "channel 'mine': contribute returned NoneType, and must return a ChannelContribution",
        "channel 'other': contribute returned list, and must return a ChannelContribution",
    )


def test_an_async_contribute_was_an_attribute_error() -> None:
    assert _findings(Async()) == (
        "channels: Async.contribute must not be async; what has to be awaited belongs into on_startup",
    )


def test_a_class_was_taken_for_a_channel() -> None:
    assert _findings(InvocationsChannel) == (
        "channels: InvocationsChannel is a class; give an instance: InvocationsChannel(...)",
    )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (ChannelCommand("go", "x", "no function"), "its handler is not a function, but 'no function'"),  # pyright: ignore
        (ChannelCommand("go", "x", lambda: None), "its handler must take the context: `async def go(context)`"),  # pyright: ignore
        (ChannelCommand("go on", "x", reply), "a name is one word of at most 32 small letters, without a slash"),
        (ChannelCommand("Go", "x", reply), "a name is one word of at most 32 small letters, without a slash"),
        (ChannelCommand("/go", "x", reply), "a name is one word of at most 32 small letters, without a slash"),
        (ChannelCommand("", "x", reply), "a name is one word of at most 32 small letters, without a slash"),
        (
            ChannelCommand("go", "x", reply, scopes="direct"),  # pyright: ignore
            "scopes must be a tuple of direct, group, admins, and is 'direct'",
        ),
        (
            ChannelCommand("go", "x", reply, scopes=("home",)),  # pyright: ignore
            "scopes: 'home' is none of direct, group, admins",
        ),
        (
            ChannelCommand("go", "x", reply, locales={"german": CommandLocale(name="los")}),
            "locales: 'german' is no language tag, such as 'de' or 'pt-BR'",
        ),
        (
            ChannelCommand("go", "x", reply, locales={"de": "los"}),  # pyright: ignore
            "locales: 'los' is not a CommandLocale",
        ),
        (
            ChannelCommand("go", "x", reply, locales={"de": CommandLocale(name="Los geht's")}),
            'locales: "Los geht\'s": a name is one word of at most 32 small letters, without a slash',
        ),
    ],
)
def test_a_command_that_could_not_be_called_was_found_by_the_first_who_called_it(
    command: ChannelCommand, told: str
) -> None:
    contribution = ChannelContribution(commands=[command])
    assert _findings(Mine(contribution)) == (f"channel 'mine': command {command.name!r}: {told}",)


def test_the_first_of_two_commands_of_one_name_was_dropped() -> None:
    contribution = ChannelContribution(commands=[ChannelCommand("go", "x", reply), ChannelCommand("go", "y", reply)])
    assert _findings(Mine(contribution)) == ("channel 'mine': 2 commands are called 'go'",)
    german = ChannelCommand("start", "y", reply, locales={"de": CommandLocale(name="go")})
    contribution = ChannelContribution(commands=[ChannelCommand("go", "x", reply), german])
    assert _findings(Mine(contribution)) == ("channel 'mine': 2 commands are called 'go'",)


def test_a_push_without_the_result_failed_at_the_first_delivery() -> None:
    assert _findings(Deaf(ChannelContribution())) == (
        "channel 'mine': push must take the identity and the result: `async def push(self, identity, result)`",
    )


def test_a_misspelt_setting_had_no_effect() -> None:
    assert _findings(Misspelt(ChannelContribution())) == (
        "channel 'mine': require_lnk is not a setting of a channel: did you mean require_link?",
    )


async def test_a_plain_function_as_a_command_failed_after_it_was_done() -> None:
    called: list[str] = []

    def note(context: Any) -> None:
        called.append(context.request.input)

    async def new(context: Any) -> None:
        await context.reply("in my own way")

    commands = [ChannelCommand("note", "x", note), ChannelCommand("new", "x", new)]
    async with open_chat(echo, commands=commands) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/note milk")
        # One of the channel's own takes the place of the usual one.
        await chat.platform.say(ada, "/new")
        assert await chat.wait_for_answers(ada.chat_id, 1) == ["in my own way"]
    assert called == ["milk"]
