"""Decides which messages of a group are meant for us. Pure."""

from frontdesk.data.request import AcceptInGroup


def accepts(rule: AcceptInGroup, *, group: bool, mentioned: bool, command: bool) -> bool:
    """Tell whether a message is meant for us; in a direct chat every message is."""
    if not group or rule == "all":
        return True
    if rule == "mention_only":
        return mentioned
    if rule == "command_only":
        return command
    return mentioned or command
