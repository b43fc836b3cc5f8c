"""Renders runs as responses, and their inputs as items. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import AgentResponse, Content, Message

from frontdesk.channels.responses.assemble import Assembler, Emit, nothing
from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.items import build_call, item_id, question
from frontdesk.channels.responses.schema import (
    ApprovalItem,
    CompactionItem,
    CompactionOut,
    ErrorOut,
    FailureOut,
    MessageItem,
    OutputText,
    ResponseOut,
    Usage,
)
from frontdesk.errors import RequestError
from frontdesk.framework.types import is_response
from frontdesk.framework.workflow_requests import (
    REQUEST_INFO,
    approvals_in,
    build_call_id,
    calls_in,
    extract_requests,
    parse_payload,
)
from frontdesk.http.sse import JsonTemplate, mark
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.run import DECISIONS, RunRecord
from frontdesk.openai.bodies import answers, encode, finish_reason, sum_usage
from frontdesk.openai.forms import as_items, complete_item
from frontdesk.openai.items import to_messages
from frontdesk.openai.tools import tool_refs

_encoder = msgspec.json.Encoder(enc_hook=str)

_STATUS = {"running": "in_progress"}
COMPACTION_MARK = "fd1"
"""The prefix of the seal of a compaction."""
_TOO_EARLY = {"length": "max_output_tokens", "content_filter": "content_filter"}
_TEXT: dict[str, Any] = {"format": {"type": "text"}}
_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
# The core has its own words for what the API calls so.
_PARAMS = {"previous_run_id": "previous_response_id", "approvals": "input"}
_ANSWERS = ("function_result", "function_approval_response")
_FILLED = (
    "id",
    "created_at",
    "completed_at",
    "previous_response_id",
    "usage",
    "store",
    "background",
    "metadata",
)
_ECHOED = (
    "instructions",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "max_output_tokens",
    "parallel_tool_calls",
    "truncation",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
)
# The API shows the tier that served a request, under one name for each.
_SHOWN_TIERS = {"auto": "default", "fast": "priority"}


class Renderer:
    def __init__(self, config: ResponsesConfig, target: TargetInfo) -> None:
        self._config = config
        self._target = target
        self._template = self._build_template()

    def _build_template(self) -> JsonTemplate:
        run = RunRecord(run_id="", owner="", channel="", status="completed", created_at=0.0)
        out: Any = self.response(run, AgentResponse(messages=[Message("assistant", ["text"])]))
        for name in _FILLED:
            setattr(out, name, mark(name))
        out.output[0].id, out.output[0].content[0].text = mark("item"), mark("said")
        return JsonTemplate(encode(out), (*_FILLED[:4], "item", "said", *_FILLED[4:]))

    def plain(self, run: RunRecord, result: Any) -> bytes | None:
        """Return the JSON of a response that is one text and repeats no settings (the most common case), or None."""
        text = _plain_text(run, result) if len(run.details) <= 1 and DECISIONS not in run.details else None
        if text is None:
            return None
        try:
            said = _encoder.encode(text)
        except UnicodeEncodeError:
            return None
        previous = run.details.get("previous_response_id", run.previous_run_id)
        usage = None if result.usage_details is None else _usage((result,))
        return self._template.fill(
            _encoder.encode(run.run_id),
            _encoder.encode(int(run.created_at)),
            _encoder.encode(int(run.finished_at)) if run.finished_at else b"null",
            b"null" if previous is None else _encoder.encode(previous),
            _encoder.encode(item_id("msg", run.run_id, 0)),
            said,
            b"null" if usage is None else _encoder.encode(usage),
            b"true" if run.stored else b"false",
            b"true" if run.background else b"false",
            encode(run.metadata) if run.metadata else b"{}",
        )

    def assembler(self, run: RunRecord, emit: Emit = nothing, delta: Any = None) -> Assembler:
        details = run.details
        tools = [*(details.get("tools") or ()), *(details.get("additional_tools") or ())]
        return Assembler(
            run.run_id,
            label=self._target.name,
            client_tools=tool_refs(tools) if tools else {},
            host_tools=self._config.host_tools,
            approved={build_call(call): call for call in run.open_calls or ()},
            encrypted="reasoning.encrypted_content" in (details.get("include") or ()),
            emit=emit,
            delta=delta,
        )

    def question(self, request: Content) -> ApprovalItem:
        """Render a tool call that requires, or required, approval."""
        return question(request, self._target.name)

    def output(self, run: RunRecord, result: Any) -> list[Any]:
        return self._output(run, result, answers(result))

    def _output(self, run: RunRecord, result: Any, said: Sequence[AgentResponse[Any]]) -> list[Any]:
        plain = _plain_text(run, result)
        if plain is not None:
            part = OutputText(text=plain, annotations=[], logprobs=[])
            return [MessageItem(id=item_id("msg", run.run_id, 0), status="completed", content=[part])]
        assembler = self.assembler(run)
        for answer in said:
            for message in answer.messages:
                assembler.message(message)
        self.finish(assembler, run, result, said)
        return assembler.items

    def finish(
        self, assembler: Assembler, run: RunRecord, result: Any, said: Sequence[AgentResponse[Any]] | None = None
    ) -> None:
        """Complete an output: close open items and emit the pending questions."""
        given = answers(result) if said is None else said
        requests = () if is_response(result) else extract_requests(result)
        asked = result.user_input_requests if is_response(result) else approvals_in(requests)
        assembler.finish(whole=run.status == "completed" and _cut_off(given) is None, waiting=asked)
        assembler.approve(asked)
        for request in calls_in(requests):
            assembler.ask(build_call_id(request), REQUEST_INFO, encode(parse_payload(request)).decode())

    def response(self, run: RunRecord, result: Any = None, output: list[Any] | None = None) -> ResponseOut:
        """Render a run. `output` is given if it is already assembled."""
        said = answers(result)
        out = ResponseOut(
            id=run.run_id,
            created_at=int(run.created_at),
            completed_at=int(run.finished_at) if run.finished_at and run.status == "completed" else None,
            status=_STATUS.get(run.status, run.status),
            model=self._target.name,
            previous_response_id=run.details.get("previous_response_id", run.previous_run_id),
            output=self._output(run, result, said) if output is None else output,
            metadata=run.metadata,
            background=run.background,
            store=run.stored,
            text=_TEXT,
        )
        self._echo(out, run)
        if run.continued_by is not None:
            out.continued_by = run.continued_by
        if run.details.get(DECISIONS):
            out.decisions = [
                {"approval_request_id": decided["id"], "outcome": decided["outcome"], "status": decided["status"]}
                for decided in run.details[DECISIONS]
            ]
        if said:
            out.usage = _usage(said)
            reason = _cut_off(said)
            if reason is not None and out.status == "completed":
                out.status = "incomplete"
                out.completed_at = None
                out.incomplete_details = {"reason": reason}
        if run.failure is not None and run.status == "failed":
            out.error = FailureOut(message=run.failure.message)
        return out

    def _echo(self, out: ResponseOut, run: RunRecord) -> None:
        details = run.details
        if len(details) <= 1:
            # Nothing but the input: nothing was asked for that would have to be repeated.
            return
        for name in _ECHOED:
            if name in details:
                setattr(out, name, details[name])
        out.service_tier = _SHOWN_TIERS.get(out.service_tier, out.service_tier)
        if details.get("conversation"):
            out.conversation = {"id": details["conversation"]}
        if details.get("tools"):
            out.tools = [_tool(tool) for tool in details["tools"]]
        if details.get("tool_choice"):
            out.tool_choice = _tool_choice(details["tool_choice"])
        if details.get("reasoning"):
            given: dict[str, Any] = details["reasoning"]
            out.reasoning = {"effort": given.get("effort"), "summary": given.get("summary")}
        text: dict[str, Any] | None = details.get("text")
        if text is not None:
            out.text = _text(text)


def _plain_text(run: RunRecord, result: Any) -> str | None:
    """Return the text of an answer with one message and one text, or None.

    This is the most common case. The assembler would render the same.
    """
    if run.status != "completed" or not is_response(result) or len(result.messages) != 1:
        return None
    message = result.messages[0]
    if message.role != "assistant" or len(message.contents) != 1 or result.finish_reason not in (None, "stop"):
        return None
    content = message.contents[0]
    if content.type != "text" or content.annotations or content.additional_properties or not content.text:
        return None
    return content.text


def count_tokens(result: Any) -> int | None:
    """Return the tokens that the model has read and written for a result, or None if it does not count them."""
    usage = _usage(answers(result))
    return None if usage is None else usage.total_tokens


def _usage(said: Sequence[AgentResponse[Any]]) -> Usage | None:
    usage = sum_usage(said)
    return None if usage is None else build_usage(usage)


def _cut_off(given: Sequence[AgentResponse[Any]]) -> str | None:
    """Return the reason why the last answer was truncated, or None."""
    reason = finish_reason(given)
    return None if reason is None else _TOO_EARLY.get(reason)


def build_usage(usage: Mapping[str, Any]) -> Usage:
    """Convert the usage details of the framework to the API format."""
    given, made = int(usage.get("input_token_count") or 0), int(usage.get("output_token_count") or 0)
    cached = int(usage.get("cache_read_input_token_count") or usage.get("cached_input_token_count") or 0)
    return Usage(
        input_tokens=given,
        output_tokens=made,
        total_tokens=int(usage.get("total_token_count") or given + made),
        input_tokens_details={
            "cached_tokens": cached,
            "cache_write_tokens": int(usage.get("cache_creation_input_token_count") or 0),
        },
        output_tokens_details={"reasoning_tokens": int(usage.get("reasoning_output_token_count") or 0)},
    )


def _tool(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("type") == "namespace":
        tools: list[dict[str, Any]] = given["tools"]
        return {**_only(given, ("type", "name", "description")), "tools": [_tool(tool) for tool in tools]}
    if given.get("type") == "custom":
        return _only(given, ("type", "name", "description", "format"))
    return {
        "type": "function",
        "name": given["name"],
        "description": given.get("description"),
        "parameters": given.get("parameters"),
        "strict": given.get("strict"),
    }


def _only(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if given.get(name) is not None}


def _tool_choice(given: Any) -> Any:
    if isinstance(given, dict):
        choice = cast("dict[str, Any]", given)
        return {"mode": "auto", **choice} if choice.get("type") == "allowed_tools" else choice
    return given


def _text(given: dict[str, Any]) -> dict[str, Any]:
    form: dict[str, Any] = given.get("format") or {"type": "text"}
    if form["type"] == "json_schema":
        # The published schema allows nothing but null here.
        form = {
            "type": "json_schema",
            "name": form.get("name"),
            "description": form.get("description"),
            "schema": None,
            "strict": bool(form.get("strict")),
        }
    else:
        form = {"type": form["type"]}
    return {"format": form, "verbosity": given["verbosity"]} if given.get("verbosity") else {"format": form}


def input_items(run: RunRecord, *, keep_ids: bool = True) -> list[dict[str, Any]]:
    """Return the input of a run, each item with an id: the client's, unless it may already be in use."""
    return [complete_item(item, item_id) for item_id, item in list_given_items(run, keep_ids=keep_ids)]


