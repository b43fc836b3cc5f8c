"""What has to be true of the events of a stream as a whole."""

from collections.abc import Sequence
from typing import Any

FIRST = ["response.created", "response.in_progress"]
LAST = ("response.completed", "response.failed", "response.incomplete")
Place = tuple[str, str, int]
QUEUED = ["response.created", "response.queued"]
"""The whole stream of a run whose answer goes elsewhere."""
_CALLS = {"function_call": "response.function_call_arguments", "mcp_call": "response.mcp_call_arguments"}


def wrong_sequence(events: Sequence[dict[str, Any]], *, ended: bool = True) -> list[str]:
    """Everything that is wrong with the events; without `ended` the last ones may be missing."""
    wrong = [
        f"event {place} has the number {event.get('sequence_number')}"
        for place, event in enumerate(events)
        if event.get("sequence_number") != place
    ]
    kinds = [event["type"] for event in events]
    if kinds == QUEUED:
        return wrong
    if kinds[:2] != FIRST[: len(kinds)]:
        wrong.append(f"the stream begins with {kinds[:2]}")
    if any(kinds.count(kind) > 1 for kind in FIRST):
        wrong.append("the stream begins twice")
    if any(kind in LAST for kind in kinds[:-1]):
        wrong.append("something follows the last event")
    if ended and (not kinds or kinds[-1] not in LAST):
        wrong.append(f"the stream ends with {kinds[-1:]}")
    reader = _Reader()
    for event in events:
        reader.read(event)
    wrong += reader.wrong
    if ended and not wrong:
        wrong += reader.unlike(events[-1]["response"]["output"])
    return wrong


def wrong_rest(events: Sequence[dict[str, Any]]) -> list[str]:
    """What is wrong with the events of a stream that was taken up again; all of it is known only to the test."""
    numbers = [event.get("sequence_number") for event in events]
    wanted = list(range(numbers[0] or 0, (numbers[0] or 0) + len(numbers))) if numbers else []
    return [] if numbers == wanted else [f"the numbers of a stream that was taken up again: {numbers}"]


class _Reader:
    """Puts the items together as a careful client does."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._items: list[dict[str, Any]] = []
        self._done: dict[int, dict[str, Any]] = {}
        self._parts: dict[Place, list[str]] = {}
        self._whole: set[Place] = set()
        self._ended: dict[Place, dict[str, Any]] = {}
        self._arguments: dict[str, list[str]] = {}
        self._all_arguments: dict[str, str] = {}
        self._annotations: dict[Place, list[Any]] = {}

    def read(self, event: dict[str, Any]) -> None:
        """Takes the next event."""
        kind: str = event["type"]
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._item(event, begins=kind.endswith("added"))
        elif "item_id" in event:
            self._about_item(kind, event)

    def _item(self, event: dict[str, Any], *, begins: bool) -> None:
        index, item = event["output_index"], event["item"]
        if begins:
            self._need(index == len(self._items), f"item {index} was added as number {len(self._items)}")
            self._items.append(item)
            return
        self._need(index not in self._done, f"item {index} was done twice")
        self._need(index < len(self._items), f"item {index} was done before it was added")
        if index < len(self._items):
            begun = self._items[index]
            self._need((begun["id"], begun["type"]) == (item["id"], item["type"]), f"item {index} became another")
        self._done[index] = item

    def _about_item(self, kind: str, event: dict[str, Any]) -> None:
        index = event["output_index"]
        if not (index < len(self._items) and self._items[index]["id"] == event["item_id"]):
            self.wrong.append(f"{kind} is about {event['item_id']}, which is not item {index}")
            return
        self._need(index not in self._done, f"{kind} came after its item was done")
        if "content_index" in event or "summary_index" in event:
            self._about_part(kind, event)
        elif kind.endswith("_arguments.delta"):
            self._arguments.setdefault(event["item_id"], []).append(event["delta"])
        elif kind.endswith("_arguments.done"):
            self._all_arguments[event["item_id"]] = event["arguments"]

    def _about_part(self, kind: str, event: dict[str, Any]) -> None:
        where = "content" if "content_index" in event else "summary"
        place = (event["item_id"], where, event[f"{where}_index"])
        if kind.endswith("part.added"):
            self._need(place not in self._parts, f"part {place} was added twice")
            self._need(not _get_text(event["part"]), f"part {place} began with words in it")
            self._parts[place] = []
        elif kind.endswith("part.done"):
            self._need(place in self._whole, f"part {place} was done before its text")
            self._need(place not in self._ended, f"part {place} was done twice")
            self._need(_get_text(event["part"]) == self._so_far(place), f"the deltas of part {place} are not its text")
            self._ended[place] = event["part"]
        elif kind.endswith(".delta"):
            self._need(place in self._parts and place not in self._ended, f"a delta for part {place}, not open")
            self._parts.setdefault(place, []).append(event["delta"])
        elif kind.endswith(".done"):
            said = event.get("text", event.get("refusal"))
            self._need(place not in self._whole, f"the text of part {place} was done twice")
            self._whole.add(place)
            self._need(said == self._so_far(place), f"the deltas of part {place} are not its text")
        elif kind.endswith("annotation.added"):
            noted = self._annotations.setdefault(place, [])
            self._need(event["annotation_index"] == len(noted), f"annotation {event['annotation_index']} of {place}")
            noted.append(event["annotation"])

    def _so_far(self, place: Place) -> str:
        return "".join(self._parts.get(place, ()))

    def unlike(self, output: list[dict[str, Any]]) -> list[str]:
        """How the items that were told of differ from those of the last event."""
        items = [self._done.get(index) for index in range(len(self._items))]
        wrong = [f"item {index} was never done" for index, item in enumerate(items) if item is None]
        if not wrong and items != output:
            wrong.append(f"the items of the stream are not those of its end: {items} != {output}")
        for item in output:
            wrong += self._parts_unlike(item)
            if item["type"] in _CALLS:
                told = "".join(self._arguments.get(item["id"], ()))
                if not told == item["arguments"] == self._all_arguments.get(item["id"]):
                    wrong.append(f"the arguments of {item['id']} came as {told!r}")
        return wrong

    def _parts_unlike(self, item: dict[str, Any]) -> list[str]:
        places = [(item["id"], where, n) for where in ("content", "summary") for n in range(len(item.get(where) or ()))]
        parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
        told = [self._ended.get(place) for place in places]
        noted = [self._annotations.get(place, []) for place in places]
        wrong = [] if told == parts else [f"the parts of {item['id']} came as {told}"]
        if noted != [part.get("annotations", []) for part in parts]:
            wrong.append(f"the annotations of {item['id']} came as {noted}")
        return wrong

    def _need(self, true: bool, otherwise: str) -> None:
        if not true:
            self.wrong.append(otherwise)


def _get_text(part: dict[str, Any]) -> str:
    return part.get("text", part.get("refusal", ""))
