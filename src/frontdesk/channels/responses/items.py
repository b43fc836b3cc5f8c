"""State of the assembler: open calls and reasoning, item ids, and annotations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from agent_framework import Content

from frontdesk.channels.responses.schema import (
    ApprovalItem,
    CustomCallItem,
    FunctionCallItem,
    ReasoningItem,
    ReasoningText,
    SummaryText,
)
from frontdesk.framework.approval_ids import waits_for, waits_for_people
from frontdesk.framework.contents import get_asked_call, is_reasoning_text
from frontdesk.streaming.assembler import Call, text_delta

ClientCallItem = (FunctionCallItem, CustomCallItem)
"""The items of calls that run in the client."""


def call_fields(call: Call) -> dict[str, Any]:
    """Return the fields by which events of a call name its item."""
    return {"item_id": "" if call.item is None else call.item.id, "output_index": call.index}


def question(asked: Content, label: str) -> ApprovalItem:
    name, arguments = get_asked_call(asked)
    item = ApprovalItem(id=str(asked.id), name=name, arguments=arguments, server_label=label)
    if (people := waits_for(asked)) is not None:
        item.waits_for = people
        item.waits_for_people = waits_for_people(asked) or msgspec.UNSET
    return item


def build_call(asked: Content) -> str:
    """Return the id of a call, or of the call that a question is about."""
    return str((asked.function_call or asked).call_id)


_PLACES = tuple(f"{place:04x}" for place in range(16))
"""The places of most items, as they are written in ids."""


def item_id(prefix: str, run_id: str, place: int) -> str:
    """Derive the id of an item from its response id, so that it can be found without an index of items."""
    written = _PLACES[place] if place < len(_PLACES) else f"{place:04x}"
    return f"{prefix}_{run_id.partition('_')[2] or run_id}{written}"


def annotations(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Render an annotation in the API format, once for each region it applies to."""
    regions: Sequence[Mapping[str, Any]] = given.get("annotated_regions") or ({},)
    title = given.get("title") or ""
    if given.get("file_id") and not given.get("url"):
        cited = {"type": "file_citation", "file_id": given["file_id"], "filename": title}
        return [{**cited, "index": region.get("start_index") or 0} for region in regions]
    cited = {"type": "url_citation", "url": given.get("url") or "", "title": title}
    return [
        {**cited, "start_index": region.get("start_index") or 0, "end_index": region.get("end_index") or 0}
        for region in regions
    ]


class _Events(NamedTuple):
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
    """An open reasoning item. The text of a part is joined once, at its end."""

    __slots__ = ("_emit", "_id", "_index", "_part", "_pieces", "item")

    def __init__(self, item: ReasoningItem, index: int, emit: Callable[[str, dict[str, Any]], None]) -> None:
        self.item = item
        self._index = index
        self._emit = emit
        self._id: str | None = None
        self._part: SummaryText | ReasoningText | None = None
        self._pieces: list[str] = []

    def continues(self, content: Content) -> bool:
        """Return True if a content belongs to this reasoning."""
        return not (content.id and self._id and content.id != self._id)

    def add(self, content: Content, *, encrypted: bool) -> None:
        self._id = self._id or content.id
        if content.protected_data and encrypted:
            self.item.encrypted_content = content.protected_data
        if not content.text:
            return
        raw = is_reasoning_text(content)
        if not isinstance(self._part, ReasoningText if raw else SummaryText):
            self._end_part()
            self._begin_part(raw)
        text = text_delta(self._pieces, content.text, content)
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
        self._end_part()
