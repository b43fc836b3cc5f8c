"""Changes of a message while it is written, and when it is replaced. Pure."""

import msgspec

from frontdesk.abc.live import LivePlace, LiveView
from frontdesk.abc.push import PushPart
from frontdesk.channels.web.client import PIECE, Edit, Spot
from frontdesk.channels.web.parse import chat_of
from frontdesk.channels.web.render import storable
from frontdesk.channels.web.wire import Content, StoredMessage
from frontdesk.errors import PushNotEditableError


def handle_of(place: Spot) -> str:
    """Return the handle of a message."""
    return f"{place.visitor}/{place.chat}/{place.number}"


def read_handle(handle: str) -> Spot:
    """Return the place of a message by its handle."""
    visitor, _, rest = handle.partition("/")
    chat, _, number = rest.partition("/")
    return Spot(visitor, chat, int(number))


def place_of(place: LivePlace) -> Spot:
    """Return the conversation in which an answer is shown."""
    return Spot(place.identity.native_id, chat_of(place.conversation_id))


def showing(view: LiveView) -> Edit:
    """Return the change that shows more of an answer; one that is complete takes none."""
    text = storable(view.text)

    def change(before: StoredMessage) -> tuple[StoredMessage, str | None]:
        if before.state != "live":
            raise PushNotEditableError("The answer is complete.")
        # Beyond its beginning, a text is compared by what the writer says of it.
        grows = _begins(text, before) and (before.length <= PIECE or view.new_from >= before.length)
        return (before if grows else _anew(before)), text

    return change


def replacing(part: PushPart, content: Content | None) -> Edit:
    """Return the change that a part asks for: to complete an answer, to settle a question, or to remove a message."""

    def change(before: StoredMessage) -> tuple[StoredMessage, str | None]:
        if part.action == "retract":
            if before.state == "removed":
                return before, None
            # Its place stays, and nothing of what it said.
            gone = msgspec.structs.replace(_anew(before), state="removed", question=None, buttons=(), files=())
            return gone, ""
        if content is None:
            return msgspec.structs.replace(before, state="stopped", buttons=()), None
        fields = {name: getattr(content, name) for name in Content.__struct_fields__ if name != "text"}
        after = msgspec.structs.replace(before, state="done", **fields)
        if part.action == "settle":
            return msgspec.structs.replace(after, origin=before.origin, buttons=()), None
        grows = before.length <= PIECE and _begins(content.text, before)
        return (after if grows else _anew(after)), content.text

    return change


def _begins(text: str, before: StoredMessage) -> bool:
    return len(text) >= before.length and text.startswith(before.text)


def _anew(message: StoredMessage) -> StoredMessage:
    return msgspec.structs.replace(message, epoch=message.epoch + 1)
