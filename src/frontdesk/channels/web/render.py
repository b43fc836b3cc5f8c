"""Renders results and errors as messages of the page. Pure."""

from collections.abc import Sequence
from typing import Any, cast

import agent_framework as framework
import msgspec

from frontdesk.channels.web.wire import (
    Button,
    Content,
    Form,
    Part,
    Person,
    Question,
    SentFile,
    Source,
    StoredMessage,
    Tool,
)
from frontdesk.chat.i18n.wording import Wording, keeps_arguments
from frontdesk.chat.questions import question_in_words
from frontdesk.display.escaping import ArgumentField, argument_fields, display_arguments, escape_line, escape_text
from frontdesk.display.person_names import build_label, find_decider, short_id
from frontdesk.errors import RequestError
from frontdesk.framework.contents import file_name, get_asked_call
from frontdesk.framework.notes import NO_NOTES, list_notes
from frontdesk.framework.outputs import output_json, read_output
from frontdesk.framework.request_forms import FormField, build_form
from frontdesk.framework.types import is_response, whole_outputs
from frontdesk.framework.workflow_requests import (
    MAX_BUTTONS,
    approvals_in,
    build_call_id,
    calls_in,
    extract_choices,
    extract_requests,
    form_in,
    is_request,
    question_text,
    short_name,
)
from frontdesk.interfaces.chat import Citation, ToolDetail, ToolUse
from frontdesk.models.approval import PendingApproval, QuestionView
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkChallenge
from frontdesk.models.person_name import PersonName
from frontdesk.models.reply import Reply
from frontdesk.models.result import HostedRunResult

_MAX_TOOL_LENGTH = 200
_MAX_DETAIL_BYTES = 10_000
"""The bytes of all arguments and results of a message: beside its text they have to fit into a stored value."""
_MAX_SOURCE_BYTES = 6_000


def extract_contents(given: Any, wording: Wording, detail: ToolDetail = "hidden") -> list[Part]:
    """Return the parts displayed for a result, in order: the text, and a card for each question."""
    value: Any = cast("HostedRunResult[Any]", given).result if isinstance(given, HostedRunResult) else given
    if isinstance(value, str):
        return _texts([value])
    if is_response(value):
        asked = [content for content in value.user_input_requests if content.type == "function_approval_request"]
        requests = [content for message in value.messages for content in message.contents if is_request(content)]
        return [
            *_render_messages(value.messages, detail),
            *map(_question, asked),
            *(_request_of_agent(content, wording) for content in requests),
        ]
    if isinstance(value, framework.WorkflowRunResult):
        return _workflow(value, wording, detail)
    return []


def _workflow(result: framework.WorkflowRunResult, wording: Wording, detail: ToolDetail) -> list[Part]:
    said: list[Part] = []
    for output in whole_outputs(result):
        messages = read_output(output)
        if messages is None:
            said.append(Part(text=storable(output_json(output)), is_literal=True))
        else:
            said += _render_messages(messages, detail)
    waiting = extract_requests(result)
    for request in calls_in(waiting):
        labels = [choice.label for choice in extract_choices(request.response_type)]
        question = question_text(request.data)
        wanted = request.response_type
        said.append(_request(question, build_call_id(request), wanted, labels, build_form(wanted), wording))
    return said + [_question(content) for content in approvals_in(waiting)]


def _render_messages(messages: Sequence[framework.Message], detail: ToolDetail) -> list[Part]:
    """Return the assistant messages as one message. An echo contains only the user's messages."""
    is_echo = all(message.role == "user" for message in messages)
    role = "user" if is_echo else "assistant"
    said = [message for message in messages if message.role == role]
    media = tuple(file for message in said for content in message.contents if (file := _file(content)) is not None)
    text = _join([_extract_text(message) for message in said])
    notes = NO_NOTES if is_echo else list_notes(messages, detail)
    if not text.strip() and not media and not notes.tools:
        return []
    tools, citations = list_tools(notes.tools), extract_sources(notes.citations)
    return [Part(text=text, role=role, media=media, tools=tools, citations=citations)]


def list_tools(uses: Sequence[ToolUse]) -> tuple[Tool, ...]:
    """Return the stored form of tool calls. Above the size limit only the names are kept."""
    tools = [
        Tool(
            id=short_name(use.call_id),
            name=storable(use.name),
            state=use.state,
            seconds=None if use.seconds is None else round(use.seconds, 2),
            arguments=storable(use.arguments),
            result=storable(use.result),
        )
        for use in uses
    ]
    remaining = _MAX_DETAIL_BYTES
    for place in range(len(tools) - 1, -1, -1):
        size = len(msgspec.json.encode((tools[place].arguments, tools[place].result)))
        if size <= remaining:
            remaining -= size
        else:
            tools[place] = msgspec.structs.replace(tools[place], arguments="", result="")
    return tuple(tools)


def extract_sources(citations: Sequence[Citation]) -> tuple[Source, ...]:
    """Return the stored form of sources, up to the limit."""
    sources: list[Source] = []
    remaining = _MAX_SOURCE_BYTES
    for citation in citations:
        source = Source(title=storable(citation.title), url=storable(citation.url))
        remaining -= len(msgspec.json.encode(source))
        if remaining < 0:
            break
        sources.append(source)
    return tuple(sources)


def _extract_text(message: framework.Message) -> str:
    texts = "".join(content.text or "" for content in message.contents if content.type == "text")
    links = [content.uri for content in message.contents if content.type == "uri" and content.uri]
    return _join([texts, *links])


