"""What the host says in the language of one person."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.i18n.en import ENGLISH, ERRORS
from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import ENGLISH_WORDING, Wording
from frontdesk.display.escaping import escape_line
from frontdesk.errors import (
    ConflictError,
    FileTooLargeError,
    ForbiddenError,
    LinkRequiredError,
    NotFoundError,
    Phrase,
    RequestError,
    SessionBusyError,
)
from frontdesk.models.approval import Decision
from frontdesk.models.identity import ChannelIdentity
from frontdesk_testing.store_samples import question

GERMAN = Wording(Texts(), "de-AT")


@pytest.mark.parametrize(
    ("error", "english", "german"),
    [
        (SessionBusyError(), SessionBusyError.__doc__, "In diesem Gespräch wird noch etwas anderes beantwortet."),
        (
            ConflictError("This approval has already been answered.", code="approval_answered"),
            "This approval has already been answered.",
            "Diese Frage wurde schon beantwortet.",
        ),
        (
            FileTooLargeError(7),
            "The file is larger than 7 B, which is the maximum here.",
            "Die Datei ist größer als 7 B; größere werden hier nicht aufbewahrt.",
        ),
        # What the operator's own code says is said as it is.
        (SessionBusyError("Tea time."), "Tea time.", "Tea time."),
        (ForbiddenError("Members only.", code="denied"), "Members only.", "Members only."),
    ],
)
def test_an_error(error: RequestError, english: str, german: str) -> None:
    assert (ENGLISH_WORDING.error(error), GERMAN.error(error)) == (english, german)


@pytest.mark.parametrize(
    ("error", "here", "direct"),
    [
        (LinkRequiredError(), "error.link_required_group", "error.link_required"),
        (ForbiddenError(), "error.forbidden_group", "error.forbidden"),
        (NotFoundError(), "error.not_found", None),
    ],
)
def test_a_refusal_in_a_group(error: RequestError, here: str, direct: str | None) -> None:
    said = GERMAN.say(here), "" if direct is None else GERMAN.say(direct)
    assert GERMAN.refusal(error, group=True) == said
    assert GERMAN.refusal(error, group=False) == (GERMAN.error(error), "")


@pytest.mark.parametrize(
    ("status", "reason", "person", "english", "german"),
    [
        (
            "approved",
            None,
            "Ada",
            "{}: approved by “Ada” (unverified, id 7) on web",
            "{}: erlaubt von „Ada“ (nicht geprüft, Id 7) auf web",
        ),
        ("approved", None, "", "{}: approved", "{}: erlaubt"),
        (
            "rejected",
            "no money",
            "Ada",
            "{}: rejected by “Ada” (unverified, id 7) on web",
            "{}: abgelehnt von „Ada“ (nicht geprüft, Id 7) auf web",
        ),
        ("cancelled", "expired", "", "{}: expired", "{}: abgelaufen"),
        ("cancelled", ENGLISH["reason.linked"], "Ada", "{}: The account was linked to another one.", None),
        ("cancelled", "The shop has closed.", "", "{}: The shop has closed.", "{}: The shop has closed."),
    ],
)
def test_a_decision(status: Any, reason: str | None, person: str, english: str, german: str | None) -> None:
    decided = question().replace(status=status, reason=reason)
    by = ChannelIdentity("web", "7", {"name": person}) if person else None
    assert ENGLISH_WORDING.decided(decided, by) == english.format(decided.tool)
    assert GERMAN.decided(decided, by) == (german or "{}: " + GERMAN.say("reason.linked")).format(decided.tool)


def test_an_answer_that_does_not_decide() -> None:
    asked = question()
    outcomes: list[tuple[Any, Any]] = [("not_yours", None), ("changed", asked), ("needs_more", asked), ("late", asked)]
    said = [GERMAN.undecided(Decision(outcome=outcome, approval=approval)) for outcome, approval in outcomes]
    keys = ("approval.not_yours", "approval.changed", "approval.needs_more")
    assert said == [*(GERMAN.say(key) for key in keys), None]
    assert GERMAN.answer_error(NotFoundError()) == GERMAN.say("approval.not_yours")
    assert GERMAN.answer_error(SessionBusyError()) == GERMAN.say("error.session_busy")


@given(st.text())
def test_a_value_is_said_as_it_is_except_for_what_can_not_be_seen(value: str) -> None:
    phrase = Phrase("question.please", {"answer": Phrase("approval.cancelled", {"tool": "x", "reason": value})})
    assert escape_line(value) in GERMAN.say_phrase(phrase)
    assert GERMAN.say("approval.ask", tool=value) == f"Darf ich {escape_line(value)} benutzen?"


def test_no_two_errors_say_the_same() -> None:
    assert len(set(ERRORS.values())) == len(ERRORS)
