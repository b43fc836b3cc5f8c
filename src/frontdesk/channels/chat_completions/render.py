"""Renders results and updates as completions and chunks, and errors as error bodies. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from agent_framework import AgentResponseUpdate, Content, Message

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
from frontdesk.framework.contents import call_arguments, file_name, is_refusal
from frontdesk.framework.outputs import extract_messages
from frontdesk.framework.types import is_event
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import answers, counted, encode, finish_reason, piece
from frontdesk.openai.tools import parse_input

Emit = Callable[[Delta], None]
_BETWEEN = "\n\n"
"""Stands between two messages of the target's, which are one message here."""
_MEDIA = ("data", "uri")


class _Call:
    __slots__ = ("call_id", "index", "kind", "name", "pieces")

    def __init__(self, call_id: str, name: str, kind: str, index: int) -> None:
        self.call_id = call_id
        self.name = name
        self.kind = kind
        self.index = index
        self.pieces: list[str] = []

    @property
    def arguments(self) -> str:
        return "".join(self.pieces) or "{}"

    def drawn(self, index: int | None = None) -> ToolCall:
        if self.kind == "custom":
            custom = CalledCustom(name=self.name, input=parse_input(self.arguments))
            return ToolCall(index=index, id=self.call_id, type="custom", custom=custom)
        function = CalledFunction(name=self.name, arguments=self.arguments)
        return ToolCall(index=index, id=self.call_id, type="function", function=function)


class Assembler:
    def __init__(self, client_tools: Mapping[str, str], emit: Emit | None = None) -> None:
        """`client_tools` maps the names of client tools to their types."""
        self._client_tools = client_tools
        self._emit = emit
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._known: dict[str, _Call | None] = {}
        self._last: _Call | None = None
        # The pieces of the message that is being said, for those that repeat what came before.
        self._pieces: list[str] = []
        self._declined: list[str] = []
        self._is_new = False
        self._seen: tuple[str | None, str | None, str | None, str | None] | None = None
        self._role = "assistant"

    def update(self, update: AgentResponseUpdate, voice: str | None = None) -> None:
        """Add the next piece of a stream. `voice` distinguishes the agents of a workflow."""
        self._follow(update, voice)
        self._feed(update.contents)

    def _follow(self, update: AgentResponseUpdate, voice: str | None) -> None:
        """Begin a message where the framework begins one in the joined result."""
        message_id, author, role = update.message_id, update.author_name, update.role
        seen = self._seen
        if seen is None or voice != seen[3] or _differ(message_id, seen[0]) or _differ(author, seen[1]):
            self._begin(role or "assistant")
        elif role and role != self._role:
            self._begin(role)
        else:
            message_id, author = message_id or seen[0], author or seen[1]
        self._seen = (message_id, author, role, voice)

    def message(self, message: Message) -> None:
        self._seen = None
        self._begin(message.role)
        self._feed(message.contents)

    def _begin(self, role: str) -> None:
        self._role = role
        self._is_new = True
        self._pieces, self._declined = [], []
        self._last = None

    def _feed(self, contents: Sequence[Content]) -> None:
        if self._role in ("user", "system"):
            # A workflow may hand out its whole conversation; what was asked is no part of the answer.
            return
        for content in contents:
            kind = content.type
            if kind == "function_call":
                self._call(content)
                continue
            if kind == "text":
                self._say(content)
            elif kind in _MEDIA and content.uri:
                self._show(content)
            elif kind == "oauth_consent_request" and content.consent_link:
                self._add(f"[Consent]({content.consent_link})")
            elif kind == "error":
                self._decline(content.message or content.error_code or "Error")

    def _say(self, content: Content) -> None:
        text = content.text or ""
        if content.additional_properties and is_refusal(content.additional_properties):
            self._decline(piece(self._declined, text, content))
        elif content.merge_mode is not None:
            self._add(piece(self._pieces, text, content))
        else:
            self._pieces.append(text)
            self._add(text)

    def _show(self, content: Content) -> None:
        is_image = (content.media_type or "").startswith("image/")
        self._add(f"{'!' if is_image else ''}[{file_name(content) or content.media_type or 'file'}]({content.uri})")

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._is_new and self._text:
            text = _BETWEEN + text
        self._is_new = False
        self._text.append(text)
        self._tell(Delta(content=text))

    def _decline(self, text: str) -> None:
        if not text:
            return
        self._refusal.append(text)
        self._tell(Delta(refusal=text))

    def _call(self, content: Content) -> None:
        call_id = content.call_id or ""
        if call_id in self._known:
            call = self._known[call_id]
        elif call_id or content.name:
            call = self._begin_call(content)
        else:
            # A piece without an id belongs to the call before it.
            call = self._last
        self._last = call
        if call is None:
            return
        # The framework names a call once more when it pauses for it.
        again = bool(content.user_input_request and call.pieces)
        more = "" if again else piece(call.pieces, call_arguments(content), content)
        if more and call.kind == "function":
            self._tell_call(ToolCall(index=call.index, function=CalledFunction(arguments=more)))

    def _begin_call(self, content: Content) -> _Call | None:
        """Open a call. Calls of the host's own tools are not displayed."""
        name, call_id = content.name or "", content.call_id or f"call_{len(self._known)}"
        kind = self._client_tools.get(name)
        call = None if kind is None else _Call(call_id, name, kind, len(self._calls))
        self._known[call_id] = call
        if call is None:
            return None
        self._calls.append(call)
        if call.kind == "function":
            opened = CalledFunction(name=name, arguments="")
            self._tell_call(ToolCall(index=call.index, id=call_id, type="function", function=opened))
        return call

    def finish(self) -> None:
        """Emit everything that could not be emitted in pieces."""
        for call in self._calls:
            if call.kind == "custom":
                # A text has to be read out of its arguments, which is done when they are whole.
                self._tell_call(call.drawn(call.index))
            elif not any(call.pieces):
                self._tell_call(ToolCall(index=call.index, function=CalledFunction(arguments="{}")))

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def drawn(self) -> MessageOut:
        calls: Any = [call.drawn() for call in self._calls] if self._calls else msgspec.UNSET
        text = "".join(self._text) if self._text or not (self._calls or self._refusal) else None
        return MessageOut(content=text, refusal="".join(self._refusal) or None, tool_calls=calls)

    def _tell_call(self, call: ToolCall) -> None:
        self._tell(Delta(tool_calls=[call]))

    def _tell(self, delta: Delta) -> None:
        if self._emit is not None:
            self._emit(delta)


def _differ(new: str | None, old: str | None) -> bool:
    return bool(new and old and new != old)


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
        choice = Choice(message=assembler.drawn(), finish_reason=map_finish_reason(assembler, result))
        usage = counted(said)
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
        usage = counted(answers(result))
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


def feed(assembler: Assembler, update: Any) -> None:
    if isinstance(update, AgentResponseUpdate):
        assembler.update(update)
    elif is_event(update) and update.type == "output":
        if isinstance(update.data, AgentResponseUpdate):
            assembler.update(update.data, update.executor_id)
            return
        for message in extract_messages(update.data):
            assembler.message(message)


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