def _file(content: framework.Content) -> SentFile | None:
    head, _, data = (content.uri or "").partition(";base64,")
    if content.type != "data" or not data:
        return None
    media_type = content.media_type or head.removeprefix("data:")
    return SentFile(media_type=storable(media_type), data=data, name=storable(file_name(content)))


def _join(texts: Sequence[str]) -> str:
    return storable("\n\n".join(filter(None, texts)))


def _texts(texts: Sequence[str]) -> list[Part]:
    text = _join(texts)
    return [Part(text=text)] if text.strip() else []


def _question(request: framework.Content) -> Part:
    tool, _ = get_asked_call(request)
    return Part(question=Question(approval_id=str(request.id), tool=_tool_name(tool)))


def _tool_name(tool: str) -> str:
    """Return the stored name of a tool. A card that can be answered has the full name."""
    shown = escape_line(tool)
    return shown if len(shown) <= _MAX_TOOL_LENGTH else f"{shown[: _MAX_TOOL_LENGTH - 1]}…"


def _request_of_agent(content: framework.Content, wording: Wording) -> Part:
    """Return the question of a workflow that runs as an agent."""
    payload: dict[str, Any] = content.parse_arguments() or {}
    kind = payload.get("response_type")
    plain: dict[Any, Any] = {"str": str, "int": int, "float": float, "bool": bool}
    labels = [escape_line(str(label)) for label in payload.get("choices") or ()]
    question = question_text(payload.get("data"))
    fields = form_in(content)
    return _request(question, str(content.call_id), plain.get(kind, kind), labels, fields, wording)


def _request(
    question: str,
    call_id: str,
    wanted: Any,
    labels: Sequence[str],
    fields: tuple[FormField, ...],
    wording: Wording,
) -> Part:
    """Return a workflow question: few choices as buttons, otherwise a form."""
    if fields and not labels:
        return Part(text=storable(question), is_literal=True, form=Form(id=short_name(call_id), fields=fields))
    if not 0 < len(labels) <= MAX_BUTTONS:
        return Part(text=storable(question_in_words(question, wanted, labels, wording)), is_literal=True)
    if wanted is bool:
        labels = [wording.say("question.yes"), wording.say("question.no")]
    name = short_name(call_id)
    buttons = tuple(Button(text=storable(label), data=f"{name}:{number}") for number, label in enumerate(labels))
    return Part(text=storable(question), is_literal=True, buttons=buttons)


def content_of_reply(reply: Reply) -> Content:
    if not reply.buttons:
        return Content(text=storable(reply.full_text), role="notice")
    buttons = tuple(Button(text=escape_line(button.text), data=button.data) for button in reply.buttons)
    return Content(text=escape_text(reply.full_text), is_literal=True, role="notice", buttons=buttons)


def challenge_text(challenge: LinkChallenge) -> str:
    """Return the instructions for linking an account."""
    return "\n".join(filter(None, (challenge.instructions, challenge.url)))


def render_question(view: QuestionView) -> Part:
    """Return the question card for an approver. The page fetches the arguments."""
    approval = view.approval
    question = Question(approval_id=approval.approval_id, tool=_tool_name(approval.tool))
    return Part(question=question, origin=view.channel)


def person_shown(person: PersonName) -> Person:
    return Person(
        name=storable(person.name),
        id=storable(short_id(person.native_id)),
        channel=storable(escape_line(person.channel)),
        verified=person.verified,
        is_operator=person.is_operator,
    )


def render_settled(approval: PendingApproval, by: ChannelIdentity | None = None) -> Content:
    decider, asker = find_decider(approval, by), approval.requester_name
    is_shared = approval.terms is not None
    fields, arguments = _keep_arguments(approval)
    question = Question(
        approval_id=approval.approval_id,
        tool=_tool_name(approval.tool),
        outcome=approval.status,
        reason=escape_text(approval.reason or ""),
        by="" if decider is None or not is_shared else storable(build_label(decider)),
        decider=None if decider is None else person_shown(decider),
        asked_for=None if asker is None or not is_shared else person_shown(asker),
        at=approval.decided_at or 0.0,
        fields=fields,
        arguments=arguments,
    )
    return Content(question=question)


def _keep_arguments(approval: PendingApproval) -> tuple[tuple[ArgumentField, ...] | None, str]:
    """Return the arguments of a decided call, as fields or as text. Long ones are truncated."""
    if not keeps_arguments(approval):
        return None, ""
    _, given = get_asked_call(approval.request)
    fields = argument_fields(given)
    if fields is not None and len(msgspec.json.encode(fields)) <= _MAX_DETAIL_BYTES:
        return tuple(fields), ""
    text = storable(display_arguments(given))
    # A character has at most four bytes in JSON: what takes more is escaped.
    most = _MAX_DETAIL_BYTES // 4
    return None, text if len(msgspec.json.encode(text)) <= _MAX_DETAIL_BYTES else f"{text[:most]}…"


def build_stored(content: Content, key: str, at: float) -> StoredMessage:
    fields = {name: getattr(content, name) for name in Content.__struct_fields__}
    return StoredMessage(number=0, at=at, key=key, **fields)


def storable(text: str) -> str:
    """Remove lone surrogates from a text, which JSON cannot represent."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def error_body(error: RequestError) -> bytes:
    """Return an error for the page: a translation code, and a sentence as fallback."""
    body = {"code": error.code, "message": error.message, "retry_after": error.retry_after}
    return msgspec.json.encode({"error": body})
