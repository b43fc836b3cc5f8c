"""Fits what came in to what a workflow's first executor takes."""

from collections.abc import Sequence
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

from agent_framework import Message

from frontdesk.errors import InvalidRequestError


def fit(value: Any, messages: Sequence[Message], types: Sequence[Any]) -> Any:
    """The input itself if the workflow takes it, else its text, its message or its messages, whichever it takes."""
    if not types or any(is_of(value, one) for one in types):
        return value
    if messages:
        forms: list[Any] = ["\n".join(message.text for message in messages), list(messages)]
        if len(messages) == 1:
            forms.insert(1, messages[0])
        for form in forms:
            if any(is_of(form, one) for one in types):
                return form
    names = " or ".join(getattr(one, "__name__", str(one)) for one in types)
    raise InvalidRequestError(
        f"The workflow takes {names}; this input is not one, and no hook adapts it.", param="input"
    )


def is_of(value: Any, wanted: Any) -> bool:
    """Whether a value has a type, with generics looked into."""
    if wanted is Any:
        return True
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin is None:
        return isinstance(value, wanted) if isinstance(wanted, type) else False
    if origin in (Union, UnionType):
        return any(is_of(value, one) for one in arguments)
    if not isinstance(origin, type) or not isinstance(value, origin) or isinstance(value, (str, bytes)):
        return False
    if isinstance(value, dict) and len(arguments) == 2:
        items = cast("dict[Any, Any]", value).items()
        return all(is_of(key, arguments[0]) and is_of(item, arguments[1]) for key, item in items)
    if isinstance(value, (list, set, frozenset)) and len(arguments) == 1:
        return all(is_of(item, arguments[0]) for item in cast("list[Any]", value))
    return True
