"""Puts contents together to output items, and tells what happens on the way.

One way for streams and for whole results, so that what was streamed is what is found later. Contents come in the
order in which the target produced them; each opens an item, continues one that is open, or closes it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import AgentResponseUpdate, Content, Message

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
from frontdesk.kit.contents import asked_for, call_arguments, call_outcome, file_name, is_refusal, joined_call, refusal
from frontdesk.kit.requests import REQUEST_INFO, is_request

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
        "computer_tool_result",
    }
)
_MEDIA = frozenset({"data", "uri", "hosted_file"})


def nothing(kind: str, fields: dict[str, Any]) -> None:
    """For a result that nobody watches come about."""


class _Call:
    """A call that has not ended; without an item if it is not shown."""

    __slots__ = ("content", "index", "item", "message", "pieces")

    def __init__(self, content: Content, item: FunctionCallItem | HostCallItem | None, index: int) -> None:
        self.content = content
        self.item = item
        self.index = index
        self.message = 0
        self.pieces: list[str] = []

    @property
    def place(self) -> dict[str, Any]:
        return {"item_id": "" if self.item is None else self.item.id, "output_index": self.index}


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
        self._run_id = run_id
        self._label = label
        self._client_tools = client_tools
        self._host_tools = host_tools
        self._encrypted = encrypted
        self._emit = emit
        self._watched = emit is not nothing
        self._delta = delta
        self._fresh = True
        self._boundary = False
        self._message = 0
        self._role = "assistant"
        self._voice: str | None = None
        self._author: str | None = None
        self._message_id: str | None = None
        # The message or thought that is open is always the last item; what it says is joined once, at its end.
        self._open: MessageItem | ReasoningItem | None = None
        self._part: OutputText | Refusal | None = None
        self._pieces: list[str] = []
        self._thought_id: str | None = None
        self._calls: dict[str, _Call] = {}
        self._last_call: _Call | None = None
        self._pictures: dict[str, tuple[int, ImageItem]] = {}

    def update(self, update: AgentResponseUpdate, voice: str | None = None) -> None:
        """Takes the next piece of a stream. Messages begin where the framework begins them in the joined result.

        `voice` tells apart the agents of a workflow, whose results are joined one by one.
        """
        message_id, role, author = update.message_id, update.role, update.author_name
        if (
            self._fresh
            or voice != self._voice
            or (message_id and self._message_id and message_id != self._message_id)
            or (author and self._author and author != self._author)
            or (role and role != self._role)
        ):
            self._begin(role or "assistant")
            self._fresh, self._voice = False, voice
        self._message_id = message_id or self._message_id
        self._author = author or self._author
        self._feed(update.contents)

    def message(self, message: Message) -> None:
        """Takes a whole message."""
        self._begin(message.role)
        self._fresh = True
        self._feed(message.contents)

    def _begin(self, role: str) -> None:
        # A message that says nothing does not end the one before it: the framework leaves it out.
        self._boundary = True
        self._message += 1
        self._role = role
        self._message_id = self._author = self._last_call = None

    def _feed(self, contents: Sequence[Content]) -> None:
        for content in contents:
            kind = content.type
            if kind == "usage":
                continue
            if self._boundary:
                self._boundary = False
                self._end_item()
            if self._role == "user" or self._role == "system":
                # A workflow may hand out its whole conversation; what was asked is no part of the answer.
                return
            if kind in _HOST_CALLS:
                if kind != "function_call":
                    self._last_call = None
                self._call(content)
                continue
            self._last_call = None
            if kind == "text":
                if content.text or content.annotations:
                    self._text(content)
            elif kind == "text_reasoning":
                self._thought(content)
            elif kind in _HOST_RESULTS:
                self._result(content)
            elif kind in _MEDIA:
                self._media(content)
            elif kind == "image_generation_tool_result":
                self._made(content)
            elif kind == "error":
                self._alone(refusal(content.message or content.error_code or "Error"))
            elif kind == "oauth_consent_request":
                self._address(content.consent_link or "", "Consent")

    def finish(self, *, whole: bool = True) -> None:
        """Ends whatever is open; a run that did not come to its end leaves it incomplete."""
        self._end_item("completed" if whole else "incomplete")
        if not self._calls and not self._pictures:
            return
        for call in self._calls.values():
            if isinstance(call.item, FunctionCallItem):
                self._end_client_call(call, call.item, "completed" if whole else "incomplete")
            elif call.item is not None:
                self._end_host_call(call, call.item, "incomplete")
        self._calls.clear()
        for index, picture in self._pictures.values():
            self._end_picture(index, picture)
        self._pictures.clear()

    def begin_nothing(self) -> None:
        """Shows that there was an answer of which nothing can be shown."""
        self._begin_message()
        self._end_item("incomplete")

    def approve(self, requests: Sequence[Content]) -> None:
        """Shows the questions, once they and their session are stored."""
        for request in requests:
            if request.type == "function_approval_request":
                name, arguments = asked_for(request)
                item = ApprovalItem(id=str(request.id), name=name, arguments=arguments, server_label=self._label)
                self._done(self._add(item), item)
            elif is_request(request) and REQUEST_INFO not in self._client_tools:
                self.ask(str(request.call_id), REQUEST_INFO, call_arguments(request))

    def ask(self, call_id: str, name: str, arguments: str) -> None:
        """Shows something that waits for the client as a call of its own."""
        item = FunctionCallItem(id=self._id("fc"), call_id=call_id, name=name, arguments="", status="in_progress")
        call = _Call(Content.from_function_call(call_id, name), item, self._add(item))
        call.pieces.append(arguments)
        self._emit("response.function_call_arguments.delta", {**call.place, "delta": arguments})
        self._end_client_call(call, item, "completed")

    def _text(self, content: Content) -> None:
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
            text = _piece(self._pieces, text, content)
        if isinstance(part, Refusal):
            if text and self._watched:
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
        for drawn in _annotations(annotation):
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
        """A part of its own."""
        if isinstance(self._open, MessageItem):
            self._end_part(self._open)
        self._text(content)
        if isinstance(self._open, MessageItem):
            self._end_part(self._open)

    def _thought(self, content: Content) -> None:
        item = self._open
        if not isinstance(item, ReasoningItem) or (content.id and self._thought_id and content.id != self._thought_id):
            self._end_item()
            item = ReasoningItem(id=self._id("rs"), summary=[])
            self._add(item)
            self._open, self._thought_id = item, None
        self._thought_id = self._thought_id or content.id
        if content.protected_data and self._encrypted:
            item.encrypted_content = content.protected_data
        if not content.text:
            return
        place = {"item_id": item.id, "output_index": len(self.items) - 1, "summary_index": 0}
        if not item.summary:
            item.summary.append(SummaryText(text=""))
            self._emit("response.reasoning_summary_part.added", {**place, "part": item.summary[0]})
        text = _piece(self._pieces, content.text, content)
        if text:
            self._emit("response.reasoning_summary_text.delta", {**place, "delta": text})

    def _end_item(self, status: str = "completed") -> None:
        item, self._open = self._open, None
        if isinstance(item, MessageItem):
            self._end_part(item)
            item.status = status
            self._done(len(self.items) - 1, item)
        elif item is not None:
            if item.summary:
                said, self._pieces = "".join(self._pieces), []
                item.summary[0].text = said
                place = {"item_id": item.id, "output_index": len(self.items) - 1, "summary_index": 0}
                self._emit("response.reasoning_summary_text.done", {**place, "text": said})
                self._emit("response.reasoning_summary_part.done", {**place, "part": item.summary[0]})
            self._done(len(self.items) - 1, item)

    def _call(self, content: Content) -> None:
        if is_request(content) and REQUEST_INFO not in self._client_tools:
            # Of a workflow: it is shown at the end, when it is stored.
            return
        call = self._calls.get(content.call_id) if content.call_id else self._last_call
        if not (content.call_id or content.name) and content.type == "function_call" and (call is None or self._fresh):
            # A piece of no call; in a whole message every piece has found its own.
            return
        if call is None:
            call = self._begin_call(content)
        elif isinstance(call.item, HostCallItem):
            call.content = joined_call(call.content, content)
        if content.type == "function_call" and call.message != self._message:
            # A piece without an id belongs to the call that is the last of its message.
            call.message = self._message
            self._last_call = call
        if isinstance(call.item, FunctionCallItem):
            # The framework names a call once more when it pauses for it.
            again = bool(content.user_input_request and call.pieces)
            piece = "" if again else _piece(call.pieces, call_arguments(content), content)
            if piece:
                self._emit("response.function_call_arguments.delta", {**call.place, "delta": piece})

    def _begin_call(self, content: Content) -> _Call:
        item = self._call_item(content)
        if item is not None:
            self._end_item()
            self._add(item)
        call = _Call(content, item, len(self.items) - 1)
        if isinstance(item, HostCallItem):
            self._emit("response.mcp_call.in_progress", call.place)
        self._calls[content.call_id or f"{content.type} {len(self._calls)}"] = call
        return call

    def _call_item(self, content: Content) -> FunctionCallItem | HostCallItem | None:
        if content.type == "function_call" and content.name in self._client_tools:
            call_id = content.call_id or self._id("call")
            return FunctionCallItem(
                id=self._id("fc"), call_id=call_id, name=content.name or "", arguments="", status="in_progress"
            )
        if self._host_tools == "hide":
            return None
        return HostCallItem(
            id=self._id("mcp"),
            name=content.name or content.tool_name or content.type.removesuffix("_tool_call"),
            arguments="",
            server_label=content.server_name or self._label,
            status="in_progress",
        )

    def _end_client_call(self, call: _Call, item: FunctionCallItem, status: str) -> None:
        if not any(call.pieces):
            call.pieces.append("{}")
            self._emit("response.function_call_arguments.delta", {**call.place, "delta": "{}"})
        item.arguments = "".join(call.pieces)
        item.status = status
        told = {**call.place, "name": item.name, "arguments": item.arguments}
        self._emit("response.function_call_arguments.done", told)
        self._done(call.index, item)

    def _result(self, content: Content) -> None:
        call = self._calls.get(content.call_id or "")
        if call is None or isinstance(call.item, FunctionCallItem):
            return
        del self._calls[content.call_id or ""]
        if call.item is not None:
            if self._host_tools == "full":
                call.item.output = call_outcome(content)
            self._end_host_call(call, call.item, "failed" if content.exception else "completed")

    def _end_host_call(self, call: _Call, item: HostCallItem, status: str) -> None:
        item.arguments = (call_arguments(call.content) if self._host_tools == "full" else "") or "{}"
        item.status = status
        self._emit("response.mcp_call_arguments.delta", {**call.place, "delta": item.arguments})
        self._emit("response.mcp_call_arguments.done", {**call.place, "arguments": item.arguments})
        if status != "incomplete":
            self._emit(f"response.mcp_call.{status}", call.place)
        self._done(call.index, item)

    def _made(self, content: Content) -> None:
        """Pictures that a tool has made; one that comes again takes the place of its draft."""
        outputs: Any = content.outputs
        many = cast("list[Any]", outputs) if isinstance(outputs, list) else [outputs]
        for place, output in enumerate(many):
            if isinstance(output, Content):
                self._media(output, f"{content.image_id}/{place}" if content.image_id else None)

    def _media(self, content: Content, key: str | None = None) -> None:
        uri = content.uri or ""
        if uri.startswith("data:image/"):
            self._picture(uri.partition("base64,")[2], key)
        elif content.file_id and not uri:
            self._cited(content.file_id, {"file_id": content.file_id, "title": file_name(content)})
        elif uri.startswith("data:"):
            self._alone(Content.from_text(uri))
        else:
            self._address(uri, file_name(content))

    def _address(self, address: str, title: str) -> None:
        if address:
            region = {"start_index": 0, "end_index": len(address)}
            self._cited(address, {"url": address, "title": title, "annotated_regions": [region]})

    def _cited(self, text: str, annotation: dict[str, Any]) -> None:
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
        self._done(index, item)

    def _add(self, item: Any) -> int:
        self.items.append(item)
        index = len(self.items) - 1
        if self._watched:
            self._emit("response.output_item.added", {"output_index": index, "item": item})
        return index

    def _done(self, index: int, item: Any) -> None:
        if self._watched:
            self._emit("response.output_item.done", {"output_index": index, "item": item})

    def _place(self, item: MessageItem) -> dict[str, Any]:
        return {"item_id": item.id, "output_index": len(self.items) - 1, "content_index": len(item.content) - 1}

    def _id(self, prefix: str) -> str:
        return item_id(prefix, self._run_id, len(self.items))


def item_id(prefix: str, run_id: str, place: int) -> str:
    """The id of an item, which holds that of its response: so it is found again without an index of items."""
    return f"{prefix}_{run_id.partition('_')[2] or run_id}{place:04x}"


def _piece(pieces: list[str], text: str, content: Content) -> str:
    """What a content adds to the pieces before it; a snapshot repeats them."""
    if content.merge_mode == "replace":
        said = "".join(pieces)
        if text.startswith(said):
            text = text[len(said) :]
        else:
            pieces.clear()
    pieces.append(text)
    return text


def _annotations(given: Mapping[str, Any]) -> list[dict[str, Any]]:
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
