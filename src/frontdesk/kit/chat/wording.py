"""The host's words in one language: its own sentences, errors, and questions. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from frontdesk.abc.commands import BuiltInTexts
from frontdesk.data.approval import EXPIRED, Decision, PendingApproval, QuestionView
from frontdesk.errors import ForbiddenError, NotFoundError, Phrase, RequestError
from frontdesk.kit.chat.error_texts import ERRORS
from frontdesk.kit.chat.texts import Texts
from frontdesk.kit.chat.texts_en import ENGLISH
from frontdesk.kit.framework.contents import asked_for

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
    """The sentences of a catalogue in the language of one person; English without a `locale`."""

    def __init__(self, texts: BuiltInTexts, locale: str | None = None) -> None:
        self.texts, self.locale = texts, locale

    def say(self, key: str, /, **values: Any) -> str:
        """Return a sentence."""
        return self.texts.say(key, self.locale, **values)

    def say_phrase(self, phrase: Phrase) -> str:
        """Return a phrase."""
        return self.say(phrase.key, **phrase.values)

    def error(self, error: RequestError) -> str:
        """Return the text of an error: a sentence of the catalogue, or what the operator's own code has said."""
        return self.failure(error.message) if error.phrase is None else self.say_phrase(error.phrase)

    def failure(self, message: str) -> str:
        """Return the English message of an error or of a failed run in the language; itself if it is not built in."""
        key = _ERROR_KEYS.get(message)
        return message if key is None else self.say(key)

    def refusal(self, error: RequestError, *, group: bool) -> tuple[str, str]:
        """Return the reply to an event, and the one besides in the direct chat, which may be empty."""
        if group and isinstance(error, ForbiddenError):
            return self.failure(error.group_message), self.error(error)
        return self.error(error), ""

    def answer_error(self, error: RequestError) -> str:
        """Return why the answer to a question of a tool call does not count."""
        return self.say("approval.not_yours") if isinstance(error, NotFoundError) else self.error(error)

    def undecided(self, decision: Decision) -> str | None:
        """Return why an answer has not decided its question; `None` if the question is decided."""
        if decision.outcome == "not_yours" or decision.approval is None:
            # Only the person for whom the run asks sees a question that others decide.
            return self.say("approval.not_yours" if decision.approval is None else "approval.others")
        if decision.outcome == "changed":
            return self.say("approval.changed")
        return self.say("approval.needs_more") if decision.outcome == "needs_more" else None

    def decided(self, question: PendingApproval, person: str = "") -> str:
        """Return the text that replaces a question once it was decided; when, if others have decided it."""
        outcome = self._outcome(question, person)
        if question.terms is None or question.decided_at is None:
            return outcome
        return self.say("approval.at", outcome=outcome, when=when(question.decided_at))

    def asks(self, view: QuestionView) -> str:
        """Return the question that an approver is asked, with every argument of the call."""
        approval, terms = view.approval, view.approval.terms
        key = "approval.ask_for_group" if view.group else "approval.ask_for"
        said = [self.say(key, asker=view.asker, channel=view.channel, tool=approval.tool)]
        said.append(asked_for(approval.request)[1])
        if terms is not None and terms.votes > 1:
            said.append(self.say("approval.votes", votes=terms.votes))
        return "\n".join([*said, *self._until(approval)])

    def waits(self, question: PendingApproval, *, arguments: bool) -> str:
        """Return what the person for whom the run asks is told while others decide."""
        terms = question.terms
        people = ", ".join(() if terms is None else terms.names)
        said = [self.say("approval.waits", tool=question.tool, people=people)]
        if arguments:
            said.append(asked_for(question.request)[1])
        return "\n".join([*said, *self._until(question)])

    def _until(self, question: PendingApproval) -> list[str]:
        return [] if question.expires_at is None else [self.say("approval.until", when=when(question.expires_at))]

    def _outcome(self, question: PendingApproval, person: str) -> str:
        if question.status == "cancelled" or question.reason == EXPIRED:
            return self.say("approval.cancelled", tool=question.tool, reason=self._reason(question.reason or ""))
        key = "approval.approved" if question.status == "approved" else "approval.rejected"
        return self.say(f"{key}_by" if person else key, tool=question.tool, person=person)

    def _reason(self, reason: str) -> str:
        key = _REASON_KEYS.get(reason)
        return reason if key is None else self.say(key)


def when(at: float) -> str:
    """Return a time as everybody can read it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


ENGLISH_WORDING = Wording(Texts())
"""The words for people whose language is not known, if the operator has no texts."""
