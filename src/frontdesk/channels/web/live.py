"""Changes of a message while it is written, and when it is replaced. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from frontdesk.abc.live import LivePlace, LiveView
from frontdesk.abc.push import PushPart
from frontdesk.channels.web.client import PIECE, Edit, Spot
from frontdesk.channels.web.parse import chat_of
from frontdesk.channels.web.render import sources_of, storable, tools_of
from frontdesk.channels.web.wire import Content, StoredMessage, Tool
from frontdesk.errors import PushNotEditableError

_NOTHING: dict[str, Any] = {"question": None, "buttons": (), "files": (), "tools": (), "citations": (), "form": None}


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
        after = msgspec.structs.replace(
            before if grows else _anew(before), tools=tools_of(view.tools), citations=sources_of(view.citations)
        )
        return after, text

    return change


def replacing(part: PushPart, content: Content | None) -> Edit:
    """Return the change that a part asks for: to complete an answer, to settle a question, or to remove a message."""

    def change(before: StoredMessage) -> tuple[StoredMessage, str | None]:
        if part.action == "retract":
            if before.state == "removed":
                return before, None
            # Its place stays, and nothing of what it said.
            gone = msgspec.structs.replace(_anew(before), state="removed", **_NOTHING)
            return gone, ""
        if content is None:
            return msgspec.structs.replace(before, state="stopped", buttons=(), tools=_stopped(before.tools)), None
        fields = {name: getattr(content, name) for name in Content.__struct_fields__ if name != "text"}
        fields["tools"] = _timed(content.tools, before.tools)
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


def _timed(tools: Sequence[Tool], before: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the calls of a whole answer with their times, which were seen while it was written."""
    seconds = {tool.id: tool.seconds for tool in before}
    return tuple(msgspec.structs.replace(tool, seconds=seconds.get(tool.id)) for tool in tools)


def _stopped(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    return tuple(msgspec.structs.replace(tool, state="stopped") if tool.state == "running" else tool for tool in tools)
