"""Command menus by scope and language, and the lookup of commands. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from frontdesk.interfaces.channel import ChannelCommand
from frontdesk.interfaces.context import CommandLocale, CommandScope
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest

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
    """A command menu. Without a scope or a locale it applies to all that have no specific menu."""

    scope: CommandScope | None
    locale: str | None
    commands: Sequence[ChannelCommand]


def get_scope(request: ChannelRequest) -> CommandScope:
    if not request.group:
        return "direct"
    return "admins" if request.attributes.get(ADMIN) is True else "group"


def parse_locale(request: ChannelRequest, identity: ChannelIdentity | None = None) -> str | None:
    """Return the language of the sender of a request. The request takes precedence over the identity."""
    locale: Any = request.attributes.get(LOCALE)
    if isinstance(locale, str) and locale:
        return locale
    return None if identity is None else locale_of_person(identity)


def locale_of_person(identity: ChannelIdentity) -> str | None:
    locale: Any = identity.attributes.get(LOCALE)
    return locale if isinstance(locale, str) and locale else None


def is_offered(command: ChannelCommand, scope: CommandScope) -> bool:
    """Return True if a command is available in a scope."""
    return not command.scopes or not _SEEN_IN[scope].isdisjoint(command.scopes)


def out_of_scope(command: ChannelCommand, scope: CommandScope) -> str | None:
    """Return the text key of the explanation why a command is unavailable in a scope, or None if it is available."""
    if is_offered(command, scope):
        return None
    if scope == "direct":
        return "scope.groups"
    return "scope.admins" if "admins" in command.scopes else "scope.direct"


def localize(command: ChannelCommand, locale: str | None) -> ChannelCommand:
    """Return a command localized for a language. `pt-BR` falls back to `pt`, then to the default texts."""
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


def list_names(command: ChannelCommand) -> set[str]:
    """Return all names of a command, in every language."""
    return {command.name, *(words.name for words in command.locales.values() if words.name)}


def list_offered(
    commands: Iterable[ChannelCommand], scope: CommandScope | None, locale: str | None
) -> tuple[ChannelCommand, ...]:
    """Return the localized commands that are available in a scope."""
    return tuple(localize(command, locale) for command in commands if scope is None or is_offered(command, scope))


def menus(commands: Iterable[ChannelCommand]) -> list[Menu]:
    """Return the minimal set of menus for a platform with one menu per scope and language.

    The first is the default menu, with the commands that are available everywhere.
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
        Menu(scope, locale, list_offered(everywhere if scope is None else shown, scope, locale))
        for scope in scopes
        for locale in (None, *tags)
    ]
