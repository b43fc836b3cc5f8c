"""Renders results, updates and errors as Invocations bodies. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import AgentResponse, AgentResponseUpdate, Content, Message, WorkflowEvent, WorkflowRunResult
from msgspec import UNSET

from frontdesk.channels.invocations.config import ToolCalls
from frontdesk.channels.invocations.schema import (
    ApprovalOut,
    ErrorEnvelope,
    ErrorOut,
    InvocationOut,
    MessageOut,
    RequestOut,
    Started,
    Text,
    Update,
    WaitingList,
    WaitingOut,
)
from frontdesk.display.person_names import build_label, list_awaited
from frontdesk.errors import RequestError
from frontdesk.framework.approval_ids import person_out, waits_for, waits_for_people
from frontdesk.framework.outputs import json_form, read_output
from frontdesk.framework.types import is_event, is_messages, is_response, whole_outputs
from frontdesk.framework.workflow_requests import (
    Request,
    approvals_in,
    build_call_id,
    calls_in,
    extract_requests,
    is_request,
    type_name,
)
from frontdesk.http.sse import JsonTemplate, encode_event, mark
from frontdesk.models.approval import QuestionView, WaitingPage
from frontdesk.models.run import DECISIONS, RunRecord

_FILLED = ("id", "session_id", "created_at", "finished_at", "text", "usage", "metadata")
_TOOL_CALLS = frozenset({"function_call", "function_result"})
_UNSEEN = frozenset({"usage", "function_approval_request"})
_PARAMS = {"approvals": "approval"}
"""Fields that this protocol calls otherwise than a request does."""


_encoder = msgspec.json.Encoder(enc_hook=json_form)


def encode(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        # Half a surrogate pair, which UTF-8 can't say and an escape can.
        return json.dumps(msgspec.to_builtins(value, enc_hook=json_form)).encode()


class Renderer:
    def __init__(self, tool_calls: ToolCalls) -> None:
        self._hidden = _UNSEEN | _TOOL_CALLS if tool_calls == "hide" else _UNSEEN
        self._template = self._build_template()

    def _build_template(self) -> JsonTemplate:
        run = RunRecord(run_id="", owner="", channel="", status="completed", created_at=0.0)
        out: Any = self.invocation(run, AgentResponse(messages=[Message("assistant", ["text"])]))
        for name in _FILLED:
            setattr(out, name, mark(name))
        out.messages[0].contents[0].text = mark("said")
        return JsonTemplate(encode(out), (*_FILLED[:5], "said", *_FILLED[5:]))

    def plain(self, run: RunRecord, result: Any) -> bytes | None:
        """Return the JSON of an invocation whose result is a single text, the most common case. Otherwise return
        None."""
        if run.status != "completed" or run.failure or run.checkpoint or run.stopped_at or DECISIONS in run.details:
            return None
        if not is_response(result) or not _is_plain(result):
            return None
        message = result.messages[0]
        if message.author_name is not None or result.value is not None:
            return None
        try:
            text = _encoder.encode(message.contents[0].text or "")
        except UnicodeEncodeError:
            return None
        usage, session = result.usage_details, run.session_key
        return self._template.fill(
            _encoder.encode(run.run_id),
            b"null" if session is None else _encoder.encode(session),
            _encoder.encode(run.created_at),
            _encoder.encode(run.finished_at),
            text,
            text,
            b"null" if usage is None else encode(dict(usage)),
            encode(dict(run.metadata)) if run.metadata else b"{}",
        )

    def invocation(self, run: RunRecord, result: Any) -> InvocationOut:
        out = InvocationOut(
            id=run.run_id,
            status=run.status,
            session_id=run.session_key,
            created_at=run.created_at,
            finished_at=run.finished_at,
            metadata=dict(run.metadata),
        )
        if run.continued_by is not None:
            out.continued_by = run.continued_by
        if run.details.get(DECISIONS):
            out.decisions = list(run.details[DECISIONS])
        if run.failure is not None:
            out.error = ErrorOut(code=run.failure.code, message=run.failure.message, id=run.run_id)
        stands_at = run.stopped_at or run.checkpoint
        out.checkpoint_id = None if stands_at is None else stands_at.checkpoint_id
        if is_response(result):
            self._agent(out, result)
        elif isinstance(result, WorkflowRunResult):
            self._workflow(out, result)
        return out

    def _agent(self, out: InvocationOut, response: AgentResponse[Any]) -> None:
        out.value = response.value
        out.messages = self._messages(response.messages)
        out.text = "".join(_join_texts(message) for message in response.messages if message.role == "assistant")
        out.usage = None if response.usage_details is None else dict(response.usage_details)
        waiting = response.user_input_requests
        out.approvals = [_approval(request) for request in waiting if request.function_call is not None]
        out.requests = [_render_request(request) for request in waiting if is_request(request)]

    def _workflow(self, out: InvocationOut, result: WorkflowRunResult) -> None:
        outputs = whole_outputs(result)
        out.outputs = [self._output(output) for output in outputs]
        out.text = "\n".join(text for text in map(_extract_text, outputs) if text)
        waiting = extract_requests(result)
        out.approvals = [_approval(request) for request in approvals_in(waiting)]
        out.requests = [self._request(request) for request in calls_in(waiting)]

    def _request(self, request: Request) -> RequestOut:
        data = self._output(request.data)
        return RequestOut(id=build_call_id(request), data=data, response_type=type_name(request))

    def _output(self, output: Any) -> Any:
        if is_response(output):
            return {"text": output.text, "messages": self._messages(output.messages)}
        if isinstance(output, Message):
            return self._message(output)
        if isinstance(output, Content):
            return _content(output)
        if is_messages(output):
            return self._messages(output)
        if isinstance(output, list):
            return [self._output(part) for part in cast("list[Any]", output)]
        return output

    def _messages(self, messages: Sequence[Message]) -> list[MessageOut]:
        drawn = (self._message(message) for message in messages)
        return [message for message in drawn if message.contents]

    def _message(self, message: Message) -> MessageOut:
        return MessageOut(role=message.role, contents=self._contents(message.contents), author=message.author_name)

    def _contents(self, contents: Sequence[Content]) -> list[Any]:
        return [
            _content(content) for content in contents if content.type not in self._hidden and not is_request(content)
        ]

    def update(self, update: Any, number: int) -> bytes | None:
        if isinstance(update, AgentResponseUpdate):
            drawn = self._update(update)
        elif is_event(update) and update.type in ("output", "intermediate"):
            drawn = self._event(update)
        else:
            drawn = None
        return None if drawn is None else encode_event(b"update", encode(drawn), number)

    def _update(self, update: AgentResponseUpdate) -> Update | None:
        contents = update.contents
        if len(contents) == 1 and contents[0].type == "text" and not contents[0].annotations:
            return Update(contents[0].text or "")
        rest = [content for content in contents if content.type != "text" or content.annotations]
        drawn = self._contents(rest)
        text = update.text
        return Update(text, drawn or None) if text or drawn else None

    def _event(self, event: WorkflowEvent[Any]) -> Update | None:
        if isinstance(event.data, AgentResponseUpdate):
            return self._update(event.data)
        return Update(_extract_text(event.data), None, self._output(event.data))


def _is_plain(response: AgentResponse[Any]) -> bool:
    """Return True if an answer is one message with one text, the most common case."""
    if len(response.messages) != 1 or response.messages[0].role != "assistant":
        return False
    contents = response.messages[0].contents
    return len(contents) == 1 and contents[0].type == "text" and not contents[0].annotations


def encode_started(run: RunRecord) -> bytes:
    """Encode the first event of a stream."""
    return encode_event(b"started", encode(Started(run.run_id, run.session_key)), 0)


def encode_ended(out: InvocationOut, number: int) -> bytes:
    return encode_event(out.status.encode(), encode(out), number)


def error_body(error: RequestError, run_id: str | None = None) -> bytes:
    return encode(ErrorEnvelope(error=error_out(error, run_id)))


def error_out(error: RequestError, run_id: str | None = None) -> ErrorOut:
    """Convert an error to the protocol format, with the id under which details are logged."""
    param = _PARAMS.get(error.param or "", error.param)
    return ErrorOut(code=error.code, message=error.message, param=param, id=run_id or error.run_id)


def _content(content: Content) -> Any:
    if content.type == "text" and not content.annotations:
        return Text(content.text or "")
    drawn: Mapping[str, Any] = content.to_dict()
    return {name: value for name, value in drawn.items() if name != "additional_properties"}


def _approval(request: Content) -> ApprovalOut:
    call = request.function_call
    arguments = None if call is None else call.parse_arguments()
    out = ApprovalOut(id=str(request.id), tool=str(call.name) if call else "", arguments=arguments)
    if (people := waits_for(request)) is not None:
        out.waits_for = people
        out.waits_for_people = waits_for_people(request) or UNSET
    return out


def render_waiting(page: WaitingPage) -> WaitingList:
    """Render pending questions: the caller's own, and those that the caller may decide."""
    return WaitingList(data=[_render_question(view) for view in page.questions], after=page.after)