def list_given_items(run: RunRecord, *, keep_ids: bool = True) -> list[tuple[str, dict[str, Any]]]:
    """Return the input of a run as received, with the id of each item."""
    given = run.details.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    suffix = run.run_id.partition("_")[2] or run.run_id
    items: dict[str, dict[str, Any]] = {}
    for place, item in enumerate(cast("list[dict[str, Any]]", given or [])):
        item_id: Any = item.get("id") if keep_ids else None
        if not item_id or item_id in items:
            item_id = f"in_{suffix}{place:04x}"
        items[item_id] = item
    return list(items.items())


def _is_told(run: RunRecord) -> bool:
    """Return True if the stored input is exactly what the target received."""
    said = to_messages(input_items(run))[0]
    return "input" in run.details and _words(said) == _words(run.input or ())


def _words(messages: Sequence[Message]) -> list[Any]:
    told = [
        (message.role, content) for message in messages for content in message.contents if content.type not in _ANSWERS
    ]
    return [(role, content.type, content.text or content.uri or content.arguments) for role, content in told]


def turn_items(renderer: Renderer, run: RunRecord, result: Any) -> list[dict[str, Any]]:
    """Return the items that a run adds to its conversation: its input, then its output."""
    if not _is_told(run):
        # It came in at another door, or a hook has changed it: what nobody was told must not be told later.
        run = run.replace(details={**run.details, "input": as_items(run.input or ())})
    answered = renderer.output(run, result) if run.status == "completed" else []
    return [*input_items(run, keep_ids=False), *(msgspec.to_builtins(item, enc_hook=str) for item in answered)]


