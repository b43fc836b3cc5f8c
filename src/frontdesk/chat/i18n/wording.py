"""Renders the host's texts, errors and questions in one language. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from frontdesk.chat.i18n.en import ENGLISH, ERRORS
from frontdesk.chat.i18n.texts import Texts
from frontdesk.display.escaping import escape_line
from frontdesk.display.person_names import MARKS, MAX_NAME_LENGTH, asker_label, find_decider, list_awaited, person_label
from frontdesk.errors import ForbiddenError, NotFoundError, Phrase, RequestError
from frontdesk.framework.contents import display_call
from frontdesk.interfaces.context import BuiltInTexts
from frontdesk.markdown.plain_text import one_line
from frontdesk.models.approval import EXPIRED, Decision, PendingApproval, QuestionView
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.person_name import PersonName

_ERROR_KEYS: Mapping[str, str] = {sentence: key for key, sentence in ERRORS.items()}
_REASON_KEYS: Mapping[str, str] = {
    EXPIRED: "reason.expired",
    ENGLISH["reason.linked"]: "reason.linked",
    ENGLISH["reason.unlinked"]: "reason.unlinked",
    ENGLISH["reason.not_asked"]: "reason.not_asked",
    ENGLISH["reason.run_cancelled"]: "reason.run_cancelled",
    ENGLISH["reason.session_deleted"]: "reason.session_deleted",
}
"""The keys of the reasons for which the host cancels questions; stored are the English sentences."""


class Wording:
    """The texts of a catalogue in the language of one user. English without a `locale`."""

    def __init__(self, texts: BuiltInTexts, locale: str | None = None) -> None:
        self.texts, self.locale = texts, locale

    def say(self, key: str, /, **values: Any) -> str:
        return self.texts.say(key, self.locale, **values)

    def say_phrase(self, phrase: Phrase) -> str:
        return self.say(phrase.key, **phrase.values)

    def error(self, error: RequestError) -> str:
        """Return the text of an error: from the catalogue, or the message set by the operator's own code."""
        return self.failure(error.message) if error.phrase is None else self.say_phrase(error.phrase)

    def failure(self, message: str) -> str:
        """Translate the English message of an error or a failed run. Messages that are not built in are unchanged."""
        key = _ERROR_KEYS.get(message)
        return message if key is None else self.say(key)

    def refusal(self, error: RequestError, *, group: bool) -> tuple[str, str]:
        """Return the reply to an event, and an additional one for the direct chat, which may be empty."""
        if group and isinstance(error, ForbiddenError):
            return self.failure(error.group_message), self.error(error)
        return self.error(error), ""

    def answer_error(self, error: RequestError) -> str:
        """Return the reason why an answer to an approval does not count."""
        return self.say("approval.not_yours") if isinstance(error, NotFoundError) else self.error(error)

    def undecided(self, decision: Decision) -> str | None:
        """Return the reason why an answer did not decide its question, or None if the question is decided."""
        if decision.outcome == "not_yours" or decision.approval is None:
            # Only the person for whom the run asks sees a question that others decide.
            return self.say("approval.not_yours" if decision.approval is None else "approval.others")
        if decision.outcome == "changed":
            return self.say("approval.changed")
        return self.say("approval.needs_more") if decision.outcome == "needs_more" else None

    def decided(self, question: PendingApproval, by: ChannelIdentity | None = None) -> str:
        """Return the decision text. If others decided, it names the approver and the time."""
        outcome = self._outcome(question, by)
        return outcome if question.terms is None else self._with_time(question, outcome)

    def describe_settled(self, question: PendingApproval, by: ChannelIdentity | None = None) -> tuple[str, str]:
        """Return the text that replaces a decided question: the decision, approver, time and requester.

        The second text has the arguments of the call. It is empty where they must not be shown.
        """
        lines = [self._with_time(question, self._outcome(question, by))]
        if question.terms is not None and question.requester_name is not None:
            lines.append(self.say("approval.asked_by", person=person_label(question.requester_name)))
        return "\n".join(lines), display_call(question.request)[1] if keeps_arguments(question) else ""

    def _with_time(self, question: PendingApproval, outcome: str) -> str:
        if question.decided_at is None:
            return outcome
        return self.say("approval.at", outcome=outcome, when=when(question.decided_at))

    def asks(self, view: QuestionView) -> str:
        """Return the question for an approver, with every argument of the call."""
        approval, terms = view.approval, view.approval.terms
        key = "approval.ask_for_group" if view.group else "approval.ask_for"
        said = [self.say(key, asker=asker_label(view), channel=view.channel, tool=approval.tool)]
        said.append(display_call(approval.request)[1])
        if terms is not None and terms.votes > 1:
            said.append(self.say("approval.votes", votes=terms.votes))
        return "\n".join([*said, *self._until(approval)])

    def waits(self, question: PendingApproval, *, arguments: bool) -> str:
        """Return the text for the requester while others decide."""
        people = ", ".join(self.label(person) for person in list_awaited(question.terms))
        said = [self.say("approval.waits", tool=question.tool, people=people)]
        if arguments:
            said.append(display_call(question.request)[1])
        return "\n".join([*said, *self._until(question)])

    def _until(self, question: PendingApproval) -> list[str]:
        return [] if question.expires_at is None else [self.say("approval.until", when=when(question.expires_at))]

    def label(self, person: PersonName) -> str:
        """Return the display name of a person with short id and channel, or the name of a role."""
        label = person_label(person)
        return label if isinstance(label, str) else self.say_phrase(label)

    def _outcome(self, question: PendingApproval, by: ChannelIdentity | None) -> str:
        if question.status == "cancelled" or question.reason == EXPIRED:
            return self.say("approval.cancelled", tool=question.tool, reason=self._reason(question.reason or ""))
        key = "approval.approved" if question.status == "approved" else "approval.rejected"
        person = find_decider(question, by)
        if person is None:
            return self.say(key, tool=question.tool)
        return self.say(f"{key}_by", tool=question.tool, person=person_label(person))

    def _reason(self, reason: str) -> str:
        key = _REASON_KEYS.get(reason)
        return reason if key is None else self.say(key)


def keeps_arguments(question: PendingApproval) -> bool:
    """Return True if the arguments of a decided question remain visible.

    They are removed if the question was withdrawn, for example because its conversation was deleted.
    """
    shows = question.terms is None or question.terms.shows_arguments
    return shows and (question.status in ("approved", "rejected") or question.reason == EXPIRED)


def when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


ENGLISH_WORDING = Wording(Texts())
"""The words for people whose language is not known, if the operator has no texts."""


def person_phrase(identity: ChannelIdentity) -> Phrase:
    """Describe an identity, such as `"Ann" (id 42) on telegram`.

    Users choose their own names. The name is therefore shortened, quoted (it can't contain the quotation mark), and
    followed by the id, which users can't choose.
    """
    name, native_id = _plain(identity.attributes.get("name")), _plain(identity.native_id)
    if not name:
        return Phrase("person.unnamed", {"id": native_id, "channel": identity.channel})
    return Phrase("person.named", {"name": name, "id": native_id, "channel": identity.channel})


def describe_person(identity: ChannelIdentity) -> str:
    return ENGLISH_WORDING.say_phrase(person_phrase(identity))


def _plain(text: object) -> str:
    if not isinstance(text, str):
        return ""
    # Escapes are longer than what they stand for, so the limit counts them.
    shown = escape_line(one_line(text.translate(MARKS))[: MAX_NAME_LENGTH + 1])
    return shown if len(shown) <= MAX_NAME_LENGTH else f"{shown[: MAX_NAME_LENGTH - 1]}…"
