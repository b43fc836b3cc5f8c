"""The types of the `openai` package, used strictly: its clients themselves accept nearly anything."""

import json
from functools import cache
from typing import Any, get_args

from openai.pagination import SyncPage
from openai.types import Model
from openai.types.conversations import (
    Conversation,
    ConversationDeletedResource,
    ConversationItem,
    ConversationItemList,
)
from openai.types.responses import Response, ResponseItemList, ResponseStreamEvent
from openai.types.responses.input_token_count_response import InputTokenCountResponse
from openai.types.shared import ErrorObject
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError


class Deletion(BaseModel):
    """A deleted response, which the package has no type for."""

    model_config = ConfigDict(extra="forbid")

    id: str
    object: str
    deleted: bool


class EmptyItemList(BaseModel):
    """A page with nothing on it has no first and no last item, whatever the package says."""

    data: list[Any]
    first_id: None
    last_id: None
    has_more: bool
    object: str


class ErrorBody(BaseModel):
    """Every error of the API."""

    model_config = ConfigDict(extra="forbid")

    error: ErrorObject


BODIES: dict[str, Any] = {
    "response": Response,
    "input_items": ResponseItemList,
    "input_tokens": InputTokenCountResponse,
    "no_items": EmptyItemList,
    "conversation": Conversation,
    "conversation_deleted": ConversationDeletedResource,
    "conversation_item": ConversationItem,
    "conversation_items": ConversationItemList,
    "deletion": Deletion,
    "models": SyncPage[Model],
    "model": Model,
    "error": ErrorBody,
}


@cache
def _events() -> dict[str, Any]:
    union = get_args(get_args(ResponseStreamEvent)[0])
    return {kind: one for one in union for kind in get_args(one.model_fields["type"].annotation)}


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def wrong_body(kind: str, body: Any) -> list[str]:
    """What is wrong with a body."""
    return _wrong(BODIES[kind], body)


def wrong_event(event: Any) -> list[str]:
    """What is wrong with an event of a stream."""
    kind = _events().get(event.get("type"))
    return [f"unknown event {event.get('type')!r}"] if kind is None else _wrong(kind, event)


def _wrong(kind: Any, value: Any) -> list[str]:
    try:
        _adapter(kind).validate_json(json.dumps(_with_schema(value)), strict=True)
    except ValidationError as error:
        return [f"{getattr(kind, '__name__', kind)}: {one['loc']}: {one['msg']}" for one in error.errors()]
    return []


def _with_schema(value: Any) -> Any:
    """The same with a schema in `text.format`, which the package requires and the published schema forbids."""
    if isinstance(value, dict) and isinstance(value.get("response"), dict):
        return {**value, "response": _with_schema(value["response"])}
    text: Any = value.get("text") if isinstance(value, dict) else None
    form = text.get("format") or {} if isinstance(text, dict) else {}
    if form.get("type") == "json_schema" and form.get("schema") is None:
        return {**value, "text": {**text, "format": {**form, "schema": {}}}}
    return value
