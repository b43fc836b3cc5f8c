"""Where commands are offered, and in which language."""

from typing import Any

import pytest

from frontdesk import ChannelCommand
from frontdesk.chat.commands import get_scope, list_names, list_offered, localize, menus, out_of_scope, parse_locale
from frontdesk.interfaces.context import CommandLocale, CommandScope
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest


def _command(name: str, *scopes: CommandScope, **fields: Any) -> ChannelCommand:
    return ChannelCommand(name, f"About {name}", lambda _: None, scopes=scopes, **fields)


GERMAN = {"de": CommandLocale(name="hilfe", description="Hilfe"), "pt-BR": CommandLocale(description="Ajuda")}


@pytest.mark.parametrize(
    ("scopes", "direct", "group", "admins"),
    [
        ((), None, None, None),
        (("direct",), None, "scope.direct", "scope.direct"),
        (("group",), "scope.groups", None, None),
        (("admins",), "scope.groups", "scope.admins", None),
        (("direct", "admins"), None, "scope.admins", None),
        (("direct", "group"), None, None, None),
    ],
)
def test_a_command_is_refused_out_of_its_scopes(
    scopes: tuple[CommandScope, ...], direct: str | None, group: str | None, admins: str | None
) -> None:
    command = _command("x", *scopes)
    assert [out_of_scope(command, scope) for scope in ("direct", "group", "admins")] == [direct, group, admins]


@pytest.mark.parametrize(
    ("fields", "scope"),
    [
        ({}, "direct"),
        ({"attributes": {"admin": True}}, "direct"),
        ({"group": True}, "group"),
        ({"group": True, "attributes": {"admin": "yes"}}, "group"),
        ({"group": True, "attributes": {"admin": True}}, "admins"),
    ],
)
def test_a_request_comes_from_a_scope(fields: dict[str, Any], scope: str) -> None:
    assert get_scope(ChannelRequest(channel="c", **fields)) == scope


@pytest.mark.parametrize(
    ("locale", "shown"),
    [
        (None, ("help", "About help")),
        ("", ("help", "About help")),
        ("fr", ("help", "About help")),
        ("de", ("hilfe", "Hilfe")),
        ("DE_at", ("hilfe", "Hilfe")),
        ("de-Latn-AT", ("hilfe", "Hilfe")),
        ("pt-br", ("help", "Ajuda")),
        ("pt", ("help", "About help")),
    ],
)
def test_a_command_is_called_as_a_language_says(locale: str | None, shown: tuple[str, str]) -> None:
    command = localize(_command("help", locales=GERMAN), locale)
    assert (command.name, command.description) == shown
    assert list_names(_command("help", locales=GERMAN)) == {"help", "hilfe"}


@pytest.mark.parametrize(
    ("request_locale", "own", "locale"),
    [(None, None, None), (None, "de", "de"), ("fr", "de", "fr"), ("", "de", "de"), (7, "de", "de"), (None, 7, None)],
)
def test_the_language_of_a_request_counts_before_that_of_its_sender(
    request_locale: Any, own: Any, locale: str | None
) -> None:
    request = ChannelRequest(channel="c", attributes={"locale": request_locale})
    assert parse_locale(request, ChannelIdentity("c", "1", attributes={"locale": own})) == locale
    assert parse_locale(request) == (request_locale if request_locale == "fr" else None)


def test_a_list_has_what_is_offered_in_a_scope() -> None:
    commands = [_command("all"), _command("mine", "direct"), _command("ours", "group"), _command("rule", "admins")]

    def names(scope: CommandScope | None) -> list[str]:
        return [command.name for command in list_offered(commands, scope, None)]

    assert names(None) == ["all", "mine", "ours", "rule"]
    assert (names("direct"), names("group")) == (["all", "mine"], ["all", "ours"])
    assert names("admins") == ["all", "ours", "rule"]


def test_a_platform_gets_no_more_menus_than_it_needs() -> None:
    plain, hidden = _command("all"), _command("debug", "direct", expose_in_ui=False)
    assert [(menu.scope, menu.locale) for menu in menus([plain, hidden])] == [(None, None)]
    german = _command("help", locales=GERMAN)
    shown = {(menu.scope, menu.locale): [command.name for command in menu.commands] for menu in menus([plain, german])}
    assert shown == {(None, None): ["all", "help"], (None, "de"): ["all", "hilfe"], (None, "pt-BR"): ["all", "help"]}
    scoped = [plain, hidden, _command("mine", "direct"), _command("rule", "admins")]
    shown = {menu.scope: [command.name for command in menu.commands] for menu in menus(scoped)}
    assert shown == {None: ["all"], "direct": ["all", "mine"], "group": ["all"], "admins": ["all", "rule"]}
