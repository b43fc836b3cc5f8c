"""Parses Invocations bodies into a `ChannelRequest`. Pure."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import msgspec
from agent_framework import Content, Message
from msgspec import UNSET

from frontdesk.asgi.messages import Headers
from frontdesk.channels.invocations.schema import (
    Active,
    Back,
    Channels,
    DataPart,
    Identities,
    InvocationBody,
    Nowhere,
    OpenInvocationBody,
    Target,
    TextPart,
    UriPart,
)
from frontdesk.errors import InvalidRequestError
from frontdesk.http.bodies import MAX_VALUES, decode_as
from frontdesk.identifiers import plain_id
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.reply import Address, ResponseTarget
from frontdesk.models.request import ChannelRequest, ChannelSession, ClientOutput, SessionMode
from frontdesk.outbound.client import is_media_type

INVOCATION_ID = b"x-agent-invocation-id"
SESSION_ID = b"x-agent-session-id"
MAX_LISTED = 100
"""The number of questions that are listed at once."""

_HERE = ResponseTarget()
_decoder = msgspec.json.Decoder(InvocationBody)
_open_decoder = msgspec.json.Decoder(OpenInvocationBody)
# Words, not numbers: `int` fails for digits such as ² and for 5,000 of any.
_LIMITS = frozenset(map(str, range(1, MAX_LISTED + 1)))
_KNOWN = frozenset(InvocationBody.__struct_fields__)
_HOW_TO_OPEN = 'Set `extra_fields="attributes"` on the channel to accept additional fields.'


def decode(body: bytes, max_values: int = MAX_VALUES) -> InvocationBody:
    try:
        return decode_as(_decoder, body, max_values)
    except InvalidRequestError as error:
        if error.code != InvalidRequestError.code or not _is_open(body, max_values):
            raise
        raise InvalidRequestError(f"{error.message} {_HOW_TO_OPEN}", param=error.param) from None


def _is_open(body: bytes, max_values: int) -> bool:
    """Return True if unknown fields are the only error in a body."""
    try:
        decode_open(body, max_values)
    except InvalidRequestError:
        return False
    return True


def decode_open(body: bytes, max_values: int = MAX_VALUES) -> InvocationBody:
    return decode_as(_open_decoder, body, max_values)


def extra_fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in _KNOWN}


def to_request(
    body: InvocationBody,
    *,
    channel: str,
    session_mode: SessionMode,
    headers: Headers,
    query: bytes,
    identity: ChannelIdentity | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> ChannelRequest:
    """Return the request of a body, its headers and its query. `attributes` are its extra fields."""
    session_id = _session_id(body, query)
    outputs = _responses(body)
    checkpoint_id = None if body.checkpoint_id is None else plain_id(body.checkpoint_id, "checkpoint_id")
    if session_id is None and (outputs or checkpoint_id):
        name = "responses" if outputs else "checkpoint_id"
        raise InvalidRequestError(f"`{name}` requires `session_id`.", param="session_id")
    return ChannelRequest(
        channel=channel,
        input=None if outputs or _only_resumes(body) or (attributes and _says_nothing(body)) else _input(body),
        session=None if session_id is None else ChannelSession(key=session_id),
        options=_options(body),
        session_mode=session_mode,
        identity=identity,
        stream=body.stream,
        background=body.background,
        response_target=parse_target(body.response_target),
        metadata=body.metadata or {},
        attributes=attributes or {},
        client_outputs=outputs,
        checkpoint_id=checkpoint_id,
        run_id=get_run_id(headers),
    )


def parse_target(target: Target | None) -> ResponseTarget:
    """Return the response target. The gate checks if it is allowed."""
    if target is None or isinstance(target, Back):
        return _HERE
    if isinstance(target, Nowhere):
        return ResponseTarget.none()
    if isinstance(target, Channels):
        return ResponseTarget.channels(target.channels, echo_input=target.echo_input)
    if isinstance(target, Identities):
        places = tuple(
            Address(channel=identity.channel, native_id=identity.native_id) for identity in target.identities
        )
        return ResponseTarget(kind="identities", addresses=places, echo_input=target.echo_input)
    return ResponseTarget(kind="active" if isinstance(target, Active) else "all_linked", echo_input=target.echo_input)


def _responses(body: InvocationBody) -> tuple[ClientOutput, ...]:
    if body.responses is UNSET:
        return ()
    if body.message is not UNSET or body.input is not UNSET:
        raise InvalidRequestError("`responses` can't be combined with a message.", param="responses")
    return tuple(ClientOutput(call_id=name, output=value) for name, value in body.responses.items())


def _only_resumes(body: InvocationBody) -> bool:
    return body.checkpoint_id is not None and _says_nothing(body)


def _says_nothing(body: InvocationBody) -> bool:
    return body.message is UNSET and body.input is UNSET


def parse_approval(body: InvocationBody) -> ApprovalAnswer | None:
    if body.approval is UNSET:
        return None
    others = (body.message, body.input, body.responses)
    named = (body.options, body.session_id, body.checkpoint_id)
    if any(field is not UNSET for field in others) or any(field is not None for field in named):
        raise InvalidRequestError("`approval` can't be combined with other fields.", param="approval")
    answer = body.approval
    approval_id = plain_id(answer.id, "approval.id")
    return ApprovalAnswer(approval_id=approval_id, approved=answer.approved, reason=answer.reason)


def get_run_id(headers: Headers) -> str | None:
    given = headers.get(INVOCATION_ID)
    return None if given is None else plain_id(given.decode("latin-1"), INVOCATION_ID.decode())


def build_page(query: bytes) -> tuple[str | None, int]:
    """Return the id after which a list continues, and its maximum length."""
    asked = {name: values[-1] for name, values in parse_qs(query.decode("latin-1"), keep_blank_values=True).items()}
    limit = asked.get("limit", str(MAX_LISTED))
    if limit not in _LIMITS:
        raise InvalidRequestError(f"`limit` must be a number from 1 to {MAX_LISTED}.", param="limit")
    return plain_id(asked["after"], "after") if "after" in asked else None, int(limit)


def _session_id(body: InvocationBody, query: bytes) -> str | None:
    if not query:
        return None if body.session_id is None else plain_id(body.session_id, "session_id")
    ids = set(parse_qs(query.decode("latin-1"), keep_blank_values=True).get("agent_session_id", []))
    if body.session_id is not None:
        ids.add(body.session_id)
    if len(ids) > 1:
        raise InvalidRequestError("The body and the query string name different sessions.", param="session_id")
    return plain_id(ids.pop(), "session_id") if ids else None


def _options(body: InvocationBody) -> dict[str, Any]:
    if body.options is None:
        return {}
    return {name: value for name, value in msgspec.structs.asdict(body.options).items() if value is not None}


def _input(body: InvocationBody) -> Any:
    if (body.message is UNSET) == (body.input is UNSET):
        raise InvalidRequestError(
            "The body requires one of `message`, `input`, `approval` and `responses`.", param="message"
        )
    if body.message is UNSET:
        return body.input
    if isinstance(body.message, str):
        return body.message
    if not body.message:
        raise InvalidRequestError("The message is empty.", param="message")
    return Message("user", [_content(part, f"message[{place}]") for place, part in enumerate(body.message)])


def _content(part: TextPart | DataPart | UriPart, where: str) -> Content:
    if isinstance(part, TextPart):
        return Content.from_text(part.text)
    if not is_media_type(part.media_type):
        raise InvalidRequestError("Invalid media type.", param=f"{where}.media_type")
    if isinstance(part, UriPart):
        if not part.uri.startswith(("https://", "http://")):
            raise InvalidRequestError("`uri` must begin with https:// or http://.", param=f"{where}.uri")
        return Content.from_uri(part.uri, media_type=part.media_type)
    try:
        base64.b64decode(part.data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError("Invalid base64.", param=f"{where}.data") from None
    properties = None if part.name is None else {"filename": part.name}
    uri = f"data:{part.media_type};base64,{part.data}"
    return Content.from_uri(uri, media_type=part.media_type, additional_properties=properties)
