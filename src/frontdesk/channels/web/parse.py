"""Parses request bodies of the page into an `InboxItem`. Pure."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from agent_framework import Content, Message

from frontdesk.channels.web.render import storable
from frontdesk.channels.web.wire import MAIN, Said, SendBody, ShownFile, StoredMessage
from frontdesk.chat.commands import LOCALE
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.request_forms import FORM
from frontdesk.framework.workflow_requests import CHOICE, QUESTION
from frontdesk.http.bodies import decode_as
from frontdesk.identifiers import digest, is_plain_id
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest, ChannelSession

STOP = "stop"
"""The attribute of an event that stops what is being answered."""
COMMAND = "command"
FORM_NUMBER = "form_number"
"""The attribute of an event that answers a form: the number of the message that has it."""
VISITOR = "visitor"
"""The attribute of an event with the visitor who sent it, if the person's first one stands for them."""
_COMMAND = re.compile(r"/(\w{1,32})(?:\s+(.*))?", re.DOTALL)
_CHOICE = re.compile(r"([0-9a-f]{1,64}):([0-9]{1,3})")
_LOCALE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}")
_MAX_CLIENT_ID_LENGTH = 64
_DIGITS = 15

T = TypeVar("T")


def decode(kind: type[T], raw: bytes) -> T:
    return decode_as(msgspec.json.Decoder(kind), raw)


def client_id(given: str) -> str:
    """Return the page's own id of a request. Raise if it is invalid."""
    if not is_plain_id(given) or len(given) > _MAX_CLIENT_ID_LENGTH:
        raise InvalidRequestError("client_id must be 1 to 64 letters, digits or any of . _ : -", param="client_id")
    return given


def new_chat_id(visitor: str, given: str) -> str:
    """Return the id of a new conversation: the same for a repeated request of a visitor."""
    return f"cnv_{digest(f'{visitor}:{given}')[:24]}"


def conversation_name(visitor: str, chat: str) -> str:
    """Return the host's name of a visitor's conversation."""
    return f"{visitor}:{chat}"


def session_key(chat: str) -> str:
    return f"web:{chat}"


def parse_chat(conversation_id: str | None) -> str:
    """Return the conversation of a host name. Without one, the main conversation."""
    return MAIN if conversation_id is None else conversation_id.partition(":")[2] or MAIN


def number_in(query: dict[str, str], name: str) -> int | None:
    given = query.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= _DIGITS):
        raise InvalidRequestError(f"{name} must be a number.", param=name)
    return int(given)


def read_text(body: SendBody, most: int) -> str:
    """Return the text of a message. Raise if it is invalid."""
    text = storable(body.text)
    if len(text) > most:
        raise InvalidRequestError(f"A message can have at most {most} characters.", param="text", code="text_too_long")
    if body.keep and not body.instead_of:
        raise InvalidRequestError("`keep` requires `instead_of`.", param="keep")
    if not text.strip() and not body.choice and not body.files and not body.keep and body.form is None:
        raise InvalidRequestError("A message requires text.", param="text", code="text_empty")
    return text


def to_item(
    body: SendBody,
    text: str,
    *,
    channel: str,
    caller: Caller,
    chat: str,
    now: float,
    files: Sequence[ShownFile] = (),
    question: str = "",
    previous_run: str = "",
    sender: str = "",
) -> InboxItem:
    """Create the event of a message, a command, a choice or a form. `question` is the question of the form.

    `previous_run` is the run after which a branch begins. The event details contain its display form. `sender` is the
    visitor behind the caller, if different.
    """
    visitor = caller.identity.native_id
    known = {LOCALE: body.locale} if _LOCALE.fullmatch(body.locale) else {}
    request = ChannelRequest(
        channel=channel,
        conversation_id=conversation_name(visitor, chat),
        # The main conversation is the person's own on every channel; each other one is a session of its own.
        session=None if chat == MAIN else ChannelSession(key=session_key(chat)),
        previous_run_id=previous_run or None,
        attributes={**known, **({VISITOR: sender} if sender not in ("", visitor) else {})},
        details=msgspec.to_builtins(Said(client_id=body.client_id, text=text, files=tuple(files))),
    )
    return _item(body.client_id, _build_request(request, body, text, question), caller, now)


def parse_said(item: InboxItem) -> tuple[str, StoredMessage] | None:
    """Return the conversation and display form of an event's message, or None if it has none."""
    if not item.request.details:
        return None
    said, chat = msgspec.convert(item.request.details, Said), parse_chat(item.conversation_id)
    return chat, StoredMessage(
        number=0,
        at=item.received_at,
        role="user",
        text=said.text,
        files=said.files,
        client_id=said.client_id,
        key=f"{chat}:{said.client_id}",
    )


def _build_request(request: ChannelRequest, body: SendBody, text: str, question: str) -> ChannelRequest:
    if body.form is not None:
        given: dict[str, Any] = {QUESTION: question, FORM: body.form.values, FORM_NUMBER: body.form.number}
        return request.replace(operation="approval", attributes={**request.attributes, **given})
    if body.choice:
        choice = _CHOICE.fullmatch(body.choice)
        if choice is None:
            raise InvalidRequestError("Unknown choice.", param="choice")
        chosen: dict[str, Any] = {QUESTION: choice[1], CHOICE: int(choice[2])}
        return request.replace(operation="approval", attributes={**request.attributes, **chosen})
    if body.files:
        return request.replace(input=_message(body, text))
    command = _COMMAND.fullmatch(text.strip())
    if command is None:
        return request.replace(input=text)
    attributes = {**request.attributes, COMMAND: command[1].lower()}
    return request.replace(operation="command", input=(command[2] or "").strip(), attributes=attributes)


def _message(body: SendBody, text: str) -> Message:
    files = [
        Content.from_uri(
            f"data:{file.media_type};base64,{file.data}",
            media_type=file.media_type,
            additional_properties={"filename": file.name} if file.name else None,
        )
        for file in body.files
    ]
    return Message("user", [*([Content.from_text(text)] if text.strip() else []), *files])


def to_stop(given: str, *, channel: str, caller: Caller, chat: str, now: float) -> InboxItem:
    """Create the event that stops answers of a conversation. It is processed without waiting."""
    request = ChannelRequest(
        channel=channel,
        operation="command",
        conversation_id=conversation_name(caller.identity.native_id, chat),
        attributes={STOP: True},
    )
    return _item(given, request, caller, now).replace(kind="control")


def _item(given: str, request: ChannelRequest, caller: Caller, now: float) -> InboxItem:
    visitor = caller.identity.native_id
    return InboxItem(
        channel=request.channel,
        event_id=f"{visitor}:{given}",
        conversation_id=str(request.conversation_id),
        caller=caller,
        request=request.replace(identity=caller.identity),
        received_at=now,
    )
