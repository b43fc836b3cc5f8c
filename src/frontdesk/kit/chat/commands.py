"""The menus of commands, by place and language. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from frontdesk.abc.channel import ChannelCommand
from frontdesk.abc.commands import CommandLocale, CommandScope
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.request import ChannelRequest

ADMIN = "admin"
"""The attribute with which a channel says that a request comes from an administrator of its group."""
LOCALE = "locale"
"""The attribute of an identity or of a request with the language of a person, such as `de` or `pt-BR`."""
_SEEN_IN: dict[CommandScope, frozenset[CommandScope]] = {
    "direct": frozenset({"direct"}),
    "group": frozenset({"group"}),
    "admins": frozenset({"group", "admins"}),
}
"""The scopes whose commands are offered in a scope: administrators have those of the group too."""


class Menu(NamedTuple):
    """A menu of a platform; without a scope or a locale it is for all that have none of their own."""

    scope: CommandScope | None
    locale: str | None
    commands: Sequence[ChannelCommand]


def scope_of(request: ChannelRequest) -> CommandScope:
    """Return the scope that a request comes from."""
    if not request.group:
        return "direct"
    return "admins" if request.attributes.get(ADMIN) is True else "group"


def locale_of(request: ChannelRequest, identity: ChannelIdentity | None = None) -> str | None:
    """Return the language of the person behind a request; what the request says counts first."""
    locale: Any = request.attributes.get(LOCALE)
    if isinstance(locale, str) and locale:
        return locale
    return None if identity is None else locale_of_person(identity)


def locale_of_person(identity: ChannelIdentity) -> str | None:
    """Return the language of a person, as their platform has said it."""
    locale: Any = identity.attributes.get(LOCALE)
    return locale if isinstance(locale, str) and locale else None


def is_offered(command: ChannelCommand, scope: CommandScope) -> bool:
    """Tell whether a command can be used in a scope."""
    return not command.scopes or not _SEEN_IN[scope].isdisjoint(command.scopes)


def out_of_scope(command: ChannelCommand, scope: CommandScope) -> str | None:
    """Return the key of what to say to a person who can't use a command where they are; `None` if they can."""
    if is_offered(command, scope):
        return None
    if scope == "direct":
        return "scope.groups"
    return "scope.admins" if "admins" in command.scopes else "scope.direct"


def localized(command: ChannelCommand, locale: str | None) -> ChannelCommand:
    """Return a command as it is called in a language; `pt-BR` falls back to `pt`, and then to what it has itself."""
    words = _words(command, locale)
    if words is None:
        return command
    return command.replace(name=words.name or command.name, description=words.description or command.description)


def _words(command: ChannelCommand, locale: str | None) -> CommandLocale | None:
    known = {tag.lower(): words for tag, words in command.locales.items()}
    tag = "" if locale is None else locale.replace("_", "-").lower()
    while tag and tag not in known:
        tag = tag.rpartition("-")[0]
    return known.get(tag)


def names_of(command: ChannelCommand) -> set[str]:
    """Return all names of a command, in every language."""
    return {command.name, *(words.name for words in command.locales.values() if words.name)}


def offered(
    commands: Iterable[ChannelCommand], scope: CommandScope | None, locale: str | None
) -> tuple[ChannelCommand, ...]:
    """Return the commands that are offered in a scope, as they are called in a language."""
    return tuple(localized(command, locale) for command in commands if scope is None or is_offered(command, scope))


def menus(commands: Iterable[ChannelCommand]) -> list[Menu]:
    """Return the menus of a platform that has one for each scope and language, without more than are needed.

    The first is for every place that has no menu of its own: what can be used everywhere.
    """
    shown = [command for command in commands if command.expose_in_ui]
    scopes: list[CommandScope | None] = [None]
    if any(command.scopes for command in shown):
        scopes.extend(("direct", "group"))
    if any("admins" in command.scopes for command in shown):
        scopes.append("admins")
    tags = sorted({tag for command in shown for tag in command.locales})
    everywhere = [command for command in shown if not command.scopes]
    return [
        Menu(scope, locale, offered(everywhere if scope is None else shown, scope, locale))
        for scope in scopes
        for locale in (None, *tags)
    ]
