"""Finds mistakes in what a channel adds to the host."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from frontdesk.abc.channel import ChannelCommand, ChannelContribution
from frontdesk.host.checks.channels import takes

_NAME = re.compile(r"\S{1,32}")


def contribution_findings(channel: str, contribution: Any) -> list[str]:
    """Find what is wrong with a contribution, a line each."""
    if not isinstance(contribution, ChannelContribution):
        kind = type(contribution).__name__
        return [f"channel {channel!r}: contribute returned {kind}, and must return a ChannelContribution"]
    commands: Sequence[Any] = contribution.commands
    wrong = [finding for command in commands for finding in _command_findings(command)]
    names = Counter(command.name for command in commands if isinstance(command, ChannelCommand))
    wrong += [f"{count} commands are called {name!r}" for name, count in names.items() if count > 1]
    return [f"channel {channel!r}: {finding}" for finding in wrong]


def _command_findings(command: Any) -> list[str]:
    if not isinstance(command, ChannelCommand):
        return [f"{command!r} is not a ChannelCommand"]
    wrong: list[str] = []
    name: Any = command.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name != name.lower() or name.startswith("/"):
        wrong.append(f"command {name!r}: a name is one word of at most 32 small letters, without a slash")
    handler: Any = command.handler
    if not callable(handler):
        wrong.append(f"command {name!r}: its handler is not a function, but {handler!r}")
    elif not takes(handler, 1):
        wrong.append(f"command {name!r}: its handler must take the context: `async def {name}(context)`")
    return wrong
