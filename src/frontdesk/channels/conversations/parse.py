"""From the wire to items, metadata and pages. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import msgspec

from frontdesk.channels.conversations.wire import CreateBody, Item, ItemsBody, UpdateBody
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.http.bodies import MAX_VALUES, decode_as
from frontdesk.kit.openai.forms import INCLUDES, complete_item, trimmed
from frontdesk.kit.openai.items import read_added

_create = msgspec.json.Decoder(CreateBody)
_update = msgspec.json.Decoder(UpdateBody)
_items = msgspec.json.Decoder(ItemsBody)
# Words, not numbers: `int` fails for digits such as ² and for 5,000 of any.
_LIMITS = frozenset(map(str, range(1, 101)))
_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "mcp_call": "mcp",
    "image_generation_call": "ig",
}


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of items that a caller asks for."""

    after: str | None
    limit: int
    descending: bool
    include: frozenset[str]


def decode_create(raw: bytes, max_values: int = MAX_VALUES) -> CreateBody:
    """Decode a new conversation; without a body it is an empty one."""
    return decode_as(_create, raw or b"{}", max_values)


def decode_update(raw: bytes, max_values: int = MAX_VALUES) -> UpdateBody:
    """Decode what is to be changed."""
    return decode_as(_update, raw, max_values)


def decode_items(raw: bytes, max_values: int = MAX_VALUES) -> ItemsBody:
    """Decode what is to be added."""
    return decode_as(_items, raw, max_values)


def to_items(given: Sequence[Item], host_tools: Sequence[str], new_id: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return items as they are kept and shown; the ids are the host's, whatever the client calls them."""
    read_added(given, host_tools=host_tools)
    return [
        complete_item(trimmed(item), new_id(_PREFIXES.get(item.get("type") or "message", "item"))) for item in given
    ]


def page_of(query: bytes) -> Page:
    """Return the page that a query asks for."""
    asked = _asked(query)
    limit, order = asked.get("limit", ["20"])[-1], asked.get("order", ["desc"])[-1]
    if limit not in _LIMITS:
        raise InvalidRequestError("`limit` must be a number from 1 to 100.", param="limit")
    if order not in ("asc", "desc"):
        raise InvalidRequestError("`order` must be asc or desc.", param="order")
    after = asked["after"][-1] if "after" in asked else None
    return Page(after=after, limit=int(limit), descending=order == "desc", include=include_of(query))


def include_of(query: bytes) -> frozenset[str]:
    """Return what a caller wants to see beside the rest."""
    asked = _asked(query)
    names = [*asked.get("include", ()), *asked.get("include[]", ())]
    for name in names:
        if name not in INCLUDES:
            raise InvalidRequestError(f"{name!r} can't be included.", param="include")
    return frozenset(names)


def _asked(query: bytes) -> dict[str, list[str]]:
    return parse_qs(query.decode("latin-1"), keep_blank_values=True)
