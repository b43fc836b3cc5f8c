"""Names the commands of linking on each channel. Pure."""

import re

from frontdesk.abc.channel import Channel

WORDS = ("link", "connect", "unlink", "whoami")
"""The commands, each described by a text of its own."""
_NAME = re.compile(r"[a-z0-9_-]{1,32}")


def command_name(channel: Channel, word: str) -> str | None:
    """Return the name of a command of linking on a channel; `None` if it is hidden there."""
    if channel.session_family != "host_tracked":
        return None
    return channel.link_commands.get(word, word)


def command_findings(channel: Channel, *, linker: bool) -> list[str]:
    """List what is wrong with the names that a channel gives them, a line each."""
    given = channel.link_commands
    if given and (not linker or channel.session_family != "host_tracked"):
        return ["link_commands has no effect: only message channels of a host with a linker= have these commands"]
    wrong = [f"link_commands: {word!r} is none of {', '.join(WORDS)}" for word in given if word not in WORDS]
    wrong += [
        f"link_commands: {name!r} is no name of a command"
        for name in given.values()
        if name is not None and not _NAME.fullmatch(name)
    ]
    names = [name for word in WORDS if (name := command_name(channel, word)) is not None]
    twice = sorted({name for name in names if names.count(name) > 1})
    return wrong + [f"link_commands: two commands are called {name!r}" for name in twice]
