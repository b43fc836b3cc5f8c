"""Renders results and updates as completions and chunks, and errors as error bodies. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from agent_framework import Content

from frontdesk.channels.chat_completions.schema import (
    CalledCustom,
    CalledFunction,
    Choice,
    Chunk,
    ChunkChoice,
    Completion,
    Delta,
    ErrorOut,
    MessageOut,
    ToolCall,
    Usage,
)
from frontdesk.errors import RequestError
from frontdesk.framework.contents import file_name, is_refusal
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import answers, encode, finish_reason, sum_usage
from frontdesk.openai.tools import parse_input
from frontdesk.streaming.assembler import Call, StreamAssembler, text_delta

Emit = Callable[[Delta], None]
_BETWEEN = "\n\n"
"""Stands between two messages of the target's, which are one message here."""
_MEDIA = ("data", "uri")


class _Drawn(NamedTuple):
    """A call of a client tool, as displayed."""

    call_id: str
    name: str
    kind: str

    def tool_call(self, arguments: str, index: int | None = None) -> ToolCall:
        if self.kind == "custom":
            custom = CalledCustom(name=self.name, input=parse_input(arguments))
            return ToolCall(index=index, id=self.call_id, type="custom", custom=custom)
        function = CalledFunction(name=self.name, arguments=arguments)
        return ToolCall(index=index, id=self.call_id, type="function", function=function)


def _build_tool_call(call: Call, index: int | None = None) -> ToolCall:
    return call.item.tool_call("".join(call.pieces) or "{}", index)


class Assembler(StreamAssembler):
    """Builds the message of one completion."""

    def __init__(self, client_tools: Mapping[str, str], emit: Emit | None = None) -> None:
        """`client_tools` maps the names of client tools to their types."""
        super().__init__(client_tools)
        self._client_tools = client_tools
        self._emit = emit
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._client_calls: list[Call] = []
        # The pieces of the present message, for those that repeat what came before.
        self._pieces: list[str] = []
        self._declined: list[str] = []
        self._is_new = False

    def on_message(self) -> None:
        self._is_new = True
        self._pieces, self._declined = [], []

    def on_text(self, content: Content) -> None:
        text = content.text or ""
        if content.additional_properties and is_refusal(content.additional_properties):
            self.on_error(text_delta(self._declined, text, content))
        elif content.merge_mode is not None:
            self._add(text_delta(self._pieces, text, content))
        else:
            self._pieces.append(text)
            self._add(text)

    def on_media(self, content: Content) -> None:
        if content.type not in _MEDIA or not content.uri:
            return
        is_image = (content.media_type or "").startswith("image/")
        self._add(f"{'!' if is_image else ''}[{file_name(content) or content.media_type or 'file'}]({content.uri})")

    def on_consent(self, link: str) -> None:
        if link:
            self._add(f"[Consent]({link})")

    def on_error(self, message: str) -> None:
        if message:
            self._refusal.append(message)
            self._send(Delta(refusal=message))

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._is_new and self._text:
            text = _BETWEEN + text
        self._is_new = False
        self._text.append(text)
        self._send(Delta(content=text))

    def on_call(self, call: Call) -> None:
        """Open a call. Calls of the host's own tools are not displayed."""
        if not call.is_client:
            return
        name, call_id = str(call.content.name), call.content.call_id or f"call_{call.number}"
        call.index = len(self._client_calls)
        call.item = _Drawn(call_id, name, self._client_tools[name])
        self._client_calls.append(call)
        if call.item.kind == "function":
            opened = CalledFunction(name=name, arguments="")
            self._send_call(ToolCall(index=call.index, id=call_id, type="function", function=opened))

    def on_arguments(self, call: Call, delta: str) -> None:
        if call.is_client and call.item.kind == "function":
            self._send_call(ToolCall(index=call.index, function=CalledFunction(arguments=delta)))

    def finish(self) -> None:
        """Emit the parts that are not streamed in pieces."""
        for call in self._client_calls:
            if call.item.kind == "custom":
                # The text is read out of the arguments, which requires all of them.
                self._send_call(_build_tool_call(call, call.index))
            elif not any(call.pieces):
                self._send_call(ToolCall(index=call.index, function=CalledFunction(arguments="{}")))

    @property
    def has_calls(self) -> bool:
        return bool(self._client_calls)

    def build_message(self) -> MessageOut:
        calls: Any = [_build_tool_call(call) for call in self._client_calls] if self._client_calls else msgspec.UNSET
        text = "".join(self._text) if self._text or not (self._client_calls or self._refusal) else None
        return MessageOut(content=text, refusal="".join(self._refusal) or None, tool_calls=calls)

    def _send_call(self, call: ToolCall) -> None:
        self._send(Delta(tool_calls=[call]))

    def _send(self, delta: Delta) -> None:
        if self._emit is not None:
            self._emit(delta)