def _render_question(view: QuestionView) -> WaitingOut:
    question, terms = view.approval, view.approval.terms
    call = question.request.function_call
    out = WaitingOut(
        id=question.approval_id,
        tool=question.tool,
        arguments=None if call is None else call.parse_arguments(),
        asker=view.asker,
        channel=view.channel,
        created_at=question.created_at,
        expires_at=question.expires_at,
        votes=1 if terms is None else terms.votes,
        own=view.own,
    )
    if view.requester is not None:
        out.asked_for = person_out(view.requester)
    if terms is not None and view.own:
        people = list_awaited(terms)
        out.waits_for = [build_label(person) for person in people]
        out.waits_for_people = [person_out(person) for person in people]
    return out


def _render_request(request: Content) -> RequestOut:
    """Render a question of a workflow that runs as an agent."""
    shown = request.parse_arguments() or {}
    return RequestOut(id=str(request.call_id), data=shown.get("data"), response_type=str(shown.get("response_type")))


def _join_texts(message: Message) -> str:
    # The framework's `Message.text` puts blanks between the pieces, and the updates of a stream have none.
    return "".join(content.text or "" for content in message.contents if content.type == "text")


def _extract_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, (AgentResponse, Message)):
        return output.text
    if isinstance(output, Content) or (isinstance(output, list) and _has_contents(cast("list[Any]", output))):
        return "".join(map(_join_texts, read_output(output) or ()))
    return ""


def _has_contents(output: Sequence[Any]) -> bool:
    return any(isinstance(part, (Content, Message)) for part in output)
