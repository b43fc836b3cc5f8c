"""The text of an answer, put together from the updates of a stream."""

from typing import Any

from agent_framework import AgentResponseUpdate

from frontdesk.kit.framework.types import is_event

_BETWEEN = "\n\n"


class LiveText:
    """The text of the assistant as far as it has come; messages are parted by an empty line."""

    def __init__(self) -> None:
        self.text = ""
        self._source: object = None

    def add(self, update: Any) -> bool:
        """Add an update; tell whether it brought any text."""
        source, piece = _piece(update)
        if not piece:
            return False
        if self.text and source != self._source:
            self.text += _BETWEEN
        self._source = source
        self.text += piece
        return True


def _piece(update: Any, executor: str | None = None) -> tuple[object, str]:
    """Return the message that an update belongs to, and its text; no text if it has none to be shown."""
    if is_event(update):
        return _piece(update.data, update.executor_id) if update.type == "output" else (None, "")
    if isinstance(update, str):
        return executor, update
    if not isinstance(update, AgentResponseUpdate) or update.role not in (None, "assistant"):
        return None, ""
    text = "".join(content.text or "" for content in update.contents if content.type == "text")
    return (executor, update.message_id), text
