"""The bodies of the Conversations API: strict in what comes in, complete in what goes out."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
Item = dict[str, Any]


class CreateBody(msgspec.Struct, kw_only=True, frozen=True):
    """`POST /conversations`."""

    items: Annotated[list[Item], Meta(max_length=20)] | None = None
    metadata: Metadata | None = None


class UpdateBody(msgspec.Struct, kw_only=True, frozen=True):
    """`POST /conversations/{id}`."""

    metadata: Metadata | None


class ItemsBody(msgspec.Struct, kw_only=True, frozen=True):
    """`POST /conversations/{id}/items`."""

    items: Annotated[list[Item], Meta(min_length=1, max_length=20)]


class ConversationOut(msgspec.Struct, kw_only=True):
    """A conversation."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: Any


class DeletedOut(msgspec.Struct, kw_only=True):
    """The body for a conversation that was deleted."""

    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: Literal[True] = True


class PageOut(msgspec.Struct, kw_only=True):
    """Some of the items of a conversation."""

    object: Literal["list"] = "list"
    data: list[Any]
    first_id: str | None
    last_id: str | None
    has_more: bool


class ErrorOut(msgspec.Struct, kw_only=True):
    """An error, in the form of the API."""

    message: str
    type: str
    param: str | None
    code: str | None
