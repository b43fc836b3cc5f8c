"""Questions in a chat: their buttons, typed answers, and the text after the decision."""

import re
from collections.abc import Sequence
from typing import Any

from frontdesk.chat.i18n.wording import Wording
from frontdesk.chat.messages import Button, Card
from frontdesk.errors import Phrase
from frontdesk.framework.workflow_requests import are_numbered, describe_wanted, short_name
from frontdesk.identifiers import digest
from frontdesk.models.approval import Decision, PendingApproval
from frontdesk.models.identity import ChannelIdentity

APPROVE, REJECT, CHOOSE = "ok", "no", "choose"
_EARLIER = {"approve": APPROVE, "reject": REJECT}
"""The words of earlier versions, before a digest of the question's id."""
MAX_BUTTON_LENGTH = 30
"""The characters of a label that a button shows on a small screen."""
_DIGITS = 32
_MAX_BYTES = 61
"""The bytes that are left for the name of a question in a button."""
_WORDS = {
    **dict.fromkeys(("yes", "approve", "ok", "ja"), APPROVE),
    **dict.fromkeys(("no", "reject", "nein"), REJECT),
}
# Only an id of ours: `no problem` and `ok thanks` are said every day.
_WORDED = re.compile(r"([a-z]{2,8})\s{1,8}(apr_[\w-]{1,60})", re.IGNORECASE)


def approval_buttons(approval_id: str, wording: Wording) -> tuple[Button, ...]:
    name = name_on_button(approval_id)
    return (
        Button(text=wording.say("approval.approve"), data=f"{APPROVE}:{name}"),
        Button(text=wording.say("approval.reject"), data=f"{REJECT}:{name}"),
    )


def choice_buttons(call_id: str, labels: Sequence[str]) -> tuple[Button, ...]:
    name = short_name(call_id)
    return tuple(Button(text=label, data=f"{CHOOSE}:{name}:{number}") for number, label in enumerate(labels))


def question_in_words(question: str, wanted: Any, labels: Sequence[str], wording: Wording) -> str:
    """Return the text of a workflow question without buttons, including the accepted answers."""
    answer = describe_wanted(wanted, labels)
    if wanted is not bool and labels and are_numbered(labels):
        question, answer = _with_list(question, labels), Phrase("question.listed")
    return question if answer is None else f"{question}\n\n{wording.say('question.please', answer=answer)}"


def with_long_labels(question: str, labels: Sequence[str]) -> str:
    """Append the list of choices to a question if a label is too long to be shown in full on its button."""
    return _with_list(question, labels) if any(len(label) > MAX_BUTTON_LENGTH for label in labels) else question


def _with_list(question: str, labels: Sequence[str]) -> str:
    choices = "\n".join(f"{number}. {label}" for number, label in enumerate(labels, 1))
    return f"{question}\n\n{choices}"


def name_on_button(approval_id: str) -> str:
    """Return a name for an approval that fits on a button: its id, or a short name if the id is too long."""
    # Ids of earlier versions are the target's, and have any length.
    fits = len(approval_id.encode(errors="surrogatepass")) <= _MAX_BYTES
    return approval_id if fits else digest(approval_id)[:_DIGITS]


def read_button(data: str) -> tuple[str, bool]:
    """Return the name of the question that a button answers (or an empty one), and True if it approves."""
    word, _, name = data.partition(":")
    verb = _EARLIER.get(word, word)
    return (name if verb in (APPROVE, REJECT) else ""), verb == APPROVE


def read_choice(data: str) -> tuple[str, int] | None:
    """Return the short name of a workflow question and the choice index, or None for other buttons."""
    word, _, rest = data.partition(":")
    name, _, number = rest.partition(":")
    return (name, int(number)) if word == CHOOSE and number.isascii() and number.isdecimal() else None


def read_words(text: str) -> str | None:
    """Return the button data equivalent to a text such as `yes apr_1`, or None."""
    words = _WORDED.fullmatch(text.strip())
    verb = None if words is None else _WORDS.get(words[1].lower())
    return None if words is None or verb is None else f"{verb}:{words[2]}"


def find_asked_question(buttons: Sequence[Button]) -> str | None:
    """Return the id of the question that a message with buttons asks, or None."""
    names = {name for button in buttons if (name := read_button(button.data)[0])}
    return names.pop() if len(names) == 1 else None


def find_question(name: str, waiting: Sequence[PendingApproval]) -> PendingApproval | None:
    """Find a pending question by its id, or by the short name of a long id."""
    named = [question for question in waiting if question.approval_id == name]
    short = (question for question in waiting if digest(question.approval_id)[:_DIGITS] == name)
    return next(iter(named or short), None)


def build_card(decision: Decision, by: ChannelIdentity, wording: Wording, limit: int) -> Card:
    """Return the card for the user that pressed a button: the decision, or the reason why there is none.

    The card includes the arguments of the call if it stays within `limit` with them.
    """
    approval, notice = decision.approval, wording.undecided(decision)
    if notice is not None or approval is None:
        # The question may still wait for somebody else, so that its message stays.
        return Card(notice=notice or "")
    text, arguments = wording.describe_settled(approval, by)
    whole = f"{text}\n{arguments}"
    return Card(card=whole if arguments and len(whole) <= limit else text)
