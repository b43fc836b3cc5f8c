"""Answers to the forms of the page: validates them against the form, and records them on its message."""

import msgspec

from frontdesk.channels.web.mailbox import Mailbox, MessageRef
from frontdesk.channels.web.parse import FORM_NUMBER, parse_chat
from frontdesk.channels.web.render import storable
from frontdesk.channels.web.wire import Form, FormAnswer, StoredMessage
from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.framework.request_forms import check, in_words
from frontdesk.models.delivery import InboxItem

_MAX_SENTENCES = 5


async def read_answer(mailbox: Mailbox, spot: MessageRef, answer: FormAnswer) -> tuple[str, str]:
    """Return the question that a form answers, and its values as text. Reject invalid values."""
    message = await mailbox.peek(await mailbox.find_holder(spot._replace(number=answer.number)))
    if message is None or message.form is None:
        raise NotFoundError("Form not found.", param="form")
    found = check(message.form.fields, answer.values)
    if found:
        sentences = " ".join(problem.sentence for problem in found[:_MAX_SENTENCES])
        raise InvalidRequestError(storable(sentences), param="form", code="form_invalid")
    return message.form.id, storable(in_words(message.form.fields, answer.values))


async def note_answer(mailbox: Mailbox, item: InboxItem, *, answered: bool) -> None:
    """Store in a form's message if it is answered. An event that does not answer a form changes nothing."""
    number = item.request.attributes.get(FORM_NUMBER)
    if not isinstance(number, int):
        return

    def change(before: StoredMessage) -> tuple[StoredMessage, str | None]:
        form = before.form
        if form is None or form.answered == answered:
            return before, None
        return msgspec.structs.replace(before, form=Form(id=form.id, fields=form.fields, answered=answered)), None

    place = MessageRef(item.caller.identity.native_id, parse_chat(item.conversation_id), number)
    await mailbox.edit(await mailbox.find_holder(place), change)