_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_REASONS = {"length": "length", "content_filter": "content_filter"}
DONE = b"data: [DONE]\n\n"


class Renderer:
    def __init__(self, model: str) -> None:
        self._model = model

    def completion(self, run: RunRecord, result: Any) -> bytes:
        assembler, said = self.assembler(run), answers(result)
        for answer in said:
            for message in answer.messages:
                assembler.message(message)
        choice = Choice(message=assembler.build_message(), finish_reason=map_finish_reason(assembler, result))
        usage = sum_usage(said)
        return encode(
            Completion(
                id=run.run_id,
                created=int(run.created_at),
                model=self._model,
                choices=[choice],
                usage=msgspec.UNSET if usage is None else build_usage(usage),
            )
        )

    def assembler(self, run: RunRecord, emit: Emit | None = None) -> Assembler:
        return Assembler(run.details.get("tools") or {}, emit)

    def chunk(self, run: RunRecord, delta: Delta, reason: str | None = None) -> bytes:
        return self._event(run, [ChunkChoice(delta=delta, finish_reason=reason)], None)

    def usage(self, run: RunRecord, result: Any) -> bytes | None:
        """Encode the usage chunk, or return None if the target has not counted anything."""
        usage = sum_usage(answers(result))
        return None if usage is None else self._event(run, [], build_usage(usage))

    def _event(self, run: RunRecord, choices: list[ChunkChoice], usage: Usage | None) -> bytes:
        chunk = Chunk(id=run.run_id, created=int(run.created_at), model=self._model, choices=choices)
        if run.details.get("include_usage"):
            # As the API has it: every piece has the field, and the last one has it filled.
            chunk.usage = usage
        return b"data: %b\n\n" % encode(chunk)

    def model(self) -> dict[str, Any]:
        """Render the only available model: the target."""
        return {"id": self._model, "object": "model", "created": 0, "owned_by": "frontdesk"}


def map_finish_reason(assembler: Assembler, result: Any) -> str:
    """Return the finish reason of an answer in terms of the API."""
    if assembler.has_calls:
        return "tool_calls"
    return _REASONS.get(finish_reason(answers(result)) or "", "stop")


def build_usage(usage: Mapping[str, Any]) -> Usage:
    """Convert the usage details of the framework to the API format."""
    given, made = int(usage.get("input_token_count") or 0), int(usage.get("output_token_count") or 0)
    cached = int(usage.get("cache_read_input_token_count") or usage.get("cached_input_token_count") or 0)
    return Usage(
        prompt_tokens=given,
        completion_tokens=made,
        total_tokens=int(usage.get("total_token_count") or given + made),
        prompt_tokens_details={"cached_tokens": cached},
        completion_tokens_details={"reasoning_tokens": int(usage.get("reasoning_output_token_count") or 0)},
    )


def error_body(error: RequestError, *, begun: bool = False) -> bytes:
    return encode({"error": error_out(error, begun=begun)})


def error_out(error: RequestError, *, begun: bool = False) -> ErrorOut:
    """Convert an error to the API format.

    A started run has one error type, because the AI SDK repeats the request after `server_error` in a stream.
    """
    kind = "invalid_request_error"
    if not begun and error.run is None:
        kind = _ERROR_TYPES.get(error.status) or ("server_error" if error.status >= 500 else kind)
    message = f"{error.message}{_HINT}" if error.code == "session_required" else error.message
    if error.run_id is not None:
        message = f"{message} ({error.run_id})"
    return ErrorOut(message=message, type=kind, param=_PARAMS.get(error.param or "", error.param), code=error.code)


def get_status(error: RequestError) -> int:
    """Return the status code of an error. Clients retry some codes, and a started run must not be run again."""
    if error.run is None:
        return error.status
    if error.status >= 500:
        return _FAILED
    return 400 if error.status in _REPEATED else error.status


_FAILED = 424
"""Failed Dependency: the request was fine, and the target has failed."""
_REPEATED = (408, 409, 425, 429)
_HINT = " Chat Completions keeps no session: use a channel that does, such as Responses."
_PARAMS = {"input": "messages"}
"""Fields that this API calls otherwise than a request does."""
