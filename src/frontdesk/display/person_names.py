"""Display texts for people in approvals. Pure.

People choose their display names themselves. So a name is short, stands between quotation marks that it cannot contain,
and is marked as unverified unless a link has verified it. The account id, which people cannot choose, is shown next to
it.
"""

from collections.abc import Sequence

from frontdesk.display.escaping import escape_line
from frontdesk.errors import Phrase
from frontdesk.models.approval import ApproverTerms, PendingApproval, QuestionView
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.person_name import PersonName, get_given_name

MAX_NAME_LENGTH = 40
MAX_ID_LENGTH = 16
"""The length up to which an id is shown as a whole."""
_ID_START, _ID_END = 8, 4
_MAX_ESCAPED_LENGTH = 80
MARKS = dict.fromkeys(map(ord, '“”„‟»«"＂❝❞〝〞″'), " ")  # noqa: RUF001
"""Quotation marks of the languages that come with the host, and characters that look like them."""


def plain_name(text: object) -> str:
    """Return a name that is safe to display: one short line, no quotation marks, invisible characters escaped."""
    if not isinstance(text, str):
        return ""
    # A name of any length takes no more time than the part of it that can be shown.
    words = " ".join(text[: 4 * MAX_NAME_LENGTH].translate(MARKS).split())
    shown = escape_line(words)
    if len(words) <= MAX_NAME_LENGTH and len(shown) <= _MAX_ESCAPED_LENGTH:
        return shown
    words = words[: MAX_NAME_LENGTH - 1]
    while len(shown := escape_line(words)) >= _MAX_ESCAPED_LENGTH:
        words = words[:-1]
    return f"{shown}…"


def short_id(native_id: str) -> str:
    """Return an id for display next to a name. Long ids are reduced to both ends."""
    if len(native_id) <= MAX_ID_LENGTH:
        return plain_name(native_id)
    return f"{plain_name(native_id[:_ID_START])}…{plain_name(native_id[-_ID_END:])}"


def build_unverified_name(identity: ChannelIdentity) -> PersonName:
    """Return a person by the name from the platform. Links are not looked up."""
    name = plain_name(get_given_name(identity.attributes))
    return PersonName(name=name, native_id=identity.native_id, channel=identity.channel)


def build_label(person: PersonName) -> str:
    """Return the name of a person or role, or else the id."""
    return person.name or plain_name(person.native_id)


def person_label(person: PersonName) -> Phrase | str:
    """Describe a person with name, short id and channel, or a role by its name."""
    if not person.native_id:
        return person.name
    if person.is_operator:
        return Phrase("person.operator")
    values = {"name": person.name, "id": short_id(person.native_id), "channel": person.channel}
    if not person.name:
        del values["name"]
        return Phrase("person.unnamed", values)
    return Phrase("person.named" if person.verified else "person.unverified", values)


def asker_label(view: QuestionView) -> Phrase | str:
    """Describe the requester of a question with name and short id. The text of the question names the channel."""
    person = view.requester
    if person is None:
        return view.asker
    if not person.name:
        return short_id(person.native_id)
    key = "approval.asker" if person.verified else "approval.asker_unverified"
    return Phrase(key, {"name": person.name, "id": short_id(person.native_id)})


def list_awaited(terms: ApproverTerms | None) -> Sequence[PersonName]:
    """Return the people and roles that a question waits for."""
    if terms is None:
        return ()
    return terms.people or tuple(PersonName(name=plain_name(name)) for name in terms.names)


def find_decider(question: PendingApproval, by: ChannelIdentity | None) -> PersonName | None:
    """Return the person who has decided a question: as resolved by the host, or else by their account."""
    if question.decided_by is not None:
        return question.decided_by
    return None if by is None else build_unverified_name(by)
