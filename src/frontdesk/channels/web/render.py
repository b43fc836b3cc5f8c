"""From a result or an error to the messages of the page. Pure."""

from collections.abc import Sequence
from typing import Any, cast

import agent_framework as framework
import msgspec

from frontdesk.abc.live import Citation, ToolDetail, ToolUse
from frontdesk.channels.web.wire import Button, Content, Form, Part, Question, SentFile, Source, StoredMessage, Tool
from frontdesk.data.approval import PendingApproval, QuestionView
from frontdesk.data.link import LinkChallenge
from frontdesk.data.reply import Reply
from frontdesk.data.result import HostedRunResult
from frontdesk.errors import RequestError
from frontdesk.kit.chat.questions import question_in_words
from frontdesk.kit.chat.wording import Wording
from frontdesk.kit.framework.contents import asked_for, file_name
from frontdesk.kit.framework.notes import NO_NOTES, notes_of
from frontdesk.kit.framework.request_choices import (
    MOST_BUTTONS,
    choices_of,
    question_text,
    short_name,
)
from frontdesk.kit.framework.request_forms import FormField, form_of
from frontdesk.kit.framework.types import is_messages, is_response, whole_outputs
from frontdesk.kit.framework.workflow_requests import (
    approvals_in,
    call_id_of,
    calls_in,
    form_in,
    is_request,
    requests_of,
)

_LONGEST_TOOL = 200
_MOST_DETAIL_BYTES = 10_000
"""The bytes of all arguments and results of a message: beside its text they have to fit into a stored value."""
_MOST_SOURCE_BYTES = 6_000


def contents_of(given: Any, wording: Wording, detail: ToolDetail = "hidden") -> list[Part]:
    """Return what the page shows for a result, in its order: the text, and a card for each question."""
    value: Any = cast("HostedRunResult[Any]", given).result if isinstance(given, HostedRunResult) else given
    if isinstance(value, str):
        return _texts([value])
    if is_response(value):
        asked = [content for content in value.user_input_requests if content.type == "function_approval_request"]
        requests = [content for message in value.messages for content in message.contents if is_request(content)]
        return [
            *_said(value.messages, detail),
            *map(_question, asked),
            *(_request_of_agent(content, wording) for content in requests),
        ]
    if isinstance(value, framework.WorkflowRunResult):
        return _workflow(value, wording, detail)
    return []


def _workflow(result: framework.WorkflowRunResult, wording: Wording, detail: ToolDetail) -> list[Part]:
    said: list[Part] = []
    for output in whole_outputs(result):
        if is_response(output):
            said += _said(output.messages, detail)
        elif isinstance(output, framework.Message):
            said += _said([output], detail)
        elif is_messages(output):
            said += _said(output, detail)
        else:
            said += _texts([str(output)])
    waiting = requests_of(result)
    for request in calls_in(waiting):
        labels = [choice.label for choice in choices_of(request.response_type)]
        question = question_text(request.data)
        wanted = request.response_type
        said.append(_request(question, call_id_of(request), wanted, labels, form_of(wanted), wording))
    return said + [_question(content) for content in approvals_in(waiting)]


def _said(messages: Sequence[framework.Message], detail: ToolDetail) -> list[Part]:
    """Return what the assistant has said as one message; an echo holds the user's messages alone."""
    is_echo = all(message.role == "user" for message in messages)
    role = "user" if is_echo else "assistant"
    said = [message for message in messages if message.role == role]
    media = tuple(file for message in said for content in message.contents if (file := _file(content)) is not None)
    text = _joined([_text_of(message) for message in said])
    notes = NO_NOTES if is_echo else notes_of(messages, detail)
    if not text.strip() and not media and not notes.tools:
        return []
    tools, citations = tools_of(notes.tools), sources_of(notes.citations)
    return [Part(text=text, role=role, media=media, tools=tools, citations=citations)]


def tools_of(uses: Sequence[ToolUse]) -> tuple[Tool, ...]:
    """Return the tool calls of an answer as a message holds them; of what is too much for it, the names stay."""
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
    room = _MOST_DETAIL_BYTES
    for place in range(len(tools) - 1, -1, -1):
        size = len(msgspec.json.encode((tools[place].arguments, tools[place].result)))
        if size <= room:
            room -= size
        else:
            tools[place] = msgspec.structs.replace(tools[place], arguments="", result="")
    return tuple(tools)


