"""From a result to messages. Pure."""

from collections.abc import Sequence
from typing import Any, cast

from agent_framework import AgentResponse, Content, Message, WorkflowRunResult
from msgspec import structs

from frontdesk.data.approval import PendingApproval
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import LinkChallenge
from frontdesk.data.reply import Reply
from frontdesk.data.result import HostedRunResult
from frontdesk.kit.chat.text import split_text
from frontdesk.kit.chat.wording import ENGLISH_WORDING, Wording
from frontdesk.kit.framework.contents import asked_for, file_name
from frontdesk.kit.framework.request_choices import (
    MOST_BUTTONS,
    choices_of,
    question_text,
    short_name,
    wanted_phrase,
)
from frontdesk.kit.framework.types import is_messages, is_response, whole_outputs
from frontdesk.kit.framework.workflow_requests import approvals_in, call_id_of, calls_in, is_request, requests_of
from frontdesk.kit.names import digest
from frontdesk.testing.messages.wire import Button, Media, Send

APPROVE, REJECT, CHOOSE = "ok", "no", "choose"
_EARLIER = {"approve": APPROVE, "reject": REJECT}
"""The words of earlier versions, before a digest of the question's id."""
_DIGITS = 32
_MOST_BYTES = 61
"""The bytes that are left for the name of a question in a button."""


def parts_of(result: Any, limit: int, wording: Wording = ENGLISH_WORDING) -> list[Send]:
    """Return the messages that are sent for a result, in their order; `wording` is that of questions."""
    value: Any = cast("HostedRunResult[Any]", result).result if isinstance(result, HostedRunResult) else result
    if isinstance(value, str):
        return _texts(value, limit)
    if is_response(value):
        parts = [*_messages(value.messages, limit, _role(value)), *_questions(_asked(value), limit, wording)]
        return parts + [part for request in _requests(value) for part in _request_of_agent(request, limit, wording)]
    if isinstance(value, WorkflowRunResult):
        return _workflow(value, limit, wording)
    return []


def parts_of_reply(reply: Reply, limit: int) -> list[Send]:
    """Return the messages that are sent for a reply, with the buttons under its text."""
    parts = _texts(reply.full_text, limit)
    if parts and reply.buttons:
        buttons = tuple(Button(text=button.text, data=button.data) for button in reply.buttons)
        parts[-1] = structs.replace(parts[-1], buttons=buttons)
    return parts + [part for content in reply.media for part in _media(content)]


def _role(response: AgentResponse[Any]) -> str:
    """Return the role that is shown: the agent's, or the user's if there is no other, as in an echo."""
    return "user" if all(message.role == "user" for message in response.messages) else "assistant"


def _asked(response: AgentResponse[Any]) -> list[Content]:
    return [content for content in response.user_input_requests if content.type == "function_approval_request"]


def _requests(response: AgentResponse[Any]) -> list[Content]:
    return [content for message in response.messages for content in message.contents if is_request(content)]


def _request_of_agent(content: Content, limit: int, wording: Wording) -> list[Send]:
    """Show a request of a workflow that is run as an agent."""
    payload: dict[str, Any] = content.parse_arguments() or {}
    kind = payload.get("response_type")
    labels: list[str] = payload.get("choices") or []
    plain: dict[Any, Any] = {"str": str, "int": int, "float": float, "bool": bool}
    question, wanted = question_text(payload.get("data")), plain.get(kind, kind)
    return _request(question, str(content.call_id), wanted, labels, limit, wording)


def _request(
    question: str, call_id: str, wanted: Any, labels: Sequence[str], limit: int, wording: Wording
) -> list[Send]:
    """Ask a question of a workflow, with its choices as buttons if they are few."""
    if not 0 < len(labels) <= MOST_BUTTONS:
        answer = wanted_phrase(wanted, labels)
        please = "" if answer is None else wording.say("question.please", answer=answer)
        return _texts("\n\n".join(filter(None, (question, please))), limit)
    if wanted is bool:
        labels = [wording.say("question.yes"), wording.say("question.no")]
    buttons = [
        Button(text=label, data=f"{CHOOSE}:{short_name(call_id)}:{number}") for number, label in enumerate(labels)
    ]
    *before, last = split_text(question, limit)
    return [*(Send(text=part) for part in before), Send(text=last, buttons=tuple(buttons))]


