"""What the assembler draws with: calls that have not ended, ids, pieces and annotations. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import Content

from frontdesk.channels.responses.wire import ApprovalItem, FunctionCallItem, HostCallItem
from frontdesk.kit.contents import asked_for

HOST_CALLS = frozenset(
    {
        "function_call",
        "mcp_server_tool_call",
        "code_interpreter_tool_call",
        "search_tool_call",
        "shell_tool_call",
        "computer_tool_call",
    }
)
HOST_RESULTS = frozenset(
    {
        "function_result",
        "mcp_server_tool_result",
        "code_interpreter_tool_result",
        "search_tool_result",
        "shell_tool_result",
        "computer_tool_result",
    }
)
MEDIA = frozenset({"data", "uri", "hosted_file"})


class Call:
    """A call that has not ended; without an item if it is not shown."""

    __slots__ = ("content", "index", "item", "message", "pieces")

    def __init__(self, content: Content) -> None:
        self.content = content
        self.item: FunctionCallItem | HostCallItem | None = None
        self.index = 0
        self.message = 0
        self.pieces: list[str] = []

    @property
    def place(self) -> dict[str, Any]:
        return {"item_id": "" if self.item is None else self.item.id, "output_index": self.index}


def question(asked: Content, label: str) -> ApprovalItem:
    """A question about a call that waits for a human."""
    name, arguments = asked_for(asked)
    return ApprovalItem(id=str(asked.id), name=name, arguments=arguments, server_label=label)


def call_of(asked: Content) -> str:
    """The id of a call, or of the one that a question is about."""
    return str((asked.function_call or asked).call_id)


def item_id(prefix: str, run_id: str, place: int) -> str:
    """The id of an item, which holds that of its response: so it is found again without an index of items."""
    return f"{prefix}_{run_id.partition('_')[2] or run_id}{place:04x}"


def piece(pieces: list[str], text: str, content: Content) -> str:
    """What a content adds to the pieces before it; a snapshot repeats them."""
    if content.merge_mode == "replace":
        said = "".join(pieces)
        if text.startswith(said):
            text = text[len(said) :]
        else:
            pieces.clear()
    pieces.append(text)
    return text


def annotations(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """An annotation as the API draws it, once for every place that it is about."""
    regions: Sequence[Mapping[str, Any]] = given.get("annotated_regions") or ({},)
    title = given.get("title") or ""
    if given.get("file_id") and not given.get("url"):
        cited = {"type": "file_citation", "file_id": given["file_id"], "filename": title}
        return [{**cited, "index": one.get("start_index") or 0} for one in regions]
    cited = {"type": "url_citation", "url": given.get("url") or "", "title": title}
    return [
        {**cited, "start_index": one.get("start_index") or 0, "end_index": one.get("end_index") or 0} for one in regions
    ]