def sources_of(citations: Sequence[Citation]) -> tuple[Source, ...]:
    """Return the sources of an answer as a message holds them, as many as there is room for."""
    sources: list[Source] = []
    room = _MOST_SOURCE_BYTES
    for citation in citations:
        source = Source(title=storable(citation.title), url=storable(citation.url))
        room -= len(msgspec.json.encode(source))
        if room < 0:
            break
        sources.append(source)
    return tuple(sources)


def _text_of(message: framework.Message) -> str:
    texts = "".join(content.text or "" for content in message.contents if content.type == "text")
    links = [content.uri for content in message.contents if content.type == "uri" and content.uri]
    return _joined([texts, *links])


def _file(content: framework.Content) -> SentFile | None:
    """Return the file that a content holds."""
    head, _, data = (content.uri or "").partition(";base64,")
    if content.type != "data" or not data:
        return None
    media_type = content.media_type or head.removeprefix("data:")
    return SentFile(media_type=storable(media_type), data=data, name=storable(file_name(content)))


def _joined(texts: Sequence[str]) -> str:
    return storable("\n\n".join(filter(None, texts)))


def _texts(texts: Sequence[str]) -> list[Part]:
    text = _joined(texts)
    return [Part(text=text)] if text.strip() else []


def _question(request: framework.Content) -> Part:
    tool, _ = asked_for(request)
    return Part(question=Question(approval_id=str(request.id), tool=storable(tool)[:_LONGEST_TOOL]))


def _request_of_agent(content: framework.Content, wording: Wording) -> Part:
    """Show a request of a workflow that is run as an agent."""
    payload: dict[str, Any] = content.parse_arguments() or {}
    kind = payload.get("response_type")
    plain: dict[Any, Any] = {"str": str, "int": int, "float": float, "bool": bool}
    labels: list[str] = payload.get("choices") or []
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
    """Ask a question of a workflow, with its choices as buttons if they are few, or as a form."""
    if fields and not labels:
        return Part(text=storable(question), form=Form(id=short_name(call_id), fields=fields))
    if not 0 < len(labels) <= MOST_BUTTONS:
        return Part(text=storable(question_in_words(question, wanted, labels, wording)))
    if wanted is bool:
        labels = [wording.say("question.yes"), wording.say("question.no")]
    name = short_name(call_id)
    buttons = tuple(Button(text=storable(label), data=f"{name}:{number}") for number, label in enumerate(labels))
    return Part(text=storable(question), buttons=buttons)


def content_of_reply(reply: Reply) -> Content:
    """Return the notice that shows a reply of the host's own."""
    buttons = tuple(Button(text=button.text, data=button.data) for button in reply.buttons)
    return Content(text=storable(reply.full_text), role="notice", buttons=buttons)


def challenge_text(challenge: LinkChallenge) -> str:
    """Return the instructions for linking an account."""
    return "\n".join(filter(None, (challenge.instructions, challenge.url)))


def asking(view: QuestionView) -> Part:
    """Return the card of a question that an approver is asked; the page asks for its arguments."""
    approval = view.approval
    question = Question(approval_id=approval.approval_id, tool=storable(approval.tool)[:_LONGEST_TOOL])
    return Part(question=question, origin=view.channel)


def settled(approval: PendingApproval, by: str = "") -> Content:
    """Return the card of a question that was decided."""
    question = Question(
        approval_id=approval.approval_id,
        tool=storable(approval.tool)[:_LONGEST_TOOL],
        outcome=approval.status,
        reason=storable(approval.reason or ""),
        by="" if approval.terms is None else storable(by),
        at=0.0 if approval.terms is None else approval.decided_at or 0.0,
    )
    return Content(question=question)


def stored(content: Content, key: str, at: float) -> StoredMessage:
    """Return a new message with a content."""
    fields = {name: getattr(content, name) for name in Content.__struct_fields__}
    return StoredMessage(number=0, at=at, key=key, **fields)


def storable(text: str) -> str:
    """Return a text without the halves of characters, which no JSON can hold."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def error_body(error: RequestError) -> bytes:
    """Return an error as the page reads it: a code for the catalogue, and a sentence for all others."""
    body = {"code": error.code, "message": error.message, "retry_after": error.retry_after}
    return msgspec.json.encode({"error": body})
