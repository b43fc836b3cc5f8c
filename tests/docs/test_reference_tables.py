"""Tables of parameters and errors in docs/reference are those that the tools write from the code."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, get_name, request_errors
from tools import error_reference, reference_tables
from tools.error_reference import GROUPS, TextsError, find_codes
from tools.reference_tables import TableError, list_documented, render

REFERENCE = ROOT / "docs/reference"
DOCUMENTED = {
    "a2a": ["frontdesk.channels.a2a.A2AChannel own"],
    "chat-channel": ["frontdesk.chat.config.ChatConfig", "frontdesk.chat.media.MediaLimits"],
    "chat-completions": ["frontdesk.channels.chat_completions.ChatCompletionsChannel own"],
    "conversations": ["frontdesk.channels.conversations.ConversationsChannel own"],
    "foundry": ["frontdesk.FoundryHostedAgentHistoryProvider"],
    "host": [
        "frontdesk.AgentFrameworkHost",
        "frontdesk.ServerLimits",
        "frontdesk.HostStatePaths",
        "frontdesk.ApiKeyAuth",
        "frontdesk.InMemoryStateStore",
    ],
    "http-callers": [
        "frontdesk.channels.invocations.InvocationsChannel shared",
        *(
            f"frontdesk.{name}"
            for name in (
                *("AnyAuth", "HmacAuth", "HmacHeaders", "PlatformAuth", "TrustedEnvironment", "TrustedPeers"),
                *("TrustedSecret", "HttpLimits", "RateLimit"),
            )
        ),
    ],
    "activity": [
        "frontdesk.channels.activity.ActivityChannel explicit",
        "frontdesk.activity.config.BotServiceConfig own - app_id credential platform_auth",
    ],
    "agui": ["frontdesk.channels.agui.AGUIChannel own"],
    "invocations": ["frontdesk.channels.invocations.InvocationsChannel own"],
    "mcp": ["frontdesk.channels.mcp.MCPChannel own"],
    "linking": ["frontdesk.OneTimeCodeIdentityLinker"],
    "responses": ["frontdesk.channels.responses.ResponsesChannel own"],
    "responses-websocket": ["frontdesk.channels.responses.SocketLimits"],
    "signing-in": [
        f"frontdesk.{name}"
        for name in ("BearerAuth", "OAuthIdentityLinker", "Oidc", "Google", "Entra", "GitHub", "ProviderHttp")
    ],
    "state": [f"frontdesk.{name}" for name in ("SqliteStateStore", "PostgresStateStore", "Expiry", "FileLimits")],
    "telegram": [
        "frontdesk.channels.telegram.TelegramChannel explicit",
        "frontdesk.channels.telegram.config.TelegramConfig own - bot_token secret_token",
    ],
    "web-chat": ["frontdesk.channels.web.WebChatChannel", "frontdesk.channels.web.theme.WebTheme"],
}
"""The classes whose parameters each page lists."""
SHARED_LINES = ("a2a", "agui", "chat-completions", "conversations", "invocations", "mcp", "responses")
LIMITS = (REFERENCE / "responses-websocket.md").read_text("utf-8")


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=get_name)
def test_tables_of_parameters_are_those_of_the_code(page: Path) -> None:
    """After a changed parameter, run `python -m tools.reference_tables`."""
    text = page.read_text("utf-8")
    assert list_documented(text) == DOCUMENTED.get(page.stem, [])
    assert text.count("<!-- shared: ") == (page.stem in SHARED_LINES)
    assert render(text) == text


def test_a_changed_default_and_a_removed_parameter_are_found() -> None:
    assert render(LIMITS.replace("| `1000` |", "| `2000` |")) == LIMITS
    assert render(re.sub(r"(\| `max_open` .*\n)", r"\1| `gone` | `1` | Nothing. |\n", LIMITS)) == LIMITS


@pytest.mark.parametrize("found", [r"\| `max_open` .*\n", r"(?<=\| `max_open` \| `1000` \| ).*(?= \|\n)"])
def test_a_parameter_without_a_text_is_found(found: str) -> None:
    with pytest.raises(TableError, match=r"describe max_open of frontdesk\.channels\.responses\.SocketLimits"):
        render(re.sub(found, "", LIMITS))


def test_a_changed_shared_default_is_found() -> None:
    text = (REFERENCE / "responses.md").read_text("utf-8")
    assert "`body_timeout=60.0`" in text
    assert render(text.replace("`body_timeout=60.0`", "`body_timeout=6.0`")) == text


def test_every_shared_parameter_is_described() -> None:
    text = (REFERENCE / "http-callers.md").read_text("utf-8")
    assert all(f"\n| `{name}` | " in text for name in reference_tables.SHARED)


def test_the_page_of_errors_is_current() -> None:
    """After a changed code or message, run `python -m tools.error_reference`."""
    text = error_reference.PAGE.read_text("utf-8")
    assert error_reference.render(text) == text


def test_every_code_of_a_request_has_a_row_with_its_status() -> None:
    codes = find_codes()["request"]
    assert len(codes) > 80
    for kind in request_errors():
        assert kind.status in codes[kind.code].statuses
    text = error_reference.PAGE.read_text("utf-8")
    for group in GROUPS:
        assert all(f"\n| `{code}`" in text for code in find_codes()[group])


@pytest.mark.parametrize("change", ["remove", "rename", "no cause"])
def test_a_code_without_a_text_and_a_text_without_a_code_are_found(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = re.compile(r"^link_busy = \{ cause = \"([^\"]*)\"(.*)\n", re.MULTILINE)
    new = {
        "remove": "",
        "rename": r'link_bus = { cause = "\1"\2' + "\n",
        "no cause": r'link_busy = { cause = ""\2' + "\n",
    }
    texts = tmp_path / "texts.toml"
    texts.write_text(row.sub(new[change], error_reference.TEXTS.read_text("utf-8")), "utf-8")
    monkeypatch.setattr(error_reference, "TEXTS", texts)
    with pytest.raises(TextsError, match="link_bus"):
        error_reference.collect()


def test_a_message_that_is_quoted_is_in_the_source() -> None:
    texts = tomllib.loads(error_reference.TEXTS.read_text("utf-8"))
    quoted = [
        one["message"] for rows in texts.values() for one in rows.values() if one.get("message", "a")[0].isupper()
    ]
    source = re.sub(
        r'"\s*\n\s*f?"', "", "".join(path.read_text("utf-8") for path in error_reference.SOURCE.rglob("*.py"))
    )
    assert len(quoted) > 5
    assert [one for one in quoted if one.partition("{")[0] not in source] == []
