"""Finds mistakes in what a channel adds to the host."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast, get_args

from frontdesk.abc.channel import ChannelCommand, ChannelContribution
from frontdesk.abc.commands import CommandLocale, CommandScope
from frontdesk.host.checks.channels import takes
from frontdesk.kit.chat.commands import names_of

_NAME = re.compile(r"\S{1,32}")
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_A_NAME = "a name is one word of at most 32 small letters, without a slash"


def contribution_findings(channel: str, contribution: Any) -> list[str]:
    """Find what is wrong with a contribution, a line each."""
    if not isinstance(contribution, ChannelContribution):
        kind = type(contribution).__name__
        return [f"channel {channel!r}: contribute returned {kind}, and must return a ChannelContribution"]
    commands: Sequence[Any] = contribution.commands
    wrong = [finding for command in commands for finding in _command_findings(command)]
    if not wrong:
        names = Counter(command.name for command in commands)
        names.update(name for command in commands for name in names_of(command) - {command.name})
        wrong = [f"{count} commands are called {name!r}" for name, count in names.items() if count > 1]
    return [f"channel {channel!r}: {finding}" for finding in wrong]


def _command_findings(command: Any) -> list[str]:
    if not isinstance(command, ChannelCommand):
        return [f"{command!r} is not a ChannelCommand"]
    wrong: list[str] = []
    name: Any = command.name
    if not _is_name(name):
        wrong.append(f"command {name!r}: {_A_NAME}")
    handler: Any = command.handler
    if not callable(handler):
        wrong.append(f"command {name!r}: its handler is not a function, but {handler!r}")
    elif not takes(handler, 1):
        wrong.append(f"command {name!r}: its handler must take the context: `async def {name}(context)`")
    return [*wrong, *(f"command {name!r}: {finding}" for finding in _offer_findings(command))]


def _offer_findings(command: ChannelCommand) -> list[str]:
    """Find what is wrong with where a command is offered, and with what it is called there."""
    scopes: Any = command.scopes
    known = get_args(CommandScope)
    if isinstance(scopes, str) or not isinstance(scopes, Sequence):
        return [f"scopes must be a tuple of {', '.join(known)}, and is {scopes!r}"]
    unknown = [scope for scope in cast("Sequence[Any]", scopes) if scope not in known]
    wrong = [f"scopes: {scope!r} is none of {', '.join(known)}" for scope in unknown]
    words: Any
    for tag, words in command.locales.items():
        if not _LOCALE.fullmatch(tag):
            wrong.append(f"locales: {tag!r} is no language tag, such as 'de' or 'pt-BR'")
        if not isinstance(words, CommandLocale):
            wrong.append(f"locales: {words!r} is not a CommandLocale")
        elif words.name and not _is_name(words.name):
            wrong.append(f"locales: {words.name!r}: {_A_NAME}")
    return wrong


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and bool(_NAME.fullmatch(name)) and name == name.lower() and not name.startswith("/")
