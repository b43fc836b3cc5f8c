"""Questions in a chat: their buttons, the words that answer them instead, and what is shown once they were decided."""

import re
from collections.abc import Sequence
from typing import Any

from frontdesk.data.approval import Decision, PendingApproval
from frontdesk.data.identity import ChannelIdentity
from frontdesk.errors import Phrase
from frontdesk.kit.chat.messages import Button, Card
from frontdesk.kit.chat.wording import Wording
from frontdesk.kit.framework.request_choices import are_numbered, short_name, wanted_phrase
from frontdesk.kit.names import digest

APPROVE, REJECT, CHOOSE = "ok", "no", "choose"
_EARLIER = {"approve": APPROVE, "reject": REJECT}
"""The words of earlier versions, before a digest of the question's id."""
_DIGITS = 32
_MOST_BYTES = 61
"""The bytes that are left for the name of a question in a button."""
_WORDS = {
    **dict.fromkeys(("yes", "approve", "ok", "ja"), APPROVE),
    **dict.fromkeys(("no", "reject", "nein"), REJECT),
}
# Only an id of ours: `no problem` and `ok thanks` are said every day.
_WORDED = re.compile(r"([a-z]{2,8})\s{1,8}(apr_[\w-]{1,60})", re.IGNORECASE)


def approval_buttons(approval_id: str, wording: Wording) -> tuple[Button, ...]:
    """Return the buttons of an approval."""
    name = name_on_button(approval_id)
    return (
        Button(text=wording.say("approval.approve"), data=f"{APPROVE}:{name}"),
        Button(text=wording.say("approval.reject"), data=f"{REJECT}:{name}"),
    )


def choice_buttons(call_id: str, labels: Sequence[str]) -> tuple[Button, ...]:
    """Return the buttons of a question of a workflow."""
    name = short_name(call_id)
    return tuple(Button(text=label, data=f"{CHOOSE}:{name}:{number}") for number, label in enumerate(labels))


def question_in_words(question: str, wanted: Any, labels: Sequence[str], wording: Wording) -> str:
    """Return the text of a question of a workflow that has no buttons, with what is taken for an answer."""
    answer = wanted_phrase(wanted, labels)
    if wanted is not bool and labels and are_numbered(labels):
        choices = "\n".join(f"{number}. {label}" for number, label in enumerate(labels, 1))
        question, answer = f"{question}\n\n{choices}", Phrase("question.listed")
    return question if answer is None else f"{question}\n\n{wording.say('question.please', answer=answer)}"


def name_on_button(approval_id: str) -> str:
    """Return the name of an approval that fits on a button: its id, unless that is too long."""
    # Ids of earlier versions are the target's, and have any length.
    fits = len(approval_id.encode(errors="surrogatepass")) <= _MOST_BYTES
    return approval_id if fits else digest(approval_id)[:_DIGITS]


def read_button(data: str) -> tuple[str, bool]:
    """Return the name of the question that a button answers, or an empty one; and whether it says yes."""
    word, _, name = data.partition(":")
    verb = _EARLIER.get(word, word)
    return (name if verb in (APPROVE, REJECT) else ""), verb == APPROVE


def read_choice(data: str) -> tuple[str, int] | None:
    """Return the short name of a workflow's question and the number of the choice, if a button is one of these."""
    word, _, rest = data.partition(":")
    name, _, number = rest.partition(":")
    return (name, int(number)) if word == CHOOSE and number.isascii() and number.isdecimal() else None


def read_words(text: str) -> str | None:
    """Return the data of the button that a text such as `yes apr_1` stands for; `None` if it is none."""
    words = _WORDED.fullmatch(text.strip())
    verb = None if words is None else _WORDS.get(words[1].lower())
    return None if words is None or verb is None else f"{verb}:{words[2]}"


def asked_in(buttons: Sequence[Button]) -> str | None:
    """Return the id of the question that a message with buttons asks; `None` if it asks none."""
    names = {name for button in buttons if (name := read_button(button.data)[0])}
    return names.pop() if len(names) == 1 else None


def find_question(name: str, waiting: Sequence[PendingApproval]) -> PendingApproval | None:
    """Find a question among those that wait, by its id, or by the short name of a long id."""
    named = [question for question in waiting if question.approval_id == name]
    short = (question for question in waiting if digest(question.approval_id)[:_DIGITS] == name)
    return next(iter(named or short), None)


def card_of(decision: Decision, who: str, wording: Wording) -> Card:
    """Return what the person who has pressed a button is shown: the decision, or why there is none."""
    approval, notice = decision.approval, wording.undecided(decision)
    if notice is not None or approval is None:
        # The question may still wait for somebody else, so that its message stays.
        return Card(notice=notice or "")
    return Card(card=wording.decided(approval, who))


def name_of(identity: ChannelIdentity | None) -> str:
    """Return the name of a person, or an empty one."""
    return "" if identity is None else str(identity.attributes.get("name", ""))
