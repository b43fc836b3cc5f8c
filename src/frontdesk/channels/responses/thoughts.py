"""Draws what a model thought: a summary of it, the text itself, or one after the other."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from agent_framework import Content

from frontdesk.channels.responses.drawing import piece
from frontdesk.channels.responses.wire import ReasoningItem, ReasoningText, SummaryText
from frontdesk.kit.contents import is_reasoning_text


class _Events(NamedTuple):
    """What is told of a part of a thought."""

    added: str
    delta: str
    said: str
    done: str


_IN_SHORT = _Events(
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
)
_IN_FULL = _Events(
    "response.content_part.added",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.content_part.done",
)


class Thought:
    """A thought that has not ended; what a part of it says is joined once, at its end."""

    __slots__ = ("_emit", "_id", "_index", "_part", "_pieces", "item")

    def __init__(self, item: ReasoningItem, index: int, emit: Callable[[str, dict[str, Any]], None]) -> None:
        self.item = item
        self._index = index
        self._emit = emit
        self._id: str | None = None
        self._part: SummaryText | ReasoningText | None = None
        self._pieces: list[str] = []

    def continues(self, content: Content) -> bool:
        """Whether a content belongs to it."""
        return not (content.id and self._id and content.id != self._id)

    def add(self, content: Content, *, encrypted: bool) -> None:
        """Takes the next piece of it."""
        self._id = self._id or content.id
        if content.protected_data and encrypted:
            self.item.encrypted_content = content.protected_data
        if not content.text:
            return
        raw = is_reasoning_text(content)
        if not isinstance(self._part, ReasoningText if raw else SummaryText):
            self._end_part()
            self._begin_part(raw)
        text = piece(self._pieces, content.text, content)
        if text:
            self._emit((_IN_FULL if raw else _IN_SHORT).delta, {**self._place(raw), "delta": text})

    def _begin_part(self, raw: bool) -> None:
        item = self.item
        if raw:
            self._part = ReasoningText(text="")
            item.content = [*([] if item.content is msgspec.UNSET else item.content), self._part]
        else:
            self._part = SummaryText(text="")
            item.summary.append(self._part)
        self._emit((_IN_FULL if raw else _IN_SHORT).added, {**self._place(raw), "part": self._part})

    def _end_part(self) -> None:
        part, self._part = self._part, None
        if part is None:
            return
        part.text, self._pieces = "".join(self._pieces), []
        raw = isinstance(part, ReasoningText)
        events = _IN_FULL if raw else _IN_SHORT
        self._emit(events.said, {**self._place(raw), "text": part.text})
        self._emit(events.done, {**self._place(raw), "part": part})

    def _place(self, raw: bool) -> dict[str, Any]:
        place: dict[str, Any] = {"item_id": self.item.id, "output_index": self._index}
        if raw:
            return {**place, "content_index": 0 if self.item.content is msgspec.UNSET else len(self.item.content) - 1}
        return {**place, "summary_index": len(self.item.summary) - 1}

    def end(self) -> None:
        """Ends it."""
        self._end_part()
