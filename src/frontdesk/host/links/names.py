"""The names of the link commands on each channel. Pure."""

import re

from frontdesk.interfaces.channel import Channel

WORDS = ("link", "connect", "unlink", "whoami")
"""The commands, each described by a text of its own."""
_NAME = re.compile(r"[a-z0-9_-]{1,32}")


def command_name(channel: Channel, word: str) -> str | None:
    """Return the name of a link command on a channel, or None if it is hidden there."""
    if not _has_commands(channel):
        return None
    return channel.link_commands.get(word, word)


def _has_commands(channel: Channel) -> bool:
    return channel.session_family == "host_tracked" or channel.links_by_text


def command_findings(channel: Channel, *, linker: bool) -> list[str]:
    """Return the validation findings for a channel's names of the link commands, one line each."""
    given = channel.link_commands
    if given and (not linker or not _has_commands(channel)):
        return [
            "link_commands has no effect: only message channels and Invocations have these commands, on a host with "
            "a linker="
        ]
    wrong = [f"link_commands: {word!r} is none of {', '.join(WORDS)}" for word in given if word not in WORDS]
    wrong += [
        f"link_commands: {name!r} is no name of a command"
        for name in given.values()
        if name is not None and not _NAME.fullmatch(name)
    ]
    names = [name for word in WORDS if (name := command_name(channel, word)) is not None]
    twice = sorted({name for name in names if names.count(name) > 1})
    return wrong + [f"link_commands: two commands are called {name!r}" for name in twice]
