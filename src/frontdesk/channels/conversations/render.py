"""From conversations and items to what is shown of them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frontdesk.channels.conversations.wire import ConversationOut, DeletedOut, ErrorOut, PageOut
from frontdesk.data.conversation import Conversation
from frontdesk.errors import RequestError

_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_ENCRYPTED = "reasoning.encrypted_content"


def conversation_out(conversation: Conversation) -> ConversationOut:
    """Draw a conversation as the API shows it."""
    return ConversationOut(
        id=conversation.conversation_id, created_at=int(conversation.created_at), metadata=conversation.metadata
    )


def deleted_out(conversation_id: str) -> DeletedOut:
    """Draw a conversation that was deleted."""
    return DeletedOut(id=conversation_id)


def page_out(bodies: Sequence[Mapping[str, Any]], include: frozenset[str], *, has_more: bool) -> PageOut:
    """Draw items as the API lists them."""
    return PageOut(
        data=[item_out(body, include) for body in bodies],
        first_id=bodies[0]["id"] if bodies else None,
        last_id=bodies[-1]["id"] if bodies else None,
        has_more=has_more,
    )


def item_out(body: Mapping[str, Any], include: frozenset[str]) -> Mapping[str, Any]:
    """Draw an item; what a model has thought in secret is shown only to those who ask for it."""
    if "encrypted_content" not in body or body.get("type") != "reasoning" or _ENCRYPTED in include:
        return body
    return {name: value for name, value in body.items() if name != "encrypted_content"}


def error_body(error: RequestError) -> bytes:
    """Encode an error in the shape of the API."""
    return msgspec.json.encode({"error": error_out(error)})


def error_out(error: RequestError) -> ErrorOut:
    """Draw an error as the API says it."""
    kind = _ERROR_TYPES.get(error.status) or ("server_error" if error.status >= 500 else "invalid_request_error")
    return ErrorOut(message=error.message, type=kind, param=error.param, code=error.code)
