"""The host's words in one language: its own sentences, errors, and questions. Pure."""

from collections.abc import Mapping
from typing import Any

from frontdesk.abc.commands import BuiltInTexts
from frontdesk.data.approval import EXPIRED, Decision, PendingApproval
from frontdesk.errors import ForbiddenError, NotFoundError, Phrase, RequestError
from frontdesk.kit.chat.error_texts import ERRORS
from frontdesk.kit.chat.texts import Texts
from frontdesk.kit.chat.texts_en import ENGLISH

_ERROR_KEYS: Mapping[str, str] = {sentence: key for key, sentence in ERRORS.items()}
_REASON_KEYS: Mapping[str, str] = {
    EXPIRED: "reason.expired",
    ENGLISH["reason.linked"]: "reason.linked",
    ENGLISH["reason.unlinked"]: "reason.unlinked",
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
            return self.say("approval.not_yours")
        if decision.outcome == "changed":
            return self.say("approval.changed")
        return self.say("approval.needs_more") if decision.outcome == "needs_more" else None

    def decided(self, question: PendingApproval, person: str = "") -> str:
        """Return the text that replaces a question once it was decided."""
        if question.status == "cancelled":
            return self.say("approval.cancelled", tool=question.tool, reason=self._reason(question.reason or ""))
        key = "approval.approved" if question.status == "approved" else "approval.rejected"
        return self.say(f"{key}_by" if person else key, tool=question.tool, person=person)

    def _reason(self, reason: str) -> str:
        key = _REASON_KEYS.get(reason)
        return reason if key is None else self.say(key)


ENGLISH_WORDING = Wording(Texts())
"""The words for people whose language is not known, if the operator has no texts."""
