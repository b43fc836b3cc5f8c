"""Assembles contents into output items, and emits the events of their progress.

Contents arrive in the order in which the target produced them. Each of them opens an item, continues an open one, or
closes it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import Content

from frontdesk.channels.responses.config import HostTools
from frontdesk.channels.responses.items import ClientCallItem, Thought, annotations, call_fields, item_id, question
from frontdesk.channels.responses.schema import (
    CustomCallItem,
    FunctionCallItem,
    HostCallItem,
    ImageItem,
    MessageItem,
    OutputText,
    ReasoningItem,
    Refusal,
)
from frontdesk.framework.contents import (
    call_arguments,
    call_outcome,
    file_name,
    is_refusal,
    refusal,
)
from frontdesk.framework.workflow_requests import REQUEST_INFO, is_request
from frontdesk.openai.tools import ToolRef, parse_input
from frontdesk.streaming.assembler import Call, StreamAssembler, text_delta

Emit = Callable[[str, dict[str, Any]], None]


def nothing(kind: str, fields: dict[str, Any]) -> None:
    """Discard an event, for results without a stream."""


class Assembler(StreamAssembler):
    """Builds the output of one response."""

    def __init__(
        self,
        run_id: str,
        *,
        label: str,
        client_tools: Mapping[str, ToolRef] | None = None,
        host_tools: HostTools = "hide",
        encrypted: bool = False,
        approved: Mapping[str, Content] | None = None,
        emit: Emit = nothing,
        delta: Callable[[str, int, int, str], None] | None = None,
    ) -> None:
        """`approved` maps call ids to earlier calls that may run in this response: an approval request or a bare
        call."""
        super().__init__(client_tools or {})
        self.items: list[Any] = []
        self._run_id = run_id
        self._label = label
        self._client_tools = client_tools or {}
        self._host_tools = host_tools
        self._encrypted = encrypted
        self._approved = approved or {}
        self._emit = emit
        self._watched = emit is not nothing
        self._delta = delta
        # The message or thought that is open is always the last item; what it says is joined once, at its end.
        self._open: MessageItem | Thought | None = None
        self._part: OutputText | Refusal | None = None
        self._pieces: list[str] = []
        self._pictures: dict[str, tuple[int, ImageItem]] = {}

    def finish(self, *, whole: bool = True, waiting: Sequence[Content] = ()) -> None:
        """Close open items. They are marked incomplete if the run did not complete.

        `waiting` are the questions about calls that require approval. Those calls are not shown as made.
        """
        for request in waiting:
            if request.function_call is not None:
                self._wait(request.function_call)
        self._end_item("completed" if whole else "incomplete")
        if not self._calls and not self._pictures:
            return
        for call in self._calls.values():
            if isinstance(call.item, ClientCallItem):
                self._end_client_call(call, call.item, "completed" if whole else "incomplete")
            elif self._host_tools != "hide" and (call.item is not None or not waiting):
                # What was called together with one that waits goes on with it.
                self._end_host_call(call, "incomplete")
        self._calls.clear()
        for index, picture in self._pictures.values():
            self._end_picture(index, picture)
        self._pictures.clear()

    def begin_nothing(self) -> None:
        self._begin_message()
        self._end_item("incomplete")

    def approve(self, requests: Sequence[Content]) -> None:
        """Emit the questions, after they and their session are stored."""
        for request in requests:
            if request.type == "function_approval_request":
                item = question(request, self._label)
                self._finish_item(self._add(item), item)
            elif is_request(request) and REQUEST_INFO not in self._client_tools:
                self.ask(str(request.call_id), REQUEST_INFO, call_arguments(request))

    def ask(self, call_id: str, name: str, arguments: str) -> None:
        """Emit a request that waits for the client as a function call."""
        item = FunctionCallItem(id=self._id("fc"), call_id=call_id, name=name, arguments="", status="in_progress")
        call = Call(Content.from_function_call(call_id, name))
        call.item, call.index = item, self._add(item)
        call.pieces.append(arguments)
        self._emit("response.function_call_arguments.delta", {**call_fields(call), "delta": arguments})
        self._end_client_call(call, item, "completed")

    def on_message(self) -> None:
        self._end_item()

    def on_text(self, content: Content) -> None:
        item = self._open if isinstance(self._open, MessageItem) else self._begin_message()
        extra = content.additional_properties
        refused = False
        if extra:
            refused = is_refusal(extra)
            if item.phase is msgspec.UNSET and extra.get("phase") in ("commentary", "final_answer"):
                item.phase = extra["phase"]
        part = self._part
        if part is None or isinstance(part, Refusal) is not refused:
            part = self._begin_part(item, refused)
        text = content.text or ""
        if content.merge_mode is None:
            self._pieces.append(text)
        else:
            text = text_delta(self._pieces, text, content)
        if isinstance(part, Refusal):
            if text and self._watched:
                self._emit("response.refusal.delta", {**self._place(item), "delta": text})
            return
        delta = self._delta
        if text and delta is not None:
            delta(item.id, len(self.items) - 1, len(item.content) - 1, text)
        for annotation in content.annotations or ():
            self._annotate(item, part, annotation)

    def _annotate(self, item: MessageItem, part: OutputText, annotation: Mapping[str, Any]) -> None:
        for drawn in annotations(annotation):
            part.annotations.append(drawn)
            if self._watched:
                place = {**self._place(item), "annotation_index": len(part.annotations) - 1}
                self._emit("response.output_text.annotation.added", {**place, "annotation": drawn})

    def _begin_message(self) -> MessageItem:
        self._end_item()
        item = MessageItem(id=self._id("msg"), status="in_progress", content=[])
        self._add(item)
        self._open = item
        return item

    def _begin_part(self, item: MessageItem, refused: bool) -> OutputText | Refusal:
        self._end_part(item)
        part = Refusal(refusal="") if refused else OutputText(text="", annotations=[], logprobs=[])
        item.content.append(part)
        self._part = part
        if self._watched:
            self._emit("response.content_part.added", {**self._place(item), "part": part})
        return part

    def _end_part(self, item: MessageItem) -> None:
        part, self._part = self._part, None
        if part is None:
            return
        said, self._pieces = "".join(self._pieces), []
        place = self._place(item)
        if isinstance(part, OutputText):
            part.text = said
            if self._watched:
                self._emit("response.output_text.done", {**place, "text": said, "logprobs": []})
        else:
            part.refusal = said
            self._emit("response.refusal.done", {**place, "refusal": said})
        self._emit("response.content_part.done", {**place, "part": part})

    def _alone(self, content: Content) -> None:
        if isinstance(self._open, MessageItem):
            self._end_part(self._open)
        self.on_text(content)
        if isinstance(self._open, MessageItem):
            self._end_part(self._open)

    def on_reasoning(self, content: Content) -> None:
        thought = self._open
        if not isinstance(thought, Thought) or not thought.continues(content):
            self._end_item()
            item = ReasoningItem(id=self._id("rs"), summary=[])
            thought = self._open = Thought(item, self._add(item), self._emit)
        thought.add(content, encrypted=self._encrypted)

    def _end_item(self, status: str = "completed") -> None:
        item, self._open = self._open, None
        if isinstance(item, MessageItem):
            self._end_part(item)
            item.status = status
            self._finish_item(len(self.items) - 1, item)
        elif item is not None:
            item.end()
            self._finish_item(len(self.items) - 1, item.item)

    def on_call(self, call: Call) -> None:
        content = call.content
        if call.is_client:
            self._end_item()
            call_id = content.call_id or self._id("call")
            call.item = self._client_item(call_id, self._client_tools[str(content.name)])
            call.index = self._add(call.item)
        elif content.type != "function_call" and self._host_tools != "hide":
            # A call of the model's service. Whether a call of the host's own tools runs or waits is known later.
            self._begin_host_call(call)

    def on_arguments(self, call: Call, delta: str) -> None:
        if isinstance(call.item, FunctionCallItem):
            self._emit("response.function_call_arguments.delta", {**call_fields(call), "delta": delta})

    def _client_item(self, call_id: str, tool: ToolRef) -> FunctionCallItem | CustomCallItem:
        given: dict[str, Any] = {"call_id": call_id, "name": tool.name, "status": "in_progress"}
        if tool.namespace is not None:
            given["namespace"] = tool.namespace
        if tool.kind == "custom":
            return CustomCallItem(id=self._id("ctc"), input="", **given)
        return FunctionCallItem(id=self._id("fc"), arguments="", **given)

    def _begin_host_call(self, call: Call, approval_id: str | None = None) -> HostCallItem:
        self._end_item()
        content = call.content
        item = call.item = HostCallItem(
            id=self._id("mcp"),
            name=content.name or content.tool_name or content.type.removesuffix("_tool_call"),
            arguments="",
            server_label=content.server_name or self._label,
            status="in_progress",
            approval_request_id=approval_id,
        )
        call.index = self._add(item)
        self._emit("response.mcp_call.in_progress", call_fields(call))
        return item

    def on_question(self, content: Content) -> None:
        if content.function_call is not None:
            self._wait(content.function_call)

    def _wait(self, asked: Content) -> None:
        """Emit a call that requires approval as a question, or as made if it was."""
        call = self._calls.get(asked.call_id or "")
        if call is not None and call.item is None:
            del self._calls[asked.call_id or ""]

    def _end_client_call(self, call: Call, item: FunctionCallItem | CustomCallItem, status: str) -> None:
        if isinstance(item, CustomCallItem):
            return self._end_custom_call(call, item, status)
        if not any(call.pieces):
            call.pieces.append("{}")
            self._emit("response.function_call_arguments.delta", {**call_fields(call), "delta": "{}"})
        item.arguments = "".join(call.pieces)
        item.status = status
        told = {**call_fields(call), "name": item.name, "arguments": item.arguments}
        self._emit("response.function_call_arguments.done", told)
        self._finish_item(call.index, item)

    def _end_custom_call(self, call: Call, item: CustomCallItem, status: str) -> None:
        # The text lies inside arguments, and is read out of them when they are whole.
        item.input, item.status = parse_input("".join(call.pieces)), status
        self._emit("response.custom_tool_call_input.delta", {**call_fields(call), "delta": item.input})
        self._emit("response.custom_tool_call_input.done", {**call_fields(call), "input": item.input})
        self._finish_item(call.index, item)

    def on_result(self, call: Call | None, content: Content) -> None:
        approval_id = None
        if call is None:
            earlier = self._approved.get(content.call_id or "")
            if earlier is None:
                return
            call = Call(earlier.function_call or earlier)
            approval_id = None if earlier.function_call is None else str(earlier.id)
        if self._host_tools != "hide":
            status = "failed" if content.exception else "completed"
            self._end_host_call(call, status, content, approval_id)

    def _end_host_call(
        self, call: Call, status: str, result: Content | None = None, approval_id: str | None = None
    ) -> None:
        item = call.item if isinstance(call.item, HostCallItem) else self._begin_host_call(call, approval_id)
        if result is not None and self._host_tools == "full":
            item.output = call_outcome(result)
        item.arguments = (call_arguments(call.content) if self._host_tools == "full" else "") or "{}"
        item.status = status
        self._emit("response.mcp_call_arguments.delta", {**call_fields(call), "delta": item.arguments})
        self._emit("response.mcp_call_arguments.done", {**call_fields(call), "arguments": item.arguments})
        if status != "incomplete":
            self._emit(f"response.mcp_call.{status}", call_fields(call))
        self._finish_item(call.index, item)

    def on_images(self, content: Content) -> None:
        outputs: Any = content.outputs
        many = cast("list[Any]", outputs) if isinstance(outputs, list) else [outputs]
        for place, output in enumerate(many):
            if isinstance(output, Content):
                self._show_media(output, f"{content.image_id}/{place}" if content.image_id else None)

    def on_media(self, content: Content) -> None:
        self._show_media(content)

    def on_error(self, message: str) -> None:
        self._alone(refusal(message))

    def on_consent(self, link: str) -> None:
        self._address(link, "Consent")

    def _show_media(self, content: Content, key: str | None = None) -> None:
        uri = content.uri or ""
        if uri.startswith("data:image/"):
            self._picture(uri.partition("base64,")[2], key)
        elif content.file_id and not uri:
            self._add_citation(content.file_id, {"file_id": content.file_id, "title": file_name(content)})
        elif uri.startswith("data:"):
            self._alone(Content.from_text(uri))
        else:
            self._address(uri, file_name(content))

    def _address(self, address: str, title: str) -> None:
        if address:
            region = {"start_index": 0, "end_index": len(address)}
            self._add_citation(address, {"url": address, "title": title, "annotated_regions": [region]})

    def _add_citation(self, text: str, annotation: dict[str, Any]) -> None:
        self._alone(Content.from_text(text, annotations=[cast(Any, {"type": "citation", **annotation})]))

    def _picture(self, data: str, key: str | None) -> None:
        known = self._pictures.get(key) if key else None
        if known is not None:
            known[1].result = data
            return
        self._end_item()
        item = ImageItem(id=self._id("ig"), status="in_progress", result=None)
        index = self._add(item)
        self._emit("response.image_generation_call.in_progress", {"item_id": item.id, "output_index": index})
        item.result = data
        if key:
            self._pictures[key] = (index, item)
        else:
            self._end_picture(index, item)

    def _end_picture(self, index: int, item: ImageItem) -> None:
        item.status = "completed"
        self._emit("response.image_generation_call.completed", {"item_id": item.id, "output_index": index})
        self._finish_item(index, item)

    def _add(self, item: Any) -> int:
        self.items.append(item)
        index = len(self.items) - 1
        if self._watched:
            self._emit("response.output_item.added", {"output_index": index, "item": item})
        return index

    def _finish_item(self, index: int, item: Any) -> None:
        if self._watched:
            self._emit("response.output_item.done", {"output_index": index, "item": item})

    def _place(self, item: MessageItem) -> dict[str, Any]:
        return {"item_id": item.id, "output_index": len(self.items) - 1, "content_index": len(item.content) - 1}

    def _id(self, prefix: str) -> str:
        return item_id(prefix, self._run_id, len(self.items))