def is_compaction(run: RunRecord) -> bool:
    return "summary" in run.details


def draw_compaction(run: RunRecord) -> CompactionOut:
    """Render a compaction in the API format: the user's messages, then the item that replaces the rest."""
    said: Sequence[Message] = run.input or ()
    output: list[Any] = [
        {
            "type": "message",
            "id": item_id("msg", run.run_id, place),
            "status": "completed",
            "role": "user",
            "content": [_render_input_part(content) for content in message.contents],
        }
        for place, message in enumerate(said)
    ]
    seal = f"{COMPACTION_MARK}.{run.run_id}.{run.details['seal']}"
    output.append(CompactionItem(id=item_id("cmp", run.run_id, len(output)), encrypted_content=seal))
    usage = build_usage(run.details["usage"])
    return CompactionOut(id=run.run_id, created_at=int(run.created_at), output=output, usage=usage)


def _render_input_part(content: Content) -> dict[str, Any]:
    if content.type == "text":
        return {"type": "input_text", "text": content.text or ""}
    if content.type in ("data", "uri") and (content.media_type or "").startswith("image/"):
        return {"type": "input_image", "image_url": content.uri, "detail": _detail(content)}
    if content.type in ("data", "uri") and content.uri:
        name = content.additional_properties.get("filename") or "file"
        where = "file_data" if content.uri.startswith("data:") else "file_url"
        return {"type": "input_file", "filename": name, where: content.uri}
    return {"type": "input_text", "text": ""}


def _detail(content: Content) -> str:
    return str(content.additional_properties.get("detail") or "auto")


def error_body(error: RequestError) -> bytes:
    return encode({"error": error_out(error)})


def error_out(error: RequestError) -> ErrorOut:
    """Convert an error to the API format."""
    status = get_status(error)
    kind = _ERROR_TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
    message = "The previous response was not found." if _is_lost(error) else error.message
    if error.run_id is not None:
        message = f"{message} ({error.run_id})"
    param = error.param and _PARAMS.get(error.param, error.param)
    code = "previous_response_not_found" if _is_lost(error) else error.code
    return ErrorOut(message=message, type=kind, param=param, code=code)


def get_status(error: RequestError) -> int:
    """Return the status code of an error. The API treats a response that cannot be continued as a bad request."""
    return 400 if _is_lost(error) else error.status


def _is_lost(error: RequestError) -> bool:
    return error.status == 404 and error.param in ("previous_run_id", "previous_response_id")


def event(kind: str, fields: dict[str, Any], number: int) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, "sequence_number": number, **fields}))
