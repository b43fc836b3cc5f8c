"""From a run to a completion. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec
from agent_framework import AgentResponseUpdate

from frontdesk.channels.chat_completions.assemble import Assembler, Emit
from frontdesk.channels.chat_completions.wire import (
    Choice,
    Chunk,
    ChunkChoice,
    Completion,
    Delta,
    ErrorOut,
    Usage,
)
from frontdesk.data.run import RunRecord
from frontdesk.errors import RequestError
from frontdesk.kit.framework.types import is_event
from frontdesk.kit.openai.answers import answers, counted, encode, finish_reason, messages_of

_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_REASONS = {"length": "length", "content_filter": "content_filter"}
DONE = b"data: [DONE]\n\n"


class Renderer:
    """Draws completions in the words of the API."""

    def __init__(self, model: str) -> None:
        self._model = model

    def completion(self, run: RunRecord, result: Any) -> bytes:
        """Encode a whole answer."""
        assembler, said = self.assembler(run), answers(result)
        for answer in said:
            for message in answer.messages:
                assembler.message(message)
        choice = Choice(message=assembler.drawn(), finish_reason=reason_of(assembler, result))
        usage = counted(said)
        return encode(
            Completion(
                id=run.run_id,
                created=int(run.created_at),
                model=self._model,
                choices=[choice],
                usage=msgspec.UNSET if usage is None else usage_of(usage),
            )
        )

    def assembler(self, run: RunRecord, emit: Emit | None = None) -> Assembler:
        """Make what puts the message of a run together."""
        return Assembler(run.details.get("tools") or {}, emit)

    def chunk(self, run: RunRecord, delta: Delta, reason: str | None = None) -> bytes:
        """Encode a piece of a stream."""
        return self._event(run, [ChunkChoice(delta=delta, finish_reason=reason)], None)

    def usage(self, run: RunRecord, result: Any) -> bytes | None:
        """Encode the piece that has the usage; `None` if the target has counted nothing."""
        usage = counted(answers(result))
        return None if usage is None else self._event(run, [], usage_of(usage))

    def _event(self, run: RunRecord, choices: list[ChunkChoice], usage: Usage | None) -> bytes:
        chunk = Chunk(id=run.run_id, created=int(run.created_at), model=self._model, choices=choices)
        if run.details.get("include_usage"):
            # As the API has it: every piece has the field, and the last one has it filled.
            chunk.usage = usage
        return b"data: %b\n\n" % encode(chunk)

    def model(self) -> dict[str, Any]:
        """Draw the only model there is: the target."""
        return {"id": self._model, "object": "model", "created": 0, "owned_by": "frontdesk"}


def feed(assembler: Assembler, update: Any) -> None:
    """Give an update of a target to what puts its message together."""
    if isinstance(update, AgentResponseUpdate):
        assembler.update(update)
    elif is_event(update) and update.type == "output":
        if isinstance(update.data, AgentResponseUpdate):
            assembler.update(update.data, update.executor_id)
            return
        for message in messages_of(update.data):
            assembler.message(message)


def reason_of(assembler: Assembler, result: Any) -> str:
    """Return why an answer ended, in the words of the API."""
    if assembler.has_calls:
        return "tool_calls"
    return _REASONS.get(finish_reason(answers(result)) or "", "stop")


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Draw what the framework has counted, as the API says it."""
    given, made = int(usage.get("input_token_count") or 0), int(usage.get("output_token_count") or 0)
    cached = int(usage.get("cache_read_input_token_count") or usage.get("cached_input_token_count") or 0)
    return Usage(
        prompt_tokens=given,
        completion_tokens=made,
        total_tokens=int(usage.get("total_token_count") or given + made),
        prompt_tokens_details={"cached_tokens": cached},
        completion_tokens_details={"reasoning_tokens": int(usage.get("reasoning_output_token_count") or 0)},
    )


def error_body(error: RequestError) -> bytes:
    """Encode an error in the shape of the API."""
    return encode({"error": error_out(error)})


def error_out(error: RequestError) -> ErrorOut:
    """Draw an error as the API says it."""
    kind = _ERROR_TYPES.get(error.status) or ("server_error" if error.status >= 500 else "invalid_request_error")
    message = f"{error.message}{_HINT}" if error.code == "session_required" else error.message
    if error.run_id is not None:
        message = f"{message} ({error.run_id})"
    return ErrorOut(message=message, type=kind, param=_PARAMS.get(error.param or "", error.param), code=error.code)


def status_of(error: RequestError) -> int:
    """Return the status of an error. Clients repeat some of them, and a run that has begun must not be run again."""
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
