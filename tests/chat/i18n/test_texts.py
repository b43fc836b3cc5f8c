"""The sentences of the host's own commands and notices."""

import re
from pathlib import Path
from typing import Any

import pytest

import frontdesk
from frontdesk import AgentFrameworkHost, ChannelConfigurationError
from frontdesk.chat.i18n.texts import ENGLISH, SHIPPED, Texts, placeholders, text_findings
from frontdesk_testing import EchoAgent

SOURCE = Path(frontdesk.__file__).parent
COMMANDS = {"start", "new", "sessions", "resume", "name", "cancel", "help", "link", "connect", "unlink", "whoami"}


def test_every_sentence_is_said_somewhere() -> None:
    catalogues = re.compile(r"(error_)?texts(_[a-z]+)?\.py")
    files = (path for path in SOURCE.rglob("*.py") if catalogues.fullmatch(path.name) is None)
    named = {key for path in files for key in re.findall(r"[\"']([a-z]+\.[a-z_]+)[\"']", path.read_text("utf-8"))}
    # The description of a command is found by its name.
    named |= {f"command.{name}" for name in COMMANDS}
    # That of an error is found by its message, and that of a decision by whether it is known who has decided.
    named |= {key for key in ENGLISH if key.startswith("error.")} | {f"{key}_by" for key in named}
    assert ENGLISH.keys() - named == set()


@pytest.mark.parametrize("locale", SHIPPED)
def test_a_language_that_comes_with_the_host_has_every_sentence(locale: str) -> None:
    assert SHIPPED[locale].keys() == ENGLISH.keys()
    assert text_findings(SHIPPED) == []
    assert [key for key, text in ENGLISH.items() if placeholders(text) != placeholders(SHIPPED[locale][key])] == []


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        (None, "There is nothing to stop."),
        ("", "There is nothing to stop."),
        ("fr", "There is nothing to stop."),
        ("de", "Es gibt nichts abzubrechen."),
        ("DE_at", "Es gibt nichts abzubrechen."),
        ("pt-BR", "Nada a parar."),
        ("pt", "There is nothing to stop."),
    ],
)
def test_a_sentence_is_said_in_the_language_of_the_person(locale: str | None, said: str) -> None:
    assert Texts({"pt-BR": {"cancel.nothing": "Nada a parar."}}).say("cancel.nothing", locale) == said


def test_the_sentences_of_the_operator_count_first() -> None:
    texts = Texts({"de": {"sessions.anew": "Von vorn!"}, "en": {"sessions.anew": "From the start!"}})
    assert [texts.say("sessions.anew", locale) for locale in ("de", "en", None)] == [
        "Von vorn!",
        "From the start!",
        "From the start!",
    ]
    assert texts.say("cancel.nothing", "de") == "Es gibt nichts abzubrechen."
    # What a value says is no placeholder.
    assert texts.say("sessions.named", title="{most}") == "This conversation is called “{most}” now."


@pytest.mark.parametrize(
    ("given", "finding"),
    [
        ({"de": {"sessions.old": "x"}}, "texts['de']: there is no text 'sessions.old'"),
        ({"de": {"sessions.anew": ""}}, "texts['de']: 'sessions.anew' must be a sentence, and is ''"),
        ({"de": {"sessions.anew": 7}}, "texts['de']: 'sessions.anew' must be a sentence, and is 7"),
        (
            {"de": {"sessions.named": "ohne"}},
            "texts['de']: 'sessions.named' must have the placeholders of the English text: {title}",
        ),
        (
            {"de": {"sessions.anew": "{title}"}},
            "texts['de']: 'sessions.anew' must have the placeholders of the English text: none",
        ),
        ({"de": {"sessions.anew": "{"}}, "texts['de']: 'sessions.anew' can't be read: "),
        ({"de": "x"}, "texts must have a mapping of keys to sentences for each language"),
        (["de"], "texts must have a mapping of keys to sentences for each language"),
    ],
)
def test_sentences_that_can_not_be_said_are_found_when_the_host_is_built(given: Any, finding: str) -> None:
    with pytest.raises(ChannelConfigurationError) as error:
        AgentFrameworkHost(EchoAgent(), channels=[], texts=given)
    assert any(line.startswith(finding) for line in error.value.findings)
