"""Puts contents together to output items, and tells what happens on the way.

One way for streams and for whole results, so that what was streamed is what is found later. Contents come in the
order in which the target produced them; each opens an item, continues the open one, or closes it.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
from agent_framework import Content

from frontdesk.channels.responses.config import HostTools
from frontdesk.channels.responses.wire import (
    ApprovalItem,
    FunctionCallItem,
    HostCallItem,
    ImageItem,
    MessageItem,
    OutputText,
    ReasoningItem,
    Refusal,
    SummaryText,
    TextDelta,
)

Emit = Callable[[str, dict[str, Any]], None]

_HOST_CALLS = frozenset(
    {
        "function_call",
        "mcp_server_tool_call",
        "code_interpreter_tool_call",
        "search_tool_call",
        "shell_tool_call",
        "computer_tool_call",
    }
)
_HOST_RESULTS = frozenset(
    {
        "function_result",
        "mcp_server_tool_result",
        "code_interpreter_tool_result",
        "search_tool_result",
        "shell_tool_result",
        "shell_command_output",
        "computer_tool_result",
    }
)


def nothing(kind: str, fields: dict[str, Any]) -> None:
    """For a result that nobody watches come about."""


class Assembler:
    """Builds the output of one response."""

    def __init__(
        self,
        run_id: str,
        *,
        label: str,
        client_tools: Collection[str] = (),
        host_tools: HostTools = "hide",
        encrypted: bool = False,
        emit: Emit = nothing,
        delta: Callable[[TextDelta], None] | None = None,
    ) -> None:
        self.items: list[Any] = []
        self.event_count = 0
        self._suffix = run_id.partition("_")[2] or run_id
        self._label = label
        self._client_tools = client_tools
        self._host_tools = host_tools
        self._encrypted = encrypted
        self._emit = emit
        self._watched = emit is not nothing
        self._pieces: list[str] = []
        self._length = 0
        self._delta = delta
        self._open: Any = None
        self._message_id: str | None = None
        self._calls: dict[str, HostCallItem | FunctionCallItem] = {}

    def feed(self, contents: Sequence[Content], message_id: str | None, role: str | None = None) -> None:
        """Takes the next contents."""
        for content in contents:
            kind = content.type
            if kind == "text":
                if content.text or content.annotations:
                    self._text(content, message_id)
            elif kind == "text_reasoning":
                self._reasoning(content)
            elif kind in _HOST_CALLS:
                self._call(content)
            elif kind in _HOST_RESULTS:
                self._result(content)
            elif kind in ("data", "uri", "hosted_file", "image_generation_tool_result"):
                self._media(content, message_id)
            elif kind == "error":
                self._say(Refusal(refusal=content.message or "Error"), message_id)
            elif kind == "oauth_consent_request" and content.consent_link:
                self._text(Content.from_text(content.consent_link), message_id)

    def approve(self, requests: Sequence[Content]) -> None:
        """Shows the questions, once they and their session are stored."""
        self.close()
        for request in requests:
            call = request.function_call
            if request.type == "function_approval_request" and call is not None:
                item = ApprovalItem(
                    id=str(request.id), name=str(call.name), arguments=_arguments(call), server_label=self._label
                )
                self._add(item)
                self._done(item)

    def close(self) -> None:
        """Ends whatever is open."""
        item, self._open = self._open, None
        if isinstance(item, MessageItem):
            self._close_part(item)
            item.status = "completed"
            self._done(item)
        elif isinstance(item, ReasoningItem):
            self._close_thought(item)
            self._done(item)
        elif isinstance(item, FunctionCallItem):
            item.status = "completed"
            place = {"item_id": item.id, "output_index": len(self.items) - 1}
            self._emit(
                "response.function_call_arguments.done", {**place, "name": item.name, "arguments": item.arguments}
            )
            self._done(item)

    def _text(self, content: Content, message_id: str | None) -> None:
        refused = _is_refusal(content)
        item = self._message(content, message_id)
        part = item.content[-1] if item.content else None
        if part is None or isinstance(part, Refusal) is not refused:
            self._close_part(item)
            part = Refusal(refusal="") if refused else OutputText(text="", annotations=[], logprobs=[])
            item.content.append(part)
            if self._watched:
                self._emit("response.content_part.added", {**self._place(item), "part": part})
        text = content.text or ""
        self._pieces.append(text)
        self._length += len(text)
        if isinstance(part, Refusal):
            self._emit("response.refusal.delta", {**self._place(item), "delta": text})
            return
        if text and self._delta is not None:
            self._delta(
                TextDelta(
                    sequence_number=0,
                    item_id=item.id,
                    output_index=len(self.items) - 1,
                    content_index=len(item.content) - 1,
                    delta=text,
                )
            )
        for annotation in content.annotations or ():
            self._annotate(item, part, annotation)

    def _annotate(self, item: MessageItem, part: OutputText, annotation: Mapping[str, Any]) -> None:
        drawn = _annotation(annotation, self._length)
        part.annotations.append(drawn)
        place = {**self._place(item), "annotation_index": len(part.annotations) - 1}
        self._emit("response.output_text.annotation.added", {**place, "annotation": drawn})

    def _message(self, content: Content, message_id: str | None) -> MessageItem:
        item = self._open
        if isinstance(item, MessageItem) and (message_id is None or message_id == self._message_id):
            return item
        self.close()
        self._message_id = message_id
        opened = MessageItem(id=self._id("msg"), status="in_progress", content=[])
        phase = content.additional_properties.get("phase")
        if phase in ("commentary", "final_answer"):
            opened.phase = phase
        self._add(opened)
        self._open = opened
        return opened

    def _say(self, part: Any, message_id: str | None) -> None:
        item = self._message(Content.from_text(""), message_id)
        self._close_part(item)
        item.content.append(part)
        self._emit("response.content_part.added", {**self._place(item), "part": part})

    def _close_part(self, item: MessageItem) -> None:
        if not item.content:
            return
        part = item.content[-1]
        # Joined once at the end: growing a text piece by piece would copy it each time.
        said, self._pieces, self._length = "".join(self._pieces), [], 0
        if isinstance(part, OutputText):
            part.text = part.text or said
        else:
            part.refusal = part.refusal or said
        if not self._watched:
            return
        place = self._place(item)
        if isinstance(part, OutputText):
            self._emit("response.output_text.done", {**place, "text": part.text, "logprobs": []})
        else:
            self._emit("response.refusal.done", {**place, "refusal": part.refusal})
        self._emit("response.content_part.done", {**place, "part": part})

    def _reasoning(self, content: Content) -> None:
        item = self._open
        if not isinstance(item, ReasoningItem):
            self.close()
            item = ReasoningItem(id=self._id("rs"), summary=[])
            self._add(item)
            self._open = item
        if content.protected_data and self._encrypted:
            item.encrypted_content = content.protected_data
        text = content.text or ""
        if not text:
            return
        place = {"item_id": item.id, "output_index": len(self.items) - 1, "summary_index": 0}
        if not item.summary:
            item.summary.append(SummaryText(text=""))
            self._emit("response.reasoning_summary_part.added", {**place, "part": SummaryText(text="")})
        item.summary[0].text += text
        self._emit("response.reasoning_summary_text.delta", {**place, "delta": text})

    def _close_thought(self, item: ReasoningItem) -> None:
        if item.summary:
            place = {"item_id": item.id, "output_index": len(self.items) - 1, "summary_index": 0}
            self._emit("response.reasoning_summary_text.done", {**place, "text": item.summary[0].text})
            self._emit("response.reasoning_summary_part.done", {**place, "part": item.summary[0]})

    def _call(self, content: Content) -> None:
        if content.type == "function_call" and self._is_clients(content):
            self._client_call(content)
        elif self._host_tools != "hide":
            self._host_call(content)

    def _is_clients(self, content: Content) -> bool:
        if content.name:
            return content.name in self._client_tools
        return isinstance(self._open, FunctionCallItem)

    def _client_call(self, content: Content) -> None:
        known = self._calls.get(content.call_id or "")
        if known is not None and known is not self._open:
            # The framework names a call once more when it pauses for it.
            return
        item = self._open
        piece = _arguments(content)
        if not isinstance(item, FunctionCallItem) or (content.call_id and item.call_id != content.call_id):
            self.close()
            call_id = content.call_id or self._id("call")
            item = FunctionCallItem(
                id=self._id("fc"), call_id=call_id, name=str(content.name), arguments="", status="in_progress"
            )
            self._calls[call_id] = item
            self._add(item)
            self._open = item
        elif content.user_input_request and item.arguments:
            return
        if piece:
            item.arguments += piece
            place = {"item_id": item.id, "output_index": len(self.items) - 1}
            self._emit("response.function_call_arguments.delta", {**place, "delta": piece})

    def _host_call(self, content: Content) -> None:
        known = self._calls.get(content.call_id or "")
        if isinstance(known, HostCallItem):
            if self._host_tools == "full" and not content.user_input_request:
                known.arguments += _arguments(content)
            return
        self.close()
        full = self._host_tools == "full"
        name = content.name or content.tool_name or content.type.removesuffix("_tool_call")
        item = HostCallItem(
            id=self._id("mcp"),
            name=name,
            arguments=_arguments(content) if full else "{}",
            server_label=content.server_name or self._label,
            status="in_progress",
        )
        self._calls[content.call_id or item.id] = item
        self._add(item)

    def _result(self, content: Content) -> None:
        item = self._calls.get(content.call_id or "")
        if not isinstance(item, HostCallItem):
            return
        item.status = "failed" if content.exception else "completed"
        if self._host_tools == "full":
            item.output = _output(content)
        self._emit("response.output_item.done", {"output_index": self.items.index(item), "item": item})

    def _media(self, content: Content, message_id: str | None) -> None:
        uri = content.uri or ""
        if uri.startswith("data:image/"):
            self.close()
            item = ImageItem(id=self._id("ig"), status="completed", result=uri.partition("base64,")[2])
            self._add(item)
            self._done(item)
            return
        address = uri or content.file_id or ""
        if address:
            self._text(Content.from_text(address), message_id)

    def _add(self, item: Any) -> None:
        self.items.append(item)
        if self._watched:
            self._emit("response.output_item.added", {"output_index": len(self.items) - 1, "item": _begun(item)})

    def _done(self, item: Any) -> None:
        if self._watched:
            self._emit("response.output_item.done", {"output_index": len(self.items) - 1, "item": item})

    def _place(self, item: MessageItem) -> dict[str, Any]:
        return {"item_id": item.id, "output_index": len(self.items) - 1, "content_index": len(item.content) - 1}

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self._suffix}{len(self.items):04x}"


def _begun(item: Any) -> Any:
    if isinstance(item, (MessageItem, ReasoningItem)):
        return msgspec.structs.replace(item, **{"content" if isinstance(item, MessageItem) else "summary": []})
    return item


def _is_refusal(content: Content) -> bool:
    core: Any = content.additional_properties.get("core")
    return bool(core) and core.get("model_output_kind") == "refusal"


def _arguments(content: Content) -> str:
    given = content.arguments
    if given is None:
        return ""
    return given if isinstance(given, str) else json.dumps(given, default=str)


def _output(content: Content) -> str:
    value = content.result if content.result is not None else content.output or content.outputs or content.stdout
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _annotation(given: Mapping[str, Any], end: int) -> dict[str, Any]:
    regions: Sequence[Mapping[str, Any]] = given.get("annotated_regions") or ()
    first: Mapping[str, Any] = regions[0] if regions else {}
    if given.get("file_id") and not given.get("url"):
        return {
            "type": "file_citation",
            "file_id": given["file_id"],
            "filename": given.get("title") or "",
            "index": end,
        }
    return {
        "type": "url_citation",
        "url": given.get("url") or "",
        "title": given.get("title") or "",
        "start_index": first.get("start_index", end),
        "end_index": first.get("end_index", end),
    }