def _workflow(result: WorkflowRunResult, limit: int, wording: Wording) -> list[Send]:
    parts: list[Send] = []
    for output in whole_outputs(result):
        if isinstance(output, str):
            parts += _texts(output, limit)
        elif is_response(output):
            parts += _messages(output.messages, limit)
        elif isinstance(output, Message):
            parts += _messages([output], limit)
        elif is_messages(output):
            parts += _messages(output, limit)
        else:
            parts += _texts(str(output), limit)
    waiting = requests_of(result)
    for request in calls_in(waiting):
        wanted: Any = request.response_type
        labels = [choice.label for choice in choices_of(wanted)]
        parts += _request(question_text(request.data), call_id_of(request), wanted, labels, limit, wording)
    return parts + _questions(approvals_in(waiting), limit, wording)


def _messages(messages: Sequence[Message], limit: int, role: str = "assistant") -> list[Send]:
    parts: list[Send] = []
    for message in messages:
        if message.role != role:
            continue
        parts += _texts("".join(content.text or "" for content in message.contents if content.type == "text"), limit)
        for content in message.contents:
            parts += _media(content)
    return parts


def _texts(text: str, limit: int) -> list[Send]:
    # A platform takes no message without visible text.
    return [Send(text=part) for part in split_text(text, limit) if part.strip()]


def _media(content: Content) -> list[Send]:
    uri = content.uri or ""
    if content.type == "uri" and uri:
        return [Send(text=uri)]
    head, _, data = uri.partition(";base64,")
    if content.type != "data" or not data:
        return []
    media_type = content.media_type or head.removeprefix("data:") or "application/octet-stream"
    return [Send(media=(Media(media_type=media_type, data=data, name=file_name(content)),))]


def _questions(requests: Sequence[Content], limit: int, wording: Wording) -> list[Send]:
    """Make a question for each call that waits; it shows all arguments, with the buttons under its last part."""
    parts: list[Send] = []
    for request in requests:
        tool, arguments = asked_for(request)
        *before, last = split_text(f"{wording.say('approval.ask', tool=tool)}\n{arguments}", limit)
        parts += [Send(text=part) for part in before]
        parts.append(Send(text=last, buttons=_buttons(str(request.id), wording)))
    return parts


def _buttons(approval_id: str, wording: Wording) -> tuple[Button, ...]:
    name = approval_id if len(approval_id.encode(errors="surrogatepass")) <= _MOST_BYTES else _name(approval_id)
    return (
        Button(text=wording.say("approval.approve"), data=f"{APPROVE}:{name}"),
        Button(text=wording.say("approval.reject"), data=f"{REJECT}:{name}"),
    )


def _name(approval_id: str) -> str:
    # Ids of earlier versions are the target's, and have any length.
    return digest(approval_id)[:_DIGITS]


def read_button(data: str) -> tuple[str, bool]:
    """Return the name of the question that a button answers, or an empty one; and whether it says yes."""
    word, _, name = data.partition(":")
    verb = _EARLIER.get(word, word)
    return (name if verb in (APPROVE, REJECT) else ""), verb == APPROVE


def asked_in(buttons: Sequence[Button]) -> str | None:
    """Return the id of the question that a message with buttons asks; `None` if it asks none."""
    names = {name for button in buttons if (name := read_button(button.data)[0])}
    return names.pop() if len(names) == 1 else None


def read_choice(data: str) -> tuple[str, int] | None:
    """Return the short name of a workflow's question and the number of the choice, if a button is one of these."""
    word, _, rest = data.partition(":")
    name, _, number = rest.partition(":")
    return (name, int(number)) if word == CHOOSE and number.isascii() and number.isdecimal() else None


def find_question(name: str, waiting: Sequence[PendingApproval]) -> PendingApproval | None:
    """Find a question among those that wait, by its id, or by the short name of a long id."""
    named = [question for question in waiting if question.approval_id == name]
    return next(iter(named or (question for question in waiting if _name(question.approval_id) == name)), None)


def name_of(identity: ChannelIdentity | None) -> str:
    """Return the name of a person, or an empty one."""
    return "" if identity is None else str(identity.attributes.get("name", ""))


def challenge_text(challenge: LinkChallenge) -> str:
    """Return the instructions for linking an account."""
    return "\n".join(filter(None, (challenge.instructions, challenge.url)))
